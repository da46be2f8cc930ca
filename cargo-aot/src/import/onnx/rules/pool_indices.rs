//! Where pooling found its elements, and the inverse of it.

use super::super::builder::{OpResult, Tensor, unsupported, wrong};
use super::super::call::Call;
use super::super::known::{Content, Elem};
use super::convolution::{explicit_pads, per_axis};
use super::pooling::kernel_shape;
use super::shape::product;
use aot_ir::op::{BinaryOp, PadMode, PoolAttrs, ScatterReduction};
use aot_ir::{DType, Dim, Op, Scalar};

/// Largest window whose indices are found, in elements: they are compared one by one.
const MAX_WINDOW: i64 = 1024;

/// The indices of the first largest elements of the windows of `x [n, channels, ..]`, for the result `y`;
/// they count all elements of `x`, in row-major order or with the first spatial axis innermost.
pub(super) fn of_max_pool(c: &mut Call<'_>, x: Tensor, y: Tensor, attrs: &PoolAttrs) -> OpResult {
    let first_innermost = match c.int("storage_order", 0) {
        0 => false,
        1 => true,
        other => return wrong(format!("storage_order is {other}")),
    };
    let kernel: Option<Vec<i64>> = attrs.kernel.iter().map(Dim::as_const).collect();
    let volume = |k: &Vec<i64>| k.iter().try_fold(1i64, |n, &k| n.checked_mul(k));
    let Some((kernel, volume)) =
        kernel.and_then(|k| volume(&k).map(|v| (k, v))).filter(|(_, v)| *v <= MAX_WINDOW)
    else {
        return unsupported(format!(
            "the indices of MaxPool over windows of more than {MAX_WINDOW} elements"
        ));
    };
    let (from, to) = (c.shape(x).to_vec(), c.shape(y).to_vec());
    let rank = from.len();
    // Padded or cropped so that the last window ends with the data.
    let (mut low, mut high) = (vec![Dim::ZERO; rank], vec![Dim::ZERO; rank]);
    let mut steps = vec![1; rank];
    for (i, &extent) in kernel.iter().enumerate() {
        let (axis, stride) = (2 + i, attrs.strides[i]);
        let reach = (&to[axis] - 1).scaled(stride) + (attrs.dilations[i] * (extent - 1) + 1);
        low[axis] = attrs.pads[i].0.clone();
        high[axis] = reach - &low[axis] - &from[axis];
        steps[axis] = stride;
    }
    let fill = if c.dtype(x).is_float() { Scalar::Float(0.0) } else { Scalar::Int(0) };
    let padded = c.pad(x, &low, &high, PadMode::Constant(fill))?;
    let mut best: Option<(Tensor, Tensor)> = None;
    for element in 0..volume {
        let mut starts = vec![Dim::ZERO; rank];
        let mut rest = element;
        for (i, &extent) in kernel.iter().enumerate().rev() {
            starts[2 + i] = Dim::from(rest % extent * attrs.dilations[i]);
            rest /= extent;
        }
        let value = c.slice(padded, &starts, &to, &steps)?;
        let at = |at: &[Dim]| -> Vec<Dim> {
            let moved = at.iter().zip(&starts).zip(&steps).zip(&low);
            moved.map(|(((at, start), &step), low)| at.scaled(step) + start - low).collect()
        };
        let place = Content::make(&to, c.symbols(), |coordinates, _| {
            let at = at(coordinates);
            let mut flat = &at[0] * &from[1] + &at[1];
            if first_innermost {
                flat = (2..rank).rev().fold(flat, |flat, axis| flat * &from[axis] + &at[axis]);
            } else {
                flat = (2..rank).fold(flat, |flat, axis| flat * &from[axis] + &at[axis]);
            }
            Some(Elem::Int(flat))
        });
        let inside = Content::make(&to, c.symbols(), |coordinates, scope| {
            let at = at(coordinates);
            (2..rank).try_fold(Elem::truth(true), |all, axis| {
                let here = Content::inside(&at[axis], &from[axis], scope);
                all.binary(BinaryOp::And, &here, DType::Bool, scope)
            })
        });
        let (Some(place), Some(inside)) = (place, inside) else {
            return unsupported("the indices of MaxPool are too complicated");
        };
        let (place, inside) = (c.known(DType::I64, place), c.known(DType::Bool, inside));
        best = Some(match best {
            None => {
                let none = c.scalar(-1.0, DType::I64);
                (value, c.select(inside, place, none)?)
            }
            Some((largest, index)) => {
                let larger = c.binary(BinaryOp::Gt, value, largest)?;
                let first = c.with(BinaryOp::Lt, index, 0.0)?;
                let better = c.binary(BinaryOp::Or, larger, first)?;
                let better = c.binary(BinaryOp::And, inside, better)?;
                (c.select(better, value, largest)?, c.select(better, place, index)?)
            }
        });
    }
    match best {
        Some((_, index)) => c.expand(index, &to),
        None => wrong("a window without elements"),
    }
}

/// Zeros with the elements of `input 0` at the places `input 1`, which count all elements of the result.
pub(super) fn max_unpool(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (x, indices) = (c.x(0)?, c.x(1)?);
    let kernel = kernel_shape(c)?;
    let from = c.shape(x).to_vec();
    if kernel.is_empty() || from.len() != kernel.len() + 2 || c.rank(indices) != from.len() {
        return wrong(format!("rank {} for {} spatial axes", from.len(), kernel.len()));
    }
    let strides = per_axis(c, "strides", kernel.len())?;
    let pads = explicit_pads(c, kernel.len())?;
    // Indices are places in a result of this shape, whichever is asked for.
    let mut shape = from[..2].to_vec();
    for (i, (low, high)) in pads.iter().enumerate() {
        shape.push((&from[2 + i] - 1).scaled(strides[i]) + kernel[i] - low - high);
    }
    let count = product(&from);
    let flat = c.reshape(x, std::slice::from_ref(&count))?;
    let indices = c.cast(indices, DType::I64)?;
    let indices = c.reshape(indices, &[count])?;
    let zero = c.scalar_like(0.0, x);
    let empty = c.expand(zero, &[product(&shape)])?;
    let reduction = ScatterReduction::None;
    let full = c.op(Op::ScatterElements { axis: 0, reduction }, &[empty, indices, flat])?;
    let full = c.reshape(full, &shape)?;
    let asked = match c.output_sizes(2, "the output shape of MaxUnpool")? {
        None => return Ok(vec![full]),
        Some(asked) if asked.len() == from.len() => asked,
        Some(asked) => return wrong(format!("the output shape has {} axes", asked.len())),
    };
    let high: Vec<Dim> = asked.iter().zip(&shape).map(|(asked, own)| asked - own).collect();
    let fill = PadMode::Constant(Scalar::Float(0.0));
    Ok(vec![c.pad(full, &vec![Dim::ZERO; from.len()], &high, fill)?])
}
