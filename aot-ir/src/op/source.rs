//! Rules of operators without operands.

use super::infer::{Inferred, ShapeError};
use super::rule::{Rule, fail};
use crate::{DType, Dim, Scalar};

pub(super) fn iota(
    mut rule: Rule<'_>,
    shape: &[Dim],
    axis: usize,
    dtype: DType,
) -> Result<Inferred, ShapeError> {
    let [] = rule.operands()?;
    rule.axis(axis, shape.len())?;
    rule.extents(shape, "an extent")?;
    if dtype == DType::Bool {
        return fail("iota makes numbers, found bool");
    }
    rule.one(dtype, shape.to_vec())
}

pub(super) fn dims(rule: Rule<'_>, dims: &[Dim], scalar: bool) -> Result<Inferred, ShapeError> {
    let [] = rule.operands()?;
    dims.iter().try_for_each(|dim| rule.uniform(dim, "an element"))?;
    if scalar && dims.len() != 1 {
        return fail(format!("a scalar takes one dim, found {}", dims.len()));
    }
    let shape = if scalar { Vec::new() } else { vec![Dim::from(dims.len() as i64)] };
    rule.one(DType::I64, shape)
}

pub(super) fn fill(
    mut rule: Rule<'_>,
    shape: &[Dim],
    value: Scalar,
    dtype: DType,
) -> Result<Inferred, ShapeError> {
    let [] = rule.operands()?;
    rule.extents(shape, "an extent")?;
    let fits = match value {
        Scalar::Bool(_) => dtype == DType::Bool,
        Scalar::Int(_) => dtype.is_int() || dtype.is_float(),
        Scalar::Float(_) => dtype.is_float(),
    };
    if !fits {
        return fail(format!("the value {value} is no {dtype}"));
    }
    rule.one(dtype, shape.to_vec())
}
