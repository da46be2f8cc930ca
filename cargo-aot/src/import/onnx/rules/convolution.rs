//! Convolutions.

use super::super::builder::{OpResult, Tensor, unsupported, wrong};
use super::super::call::Call;
use super::table::{Entry, onnx};
use aot_ir::op::{BinaryOp, ConvAttrs};
use aot_ir::{Dim, Op};

pub(super) const RULES: &[Entry] = &[
    onnx("Conv", |c| {
        let (x, w, bias) = (c.x(0)?, c.x(1)?, c.opt(2));
        Ok(vec![conv(c, x, w, bias)?])
    }),
    onnx("ConvTranspose", conv_transpose),
    onnx("Col2Im", col2im),
];

/// A window over the spatial axes.
pub(super) struct Window {
    pub(super) kernel: Vec<Dim>,
    pub(super) strides: Vec<i64>,
    pub(super) dilations: Vec<i64>,
    pub(super) pads: Vec<(Dim, Dim)>,
}

/// An attribute with one positive number per spatial axis, 1 when left out.
pub(super) fn per_axis(c: &Call<'_>, name: &str, axes: usize) -> OpResult<Vec<i64>> {
    let list = c.ints_attr(name).filter(|l| !l.is_empty()).unwrap_or_else(|| vec![1; axes]);
    if list.len() != axes || list.iter().any(|&v| !(1..=1 << 24).contains(&v)) {
        return wrong(format!("{name} is {list:?} for {axes} spatial axes"));
    }
    Ok(list)
}

/// Explicit pads; zeros when left out.
pub(super) fn explicit_pads(c: &Call<'_>, axes: usize) -> OpResult<Vec<(Dim, Dim)>> {
    let pads = c.ints_attr("pads").filter(|l| !l.is_empty()).unwrap_or_else(|| vec![0; 2 * axes]);
    if pads.len() != 2 * axes || pads.iter().any(|&v| !(0..=1 << 24).contains(&v)) {
        return wrong(format!("pads is {pads:?} for {axes} spatial axes"));
    }
    Ok((0..axes).map(|i| (pads[i].into(), pads[axes + i].into())).collect())
}

/// The window of a convolution or pooling over `x`.
pub(super) fn window(c: &Call<'_>, x: Tensor, kernel: Vec<Dim>) -> OpResult<Window> {
    let axes = kernel.len();
    let shape = c.shape(x);
    if axes == 0 || shape.len() != axes + 2 {
        return wrong(format!("rank {} for {axes} spatial axes", shape.len()));
    }
    let (strides, dilations) = (per_axis(c, "strides", axes)?, per_axis(c, "dilations", axes)?);
    let zero = || vec![(Dim::ZERO, Dim::ZERO); axes];
    let pads = match c.text("auto_pad", "NOTSET").as_str() {
        "NOTSET" => explicit_pads(c, axes)?,
        "VALID" => zero(),
        mode @ ("SAME_UPPER" | "SAME_LOWER") => {
            let scope = c.scope();
            let mut pads = zero();
            for (i, pad) in pads.iter_mut().enumerate() {
                let extent = &shape[2 + i];
                let out = scope.ceil_div(extent, &strides[i].into());
                let reach = (&out - 1).scaled(strides[i]) + (&kernel[i] - 1).scaled(dilations[i]);
                let total = scope.max(&(reach + 1 - extent), &Dim::ZERO);
                let small = scope.floor_div(&total, &2.into());
                let large = &total - &small;
                *pad = if mode == "SAME_UPPER" { (small, large) } else { (large, small) };
            }
            pads
        }
        other => return wrong(format!("auto_pad is `{other}`")),
    };
    Ok(Window { kernel, strides, dilations, pads })
}

/// Adds `bias [channels]` to `x [n, channels, ..]`.
pub(super) fn add_bias(c: &mut Call<'_>, x: Tensor, bias: Option<Tensor>) -> OpResult {
    let Some(bias) = bias else { return Ok(x) };
    let bias = per_channel(c, bias, c.rank(x))?;
    c.sum(x, bias)
}

/// `[channels]` as `[channels, 1, ..]` that broadcasts to `[n, channels, ..]` of a rank.
pub(super) fn per_channel(c: &mut Call<'_>, v: Tensor, rank: usize) -> OpResult {
    if c.rank(v) != 1 {
        return wrong(format!("a vector per channel has rank {}", c.rank(v)));
    }
    let mut shape = vec![Dim::ONE; rank.saturating_sub(1).max(1)];
    shape[0] = c.shape(v)[0].clone();
    c.reshape(v, &shape)
}

/// The convolution that the node's attributes describe.
pub(super) fn conv(c: &mut Call<'_>, x: Tensor, w: Tensor, bias: Option<Tensor>) -> OpResult {
    let kernel = c.shape(w).get(2..).unwrap_or_default().to_vec();
    check_kernel(c, &kernel)?;
    let Window { strides, dilations, pads, .. } = window(c, x, kernel)?;
    let groups = c.int("group", 1);
    let out = c.op(Op::Conv(ConvAttrs { strides, pads, dilations, groups }), &[x, w])?;
    add_bias(c, out, bias)
}

pub(super) fn check_kernel(c: &Call<'_>, kernel: &[Dim]) -> OpResult<()> {
    match c.ints_attr("kernel_shape") {
        Some(given)
            if given.len() != kernel.len()
                || given.iter().zip(kernel).any(|(g, k)| k.as_const().is_some_and(|k| k != *g)) =>
        {
            wrong(format!("kernel_shape {given:?} does not match the weights"))
        }
        _ => Ok(()),
    }
}

fn conv_transpose(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (x, w, bias) = (c.x(0)?, c.x(1)?, c.opt(2));
    let kernel = c.shape(w).get(2..).unwrap_or_default().to_vec();
    check_kernel(c, &kernel)?;
    let axes = kernel.len();
    if axes == 0 || c.rank(x) != axes + 2 {
        return wrong(format!("rank {} for {axes} spatial axes", c.rank(x)));
    }
    let (strides, dilations) = (per_axis(c, "strides", axes)?, per_axis(c, "dilations", axes)?);
    let output_padding =
        c.ints_attr("output_padding").filter(|l| !l.is_empty()).unwrap_or_else(|| vec![0; axes]);
    if output_padding.len() != axes || output_padding.iter().any(|&v| !(0..=1 << 24).contains(&v)) {
        return wrong(format!("output_padding is {output_padding:?}"));
    }
    let mode = c.text("auto_pad", "NOTSET");
    let wanted = c.ints_attr("output_shape").filter(|l| !l.is_empty());
    let shape = c.shape(x).to_vec();
    let full = |i: usize| {
        (&shape[2 + i] - 1).scaled(strides[i])
            + (&kernel[i] - 1).scaled(dilations[i])
            + (1 + output_padding[i])
    };
    let totals: Option<Vec<Dim>> = match (&wanted, mode.as_str()) {
        // The whole shape may be given, or the spatial part alone.
        (Some(out), _) if out.len() >= axes => {
            let out = &out[out.len() - axes..];
            Some((0..axes).map(|i| full(i) - out[i]).collect())
        }
        (Some(out), _) => return wrong(format!("output_shape is {out:?}")),
        (None, "SAME_UPPER" | "SAME_LOWER") => {
            Some((0..axes).map(|i| full(i) - shape[2 + i].scaled(strides[i])).collect())
        }
        _ => None,
    };
    // A negative total grows the result at its end.
    let mut output_padding = output_padding;
    let pads = match totals {
        None if mode == "VALID" => vec![(Dim::ZERO, Dim::ZERO); axes],
        None => explicit_pads(c, axes)?,
        Some(totals) => {
            let mut pads = Vec::new();
            for (i, total) in totals.iter().enumerate() {
                let Some(total) = total.as_const() else {
                    return unsupported("output_shape over run-time sizes that pads can't express");
                };
                if total < 0 {
                    output_padding[i] -= total;
                    pads.push((Dim::ZERO, Dim::ZERO));
                    continue;
                }
                let (small, large) = (total / 2, total - total / 2);
                let upper = mode == "SAME_UPPER";
                let (a, b) = if upper { (small, large) } else { (large, small) };
                pads.push((a.into(), b.into()));
            }
            pads
        }
    };
    let groups = c.int("group", 1);
    let conv = ConvAttrs { strides, pads, dilations, groups };
    let out = c.op(Op::ConvTranspose { conv, output_padding }, &[x, w])?;
    Ok(vec![add_bias(c, out, bias)?])
}

/// Columns of windows added up to an image: a scatter with the window's places as indices.
fn col2im(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let (Some(image), Some(block)) =
        (c.input_ints(1, "the image shape")?, c.input_ints(2, "the block shape")?)
    else {
        return wrong("the image or block shape is missing");
    };
    let axes = image.len();
    if axes == 0 || block.len() != axes || c.rank(x) != 3 {
        return wrong("image and block shape have to fit each other, and the input to have rank 3");
    }
    if image.iter().chain(&block).any(|&v| !(1..=1 << 20).contains(&v)) {
        return wrong("image or block shape out of range");
    }
    let (strides, dilations) = (per_axis(c, "strides", axes)?, per_axis(c, "dilations", axes)?);
    let pads = explicit_pads(c, axes)?;
    let mut counts = Vec::new();
    for i in 0..axes {
        let (low, high) = (pads[i].0.constant_part(), pads[i].1.constant_part());
        let room = image[i] + low + high - dilations[i] * (block[i] - 1) - 1;
        if room < 0 {
            return wrong("the block is larger than the padded image");
        }
        counts.push(room / strides[i] + 1);
    }
    let volume: i64 = block.iter().product();
    let channels = c.scope().floor_div(&c.shape(x)[1], &volume.into());
    let batch = c.shape(x)[0].clone();
    // Work with batch and channels as one, and a transposed convolution per axis in one go: every
    // block element is a channel, and the weights are the unit blocks.
    let mut shape = vec![&batch * &channels, volume.into()];
    shape.extend(counts.iter().map(|&n| Dim::from(n)));
    let x = c.reshape(x, &shape)?;
    let unit =
        super::generate::coordinates(c, &[volume.into(), volume.into()], 0, aot_ir::DType::I64)?;
    let other =
        super::generate::coordinates(c, &[volume.into(), volume.into()], 1, aot_ir::DType::I64)?;
    let unit = c.binary(BinaryOp::Eq, unit, other)?;
    let unit = c.cast_like(unit, x)?;
    let mut kernel = vec![Dim::from(volume), Dim::ONE];
    kernel.extend(block.iter().map(|&b| Dim::from(b)));
    let unit = c.reshape(unit, &kernel)?;
    let mut output_padding = Vec::new();
    for i in 0..axes {
        let (low, high) = (pads[i].0.constant_part(), pads[i].1.constant_part());
        let reach = (counts[i] - 1) * strides[i] - low - high + dilations[i] * (block[i] - 1) + 1;
        output_padding.push(image[i] - reach);
    }
    let conv = ConvAttrs { strides, pads, dilations, groups: 1 };
    let out = c.op(Op::ConvTranspose { conv, output_padding }, &[x, unit])?;
    let mut shape = vec![batch, channels];
    shape.extend(image.iter().map(|&n| Dim::from(n)));
    Ok(vec![c.reshape(out, &shape)?])
}
