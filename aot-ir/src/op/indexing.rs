//! Rules of operators that move elements to or from computed coordinates.

use super::ScatterReduction;
use super::infer::{Inferred, ShapeError};
use super::rule::{Rule, fail};
use crate::{DType, Value};

pub(super) fn gather(rule: Rule<'_>, axis: usize) -> Result<Inferred, ShapeError> {
    let [data, indices] = rule.operands()?;
    rule.indices(indices)?;
    rule.axis(axis, data.shape.len())?;
    let mut shape = data.shape[..axis].to_vec();
    shape.extend_from_slice(&indices.shape);
    shape.extend_from_slice(&data.shape[axis + 1..]);
    rule.one(data.dtype, shape)
}

pub(super) fn gather_elements(mut rule: Rule<'_>, axis: usize) -> Result<Inferred, ShapeError> {
    let [data, indices] = rule.operands()?;
    elementwise_indices(&mut rule, axis, data, indices)?;
    rule.one(data.dtype, indices.shape.clone())
}

/// Indices have the rank of the data and, off the axis, coordinates that the data has.
fn elementwise_indices(
    rule: &mut Rule<'_>,
    axis: usize,
    data: &Value,
    indices: &Value,
) -> Result<(), ShapeError> {
    rule.indices(indices)?;
    rule.axis(axis, data.shape.len())?;
    let texts = (rule.show_shape(&indices.shape), rule.show_shape(&data.shape));
    let text = || format!("indices {} do not fit data {}", texts.0, texts.1);
    if indices.shape.len() != data.shape.len() {
        return fail(text());
    }
    for (i, (index, extent)) in indices.shape.iter().zip(&data.shape).enumerate() {
        if i != axis && index != extent {
            rule.at_most(index, extent, text)?;
        }
    }
    Ok(())
}

/// How many axes the last axis of `indices` addresses, after `batch_dims` leading ones.
fn addressed(
    rule: &Rule<'_>,
    data: &Value,
    indices: &Value,
    batch_dims: usize,
) -> Result<usize, ShapeError> {
    rule.indices(indices)?;
    let Some(last) = indices.shape.last() else {
        return fail("indices need at least one axis, found a scalar");
    };
    let Some(k) = last.as_const().and_then(|k| usize::try_from(k).ok()) else {
        let last = rule.show(last);
        return fail(format!("the last extent of indices must be a constant, found {last}"));
    };
    if batch_dims >= indices.shape.len() {
        let rank = indices.shape.len();
        return fail(format!("{batch_dims} batch axes are too many for indices of {rank} axes"));
    }
    match batch_dims.checked_add(k) {
        Some(n) if n <= data.shape.len() => Ok(k),
        _ => fail(format!(
            "indices address {k} axes after {batch_dims} batch axes, but the data has {}",
            data.shape.len()
        )),
    }
}

pub(super) fn gather_nd(mut rule: Rule<'_>, batch_dims: usize) -> Result<Inferred, ShapeError> {
    let [data, indices] = rule.operands()?;
    let k = addressed(&rule, data, indices, batch_dims)?;
    let (data_batch, index_batch) = (&data.shape[..batch_dims], &indices.shape[..batch_dims]);
    let mut shape = rule.equal_shapes(data_batch, index_batch, "batch axes")?;
    shape.extend_from_slice(&indices.shape[batch_dims..indices.shape.len() - 1]);
    shape.extend_from_slice(&data.shape[batch_dims + k..]);
    rule.one(data.dtype, shape)
}

fn combinable(
    rule: &Rule<'_>,
    data: &Value,
    reduction: ScatterReduction,
) -> Result<(), ShapeError> {
    if reduction != ScatterReduction::None {
        rule.type_of(data, |t| t != DType::Bool, "numbers when it combines")?;
    }
    Ok(())
}

pub(super) fn scatter_elements(
    mut rule: Rule<'_>,
    axis: usize,
    reduction: ScatterReduction,
) -> Result<Inferred, ShapeError> {
    let [data, indices, updates] = rule.operands()?;
    rule.same_type(data, updates)?;
    combinable(&rule, data, reduction)?;
    elementwise_indices(&mut rule, axis, data, indices)?;
    rule.equal_shapes(&updates.shape, &indices.shape, "updates and indices")?;
    rule.one(data.dtype, data.shape.clone())
}

pub(super) fn scatter_nd(
    mut rule: Rule<'_>,
    reduction: ScatterReduction,
) -> Result<Inferred, ShapeError> {
    let [data, indices, updates] = rule.operands()?;
    rule.same_type(data, updates)?;
    combinable(&rule, data, reduction)?;
    let k = addressed(&rule, data, indices, 0)?;
    let mut expected = indices.shape[..indices.shape.len() - 1].to_vec();
    expected.extend_from_slice(&data.shape[k..]);
    rule.equal_shapes(&updates.shape, &expected, "updates")?;
    rule.one(data.dtype, data.shape.clone())
}
