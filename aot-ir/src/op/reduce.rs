//! Rules of reductions and scans.

use super::ReduceOp;
use super::infer::{Inferred, ShapeError};
use super::rule::Rule;
use crate::{DType, Dim};

/// The shape without the axes, or with extent 1 there.
fn reduced(shape: &[Dim], axes: &[usize], keep_dims: bool) -> Vec<Dim> {
    let kept = shape.iter().enumerate().filter_map(|(i, dim)| match axes.contains(&i) {
        false => Some(dim.clone()),
        true => keep_dims.then_some(Dim::ONE),
    });
    kept.collect()
}

pub(super) fn reduce(
    rule: Rule<'_>,
    op: ReduceOp,
    axes: &[usize],
    keep_dims: bool,
) -> Result<Inferred, ShapeError> {
    let [x] = rule.operands()?;
    rule.axes(axes, x.shape.len())?;
    if !matches!(op, ReduceOp::Max | ReduceOp::Min) {
        rule.numeric(x)?;
    }
    rule.one(x.dtype, reduced(&x.shape, axes, keep_dims))
}

pub(super) fn arg(
    mut rule: Rule<'_>,
    axis: usize,
    keep_dims: bool,
) -> Result<Inferred, ShapeError> {
    let [x] = rule.operands()?;
    rule.numeric(x)?;
    rule.axis(axis, x.shape.len())?;
    rule.at_most(&Dim::ONE, &x.shape[axis], || "the axis is empty".to_owned())?;
    rule.one(DType::I64, reduced(&x.shape, &[axis], keep_dims))
}

pub(super) fn scan(rule: Rule<'_>, axis: usize) -> Result<Inferred, ShapeError> {
    let [x] = rule.operands()?;
    rule.numeric(x)?;
    rule.axis(axis, x.shape.len())?;
    rule.one(x.dtype, x.shape.clone())
}
