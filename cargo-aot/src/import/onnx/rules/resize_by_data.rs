//! Resizing by factors that are data: every element of the result gathers those around its place.

use super::super::builder::{OpResult, Tensor, wrong};
use super::super::call::Call;
use super::resample::{Filter, Resampled, narrow, number, position, rounded, wide};
use aot_ir::op::{BinaryOp, CoordinateMap, ResizeMode, UnaryOp};
use aot_ir::{DType, Dim};

/// The axes resized, one after the other.
pub(super) fn by_data(
    c: &mut Call<'_>,
    x: Tensor,
    axes: &[Resampled],
    mode: ResizeMode,
    map: CoordinateMap,
    exclude_outside: bool,
) -> OpResult {
    let dtype = c.dtype(x);
    let nearest = matches!(mode, ResizeMode::Nearest(_));
    let mut y = if nearest { x } else { c.cast(x, wide(dtype))? };
    for along in axes {
        let extent = c.shape(y)[along.axis].clone();
        let scale = along.scale(c, &extent)?;
        let at = position(c, along, &extent, scale, map)?;
        let at = c.reshape(at, std::slice::from_ref(&along.size))?;
        let last = number(c, &(&extent - 1))?;
        y = match mode {
            ResizeMode::Nearest(rounding) => {
                let place = rounded(c, at, rounding)?;
                let place = within(c, place, last)?;
                c.gather(y, place, along.axis)?
            }
            _ => gathered(c, y, along.axis, (at, last), Filter::of(mode)?, exclude_outside)?,
        };
    }
    if nearest { Ok(y) } else { narrow(c, y, dtype) }
}

/// Places as indices of elements, at the edges where they lie beyond them.
fn within(c: &mut Call<'_>, place: Tensor, last: Tensor) -> OpResult {
    let place = c.with(BinaryOp::Max, place, 0.0)?;
    let place = c.binary(BinaryOp::Min, place, last)?;
    c.cast(place, DType::I64)
}

/// Weighted sums along an axis of the elements within reach of the places `at [size]`; the last element is `last`.
fn gathered(
    c: &mut Call<'_>,
    x: Tensor,
    axis: usize,
    (at, last): (Tensor, Tensor),
    filter: Filter,
    exclude_outside: bool,
) -> OpResult {
    let below = c.unary(UnaryOp::Floor, at)?;
    let mut taps = Vec::new();
    let mut total: Option<Tensor> = None;
    for offset in 1 - filter.reach()..=filter.reach() {
        let place = c.with(BinaryOp::Add, below, offset as f64)?;
        let distance = c.difference(place, at)?;
        let distance = c.unary(UnaryOp::Abs, distance)?;
        let mut weight = filter.weigh(c, distance)?;
        let index = within(c, place, last)?;
        if exclude_outside {
            let (low, high) =
                (c.with(BinaryOp::Ge, place, 0.0)?, c.binary(BinaryOp::Le, place, last)?);
            let inside = c.binary(BinaryOp::And, low, high)?;
            let zero = c.scalar_like(0.0, weight);
            weight = c.select(inside, weight, zero)?;
            total = Some(match total {
                None => weight,
                Some(total) => c.sum(total, weight)?,
            });
        }
        taps.push((index, weight));
    }
    let mut line = vec![Dim::ONE; c.rank(x)];
    line[axis] = c.shape(at)[0].clone();
    let mut sum: Option<Tensor> = None;
    for (index, mut weight) in taps {
        if let Some(total) = total {
            weight = c.quotient(weight, total)?;
        }
        let weight = c.reshape(weight, &line)?;
        let weight = c.cast_like(weight, x)?;
        let part = c.gather(x, index, axis)?;
        let part = c.product(part, weight)?;
        sum = Some(match sum {
            None => part,
            Some(sum) => c.sum(sum, part)?,
        });
    }
    match sum {
        Some(sum) => Ok(sum),
        None => wrong("a filter of no width"),
    }
}
