//! Normalisation.

use super::super::builder::{OpResult, Tensor, unsupported, wrong};
use super::super::call::Call;
use super::convolution::per_channel;
use super::matmul::{rsqrt, square_sum};
use super::table::{Entry, onnx, since};
use aot_ir::op::{BinaryOp, PadMode, ReduceOp, UnaryOp};
use aot_ir::{DType, Dim, Op, Scalar};

pub(super) const RULES: &[Entry] = &[
    onnx("BatchNormalization", batch_norm),
    onnx("InstanceNormalization", instance_norm),
    onnx("LayerNormalization", layer_norm),
    onnx("RMSNormalization", |c| {
        let (x, scale) = (c.x(0)?, c.x(1)?);
        let axis = c.axis(x, -1)?;
        let epsilon = c.float("epsilon", 1e-5);
        Ok(vec![rms_norm(c, x, scale, axis, epsilon)?])
    }),
    onnx("GroupNormalization", |c| group_norm(c, false)),
    since(21, "GroupNormalization", |c| group_norm(c, true)),
    onnx("LRN", local_response),
    onnx("LpNormalization", lp_norm),
    onnx("MeanVarianceNormalization", mean_variance),
];

fn batch_norm(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let rank = c.rank(x);
    if rank < 2 {
        return wrong(format!("rank {rank}, expected at least 2"));
    }
    let mut params = Vec::new();
    for n in 1..5 {
        params.push(c.x(n)?);
    }
    let epsilon = c.float("epsilon", 1e-5);
    let mut extra = Vec::new();
    let (mut mean, mut var) = (params[2], params[3]);
    if c.flag("training_mode", false) {
        let axes: Vec<usize> = (0..rank).filter(|&a| a != 1).collect();
        let momentum = c.float("momentum", 0.9);
        let batch_mean = c.reduce(ReduceOp::Mean, x, &axes, true)?;
        let centered = c.difference(x, batch_mean)?;
        let squares = c.product(centered, centered)?;
        let batch_var = c.reduce(ReduceOp::Mean, squares, &axes, false)?;
        let batch_mean = c.squeeze(batch_mean, &axes)?;
        for (old, new) in [(mean, batch_mean), (var, batch_var)] {
            let new = c.cast_like(new, old)?;
            let (old, new) = (
                c.with(BinaryOp::Mul, old, momentum)?,
                c.with(BinaryOp::Mul, new, 1.0 - momentum)?,
            );
            extra.push(c.sum(old, new)?);
        }
        (mean, var) = (c.cast_like(batch_mean, params[0])?, c.cast_like(batch_var, params[0])?);
    } else if (1..5).any(|n| c.wants(n)) {
        return unsupported("outputs of BatchNormalization that only training has");
    }
    let (scale, bias) = (params[0], params[1]);
    // x · factor + offset, both per channel and of constants only.
    let var = c.with(BinaryOp::Add, var, epsilon)?;
    let factor = rsqrt(c, var)?;
    let scale = c.cast_like(scale, factor)?;
    let factor = c.product(factor, scale)?;
    let shift = c.product(mean, factor)?;
    let bias = c.cast_like(bias, shift)?;
    let offset = c.difference(bias, shift)?;
    let (factor, offset) = (per_channel(c, factor, rank)?, per_channel(c, offset, rank)?);
    let (factor, offset) = (c.cast_like(factor, x)?, c.cast_like(offset, x)?);
    let y = c.product(x, factor)?;
    let mut out = vec![c.sum(y, offset)?];
    out.extend(extra);
    Ok(out)
}

pub(super) fn normalize(
    c: &mut Call<'_>,
    x: Tensor,
    axes: Vec<usize>,
    epsilon: f64,
    centered: bool,
) -> OpResult {
    c.op(Op::Normalize { axes, epsilon: Scalar::Float(epsilon), centered }, &[x])
}

fn instance_norm(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (x, scale, bias) = (c.x(0)?, c.x(1)?, c.x(2)?);
    let rank = c.rank(x);
    if rank < 3 {
        return wrong(format!("rank {rank}, expected at least 3"));
    }
    let epsilon = c.float("epsilon", 1e-5);
    let y = normalize(c, x, (2..rank).collect(), epsilon, true)?;
    let (scale, bias) = (per_channel(c, scale, rank)?, per_channel(c, bias, rank)?);
    let y = c.product(y, scale)?;
    Ok(vec![c.sum(y, bias)?])
}

/// Computed in f32 where the type is narrower (`stash_type`).
fn layer_norm(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (x, scale, bias) = (c.x(0)?, c.x(1)?, c.opt(2));
    let axis = c.axis(x, -1)?;
    let epsilon = c.float("epsilon", 1e-5);
    let axes: Vec<usize> = (axis..c.rank(x)).collect();
    let wide = if c.dtype(x).bits() < 32 { DType::F32 } else { c.dtype(x) };
    let input = c.cast(x, wide)?;
    let y = normalize(c, input, axes.clone(), epsilon, true)?;
    let y = c.cast_like(y, scale)?;
    let mut y = c.product(y, scale)?;
    if let Some(bias) = bias {
        y = c.sum(y, bias)?;
    }
    let mut out = vec![c.cast_like(y, x)?];
    if c.wants(1) || c.wants(2) {
        let mean = c.reduce(ReduceOp::Mean, input, &axes, true)?;
        let centered = c.difference(input, mean)?;
        let squares = c.product(centered, centered)?;
        let var = c.reduce(ReduceOp::Mean, squares, &axes, true)?;
        let var = c.with(BinaryOp::Add, var, epsilon)?;
        out.extend([mean, rsqrt(c, var)?]);
    }
    Ok(out)
}

/// Over the axes from `axis` on, scaled.
pub(super) fn rms_norm(
    c: &mut Call<'_>,
    x: Tensor,
    scale: Tensor,
    axis: usize,
    epsilon: f64,
) -> OpResult {
    let wide = if c.dtype(x).bits() < 32 { DType::F32 } else { c.dtype(x) };
    let input = c.cast(x, wide)?;
    let axes = (axis..c.rank(x)).collect();
    let y = normalize(c, input, axes, epsilon, false)?;
    let y = c.cast_like(y, scale)?;
    let y = c.product(y, scale)?;
    c.cast_like(y, x)
}

/// `x [n, c, spatial..]` normalised over each of equal groups of channels.
pub(super) fn grouped_norm(c: &mut Call<'_>, x: Tensor, groups: i64, epsilon: f64) -> OpResult {
    let shape = c.shape(x).to_vec();
    if shape.len() < 2 || groups < 1 {
        return wrong(format!("rank {} and {groups} groups", shape.len()));
    }
    let per_group = c.scope().floor_div(&shape[1], &groups.into());
    let mut split = vec![shape[0].clone(), groups.into(), per_group];
    split.extend_from_slice(&shape[2..]);
    let wide = if c.dtype(x).bits() < 32 { DType::F32 } else { c.dtype(x) };
    let y = c.reshape(x, &split)?;
    let y = c.cast(y, wide)?;
    let y = normalize(c, y, (2..split.len()).collect(), epsilon, true)?;
    let y = c.cast_like(y, x)?;
    c.reshape(y, &shape)
}

/// Scale and bias are per group in version 18 and per channel from 21 on.
fn group_norm(c: &mut Call<'_>, by_channel: bool) -> OpResult<Vec<Tensor>> {
    let (x, mut scale, mut bias) = (c.x(0)?, c.x(1)?, c.x(2)?);
    let (groups, epsilon) = (c.int("num_groups", 0), c.float("epsilon", 1e-5));
    let mut y = grouped_norm(c, x, groups, epsilon)?;
    let rank = c.rank(x);
    if !by_channel {
        let channels = c.shape(x)[1].clone();
        for parameter in [&mut scale, &mut bias] {
            if c.rank(*parameter) != 1 {
                return wrong("scale and bias have to be vectors");
            }
            let count = c.shape(*parameter)[0].clone();
            let per_group = c.scope().floor_div(&channels, &groups.into());
            let wide = c.unsqueeze(*parameter, &[1])?;
            let wide = c.expand(wide, &[count, per_group])?;
            *parameter = c.reshape(wide, std::slice::from_ref(&channels))?;
        }
    }
    let (scale, bias) = (per_channel(c, scale, rank)?, per_channel(c, bias, rank)?);
    y = c.product(y, scale)?;
    Ok(vec![c.sum(y, bias)?])
}

/// `x / (bias + alpha / size · Σ x²)^beta` over a window of channels.
fn local_response(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let (rank, size) = (c.rank(x), c.int("size", 0));
    if rank < 2 || !(1..=256).contains(&size) {
        return wrong("rank of at least 2 and a size in 1..=256 are needed");
    }
    let (alpha, beta) = (c.float("alpha", 1e-4), c.float("beta", 0.75));
    let bias = c.float("bias", 1.0);
    let squares = c.product(x, x)?;
    let (mut low, mut high) = (vec![Dim::ZERO; rank], vec![Dim::ZERO; rank]);
    low[1] = ((size - 1) / 2).into();
    high[1] = (size / 2).into();
    let padded = c.pad(squares, &low, &high, PadMode::Constant(Scalar::Float(0.0)))?;
    let channels = c.shape(x)[1].clone();
    let mut total = c.slice_axis(padded, 1, Dim::ZERO, channels.clone(), 1)?;
    for i in 1..size {
        let next = c.slice_axis(padded, 1, i.into(), channels.clone(), 1)?;
        total = c.sum(total, next)?;
    }
    let scaled = c.with(BinaryOp::Mul, total, alpha / size as f64)?;
    let base = c.with(BinaryOp::Add, scaled, bias)?;
    let power = c.with(BinaryOp::Pow, base, beta)?;
    Ok(vec![c.quotient(x, power)?])
}

/// `x / ‖x‖`.
fn lp_norm(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let axis = c.axis(x, -1)?;
    let norm = match c.int("p", 2) {
        1 => {
            let size = c.unary(UnaryOp::Abs, x)?;
            c.reduce(ReduceOp::Sum, size, &[axis], true)?
        }
        2 => {
            let total = square_sum(c, x, &[axis])?;
            c.unary(UnaryOp::Sqrt, total)?
        }
        p => return unsupported(format!("p = {p}; 1 and 2 are supported")),
    };
    Ok(vec![c.quotient(x, norm)?])
}

fn mean_variance(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let axes = c.ints_attr("axes").unwrap_or_else(|| vec![0, 2, 3]);
    let axes = c.axes_of(&axes, c.rank(x))?;
    let mean = c.reduce(ReduceOp::Mean, x, &axes, true)?;
    let centered = c.difference(x, mean)?;
    let squares = c.product(centered, centered)?;
    let var = c.reduce(ReduceOp::Mean, squares, &axes, true)?;
    let deviation = c.unary(UnaryOp::Sqrt, var)?;
    let deviation = c.with(BinaryOp::Add, deviation, 1e-9)?;
    Ok(vec![c.quotient(centered, deviation)?])
}
