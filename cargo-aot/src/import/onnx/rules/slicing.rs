//! Parts of tensors, and tensors of parts.

use super::super::builder::{Element, Most, OpResult, Tensor, wrong};
use super::super::call::Call;
use super::table::{Entry, onnx};
use aot_ir::dim::Cmp;
use aot_ir::op::{BinaryOp, PadMode};
use aot_ir::{DType, Dim, Scalar, Scope};

pub(super) const RULES: &[Entry] = &[
    onnx("Slice", slice),
    onnx("Split", split),
    onnx("Concat", |c| {
        let parts = c.all()?;
        let axis = c.axis(parts[0], 1)?;
        Ok(vec![c.concat(&parts, axis)?])
    }),
    onnx("Pad", pad),
    onnx("CenterCropPad", center_crop_pad),
];

/// A position that counts from the end when negative.
fn wrap(at: &Dim, extent: &Dim, scope: &Scope<'_>) -> Dim {
    scope.select(&scope.cond(Cmp::Lt, at, &Dim::ZERO), &(at + extent), at)
}

/// `low <= x <= high`.
fn clamp(x: &Dim, low: &Dim, high: &Dim, scope: &Scope<'_>) -> Dim {
    scope.min(&scope.max(x, low), high)
}

fn slice(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let rank = c.rank(x);
    let (starts, ends, axes, steps) = if c.opset < 10 {
        let known = |d: i64| Element::Known(d.into());
        let dims = |list: Option<Vec<i64>>| -> Option<Vec<Element>> {
            list.map(|l| l.into_iter().map(known).collect())
        };
        (dims(c.ints_attr("starts")), dims(c.ints_attr("ends")), c.ints_attr("axes"), None)
    } else {
        (
            c.input_elements(1, "the start of Slice")?,
            c.input_elements(2, "the end of Slice")?,
            c.input_ints(3, "the axes of Slice")?,
            c.input_ints(4, "the steps of Slice")?,
        )
    };
    let (Some(starts), Some(ends)) = (starts, ends) else {
        return wrong("starts or ends are missing");
    };
    let axes = axes.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = steps.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()].iter().any(|&n| n != starts.len()) {
        return wrong("starts, ends, axes and steps differ in number");
    }
    let shape = c.shape(x).to_vec();
    let (mut from, mut sizes, mut by) = (vec![Dim::ZERO; rank], shape.clone(), vec![1; rank]);
    for (i, &axis) in axes.iter().enumerate() {
        let axis = c.axis_of(axis, rank)?;
        let (extent, step) = (&shape[axis], steps[i]);
        if step == 0 || step == i64::MIN {
            return wrong("a step of 0 or too far");
        }
        let (Element::Known(start), Element::Known(end)) = (&starts[i], &ends[i]) else {
            (from[axis], sizes[axis]) = data_window(c, &starts[i], &ends[i], extent, axis, step)?;
            by[axis] = step;
            continue;
        };
        let scope = c.scope();
        let (start, end) = (wrap(start, extent, &scope), wrap(end, extent, &scope));
        let size;
        (from[axis], size) = if step > 0 {
            let start = clamp(&start, &Dim::ZERO, extent, &scope);
            let end = clamp(&end, &Dim::ZERO, extent, &scope);
            let size = scope.ceil_div(&(&end - &start), &step.into());
            (start, size)
        } else {
            let last = extent - 1;
            let start = clamp(&start, &Dim::ZERO, &last, &scope);
            let end = clamp(&end, &Dim::from(-1), &last, &scope);
            let size = scope.ceil_div(&(&start - &end), &(-step).into());
            (start, size)
        };
        sizes[axis] = scope.max(&size, &Dim::ZERO);
        by[axis] = step;
    }
    Ok(vec![c.slice(x, &from, &sizes, &by)?])
}

/// Start and size of a slice along an axis of which data gives an end.
fn data_window(
    c: &mut Call<'_>,
    start: &Element,
    end: &Element,
    extent: &Dim,
    axis: usize,
    step: i64,
) -> OpResult<(Dim, Dim)> {
    let length = c.element(&Element::Known(extent.clone()))?;
    let (low, high) = if step > 0 { (0, extent.clone()) } else { (-1, extent - 1) };
    let high = c.element(&Element::Known(high))?;
    let mut ends = Vec::new();
    for (element, low) in [(start, low.max(0)), (end, low)] {
        let given = c.element(element)?;
        let negative = c.with(BinaryOp::Lt, given, 0.0)?;
        let wrapped = c.sum(given, length)?;
        let at = c.select(negative, wrapped, given)?;
        let at = c.with(BinaryOp::Max, at, low as f64)?;
        ends.push(c.binary(BinaryOp::Min, at, high)?);
    }
    let (from, to) = if step > 0 { (ends[0], ends[1]) } else { (ends[1], ends[0]) };
    let size = c.difference(to, from)?;
    let stride = step.saturating_abs();
    let size = c.with(BinaryOp::Add, size, (stride - 1) as f64)?;
    let size = c.with(BinaryOp::Max, size, 0.0)?;
    let size = c.with(BinaryOp::Div, size, stride as f64)?;
    let name = c.extent_name(&c.output(0), axis);
    let start = c.size(ends[0], &format!("{name}_start"), 0, &Most::Proved(extent.clone()))?;
    let size = c.size(size, &name, 0, &Most::Proved(extent.clone()))?;
    Ok((start, size))
}

fn split(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let axis = c.axis(x, 0)?;
    let extent = c.shape(x)[axis].clone();
    let sizes = if c.opset < 13 {
        c.ints_attr("split").map(|l| l.into_iter().map(Dim::from).collect())
    } else {
        let most = Most::Valid(extent.clone());
        c.input_sizes(1, "the sizes of Split", 0, &most)?
    };
    let sizes = match sizes {
        Some(sizes) => sizes,
        None => {
            let parts = c.int("num_outputs", c.node.output.len() as i64);
            if parts < 1 || parts > c.node.output.len() as i64 {
                return wrong(format!("{parts} parts for {} outputs", c.node.output.len()));
            }
            let size = c.scope().ceil_div(&extent, &parts.into());
            let mut sizes = vec![size.clone(); parts as usize];
            sizes[parts as usize - 1] = &extent - &size.scaled(parts - 1);
            sizes
        }
    };
    if sizes.len() < c.node.output.len() {
        return wrong(format!("{} sizes for {} outputs", sizes.len(), c.node.output.len()));
    }
    c.split(x, axis, &sizes)
}

fn pad(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let rank = c.rank(x);
    // A value that data gives is put in afterwards.
    let mut filling = None;
    let (pads, value) = if c.opset < 11 {
        let pads = c.ints_attr("pads").map(|l| l.into_iter().map(Dim::from).collect());
        (pads, c.float("value", 0.0))
    } else {
        let pads = c.input_sizes(1, "the pads of Pad", -1, &Most::Unknown)?;
        let value = match c.opt(2) {
            None => 0.0,
            Some(t) => match c.uniform(t) {
                Some(v) => v,
                None => {
                    filling = Some(t);
                    0.0
                }
            },
        };
        (pads, value)
    };
    let Some(pads) = pads else { return wrong("pads are missing") };
    let axes = match c.input_ints(3, "the axes of Pad")? {
        Some(axes) => axes.iter().map(|&a| c.axis_of(a, rank)).collect::<OpResult<Vec<_>>>()?,
        None => (0..rank).collect(),
    };
    if pads.len() != 2 * axes.len() {
        return wrong(format!("{} pads for {} axes", pads.len(), axes.len()));
    }
    let (mut low, mut high) = (vec![Dim::ZERO; rank], vec![Dim::ZERO; rank]);
    for (i, &axis) in axes.iter().enumerate() {
        low[axis] = pads[i].clone();
        high[axis] = pads[axes.len() + i].clone();
    }
    if let Some(filling) = filling
        && c.text("mode", "constant") == "constant"
    {
        let whole = c.scalar(1.0, DType::Bool);
        let shape = c.shape(x).to_vec();
        let whole = c.expand(whole, &shape)?;
        let inside = c.pad(whole, &low, &high, PadMode::Constant(Scalar::Bool(false)))?;
        let zero = match c.dtype(x) {
            DType::Bool => Scalar::Bool(false),
            t if t.is_float() => Scalar::Float(0.0),
            _ => Scalar::Int(0),
        };
        let padded = c.pad(x, &low, &high, PadMode::Constant(zero))?;
        let filling = c.reshape(filling, &[])?;
        return Ok(vec![c.select(inside, padded, filling)?]);
    }
    let mode = match c.text("mode", "constant").as_str() {
        "constant" => PadMode::Constant(match c.dtype(x) {
            aot_ir::DType::Bool => Scalar::Bool(value != 0.0),
            t if t.is_float() => Scalar::Float(value),
            _ => Scalar::Int(value as i64),
        }),
        "reflect" => PadMode::Reflect,
        "edge" => PadMode::Edge,
        "wrap" => PadMode::Wrap,
        other => return wrong(format!("mode is `{other}`")),
    };
    Ok(vec![c.pad(x, &low, &high, mode)?])
}

/// Crops or pads each axis at both ends, the odd element at the end.
fn center_crop_pad(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let rank = c.rank(x);
    let most = Most::Unknown;
    let Some(target) = c.input_sizes(1, "the shape of CenterCropPad", 0, &most)? else {
        return wrong("the shape is missing");
    };
    let axes = match c.ints_attr("axes") {
        Some(axes) => axes.iter().map(|&a| c.axis_of(a, rank)).collect::<OpResult<Vec<_>>>()?,
        None => (0..rank).collect(),
    };
    if axes.len() != target.len() {
        return wrong(format!("{} extents for {} axes", target.len(), axes.len()));
    }
    let (mut low, mut high) = (vec![Dim::ZERO; rank], vec![Dim::ZERO; rank]);
    for (&axis, target) in axes.iter().zip(&target) {
        let grow = target - &c.shape(x)[axis];
        let scope = c.scope();
        let two = Dim::from(2);
        // Padding starts with the smaller half, cropping too; both round toward zero.
        let negative = scope.cond(Cmp::Lt, &grow, &Dim::ZERO);
        let half = scope.select(
            &negative,
            &-&scope.floor_div(&-&grow, &two),
            &scope.floor_div(&grow, &two),
        );
        high[axis] = &grow - &half;
        low[axis] = half;
    }
    let zero = match c.dtype(x) {
        aot_ir::DType::Bool => Scalar::Bool(false),
        t if t.is_float() => Scalar::Float(0.0),
        _ => Scalar::Int(0),
    };
    Ok(vec![c.pad(x, &low, &high, PadMode::Constant(zero))?])
}
