//! Rules of operators that move elements.

use super::PadMode;
use super::infer::{Inferred, ShapeError};
use super::rule::{Rule, fail};
use crate::Dim;
use crate::dim::Cmp;

pub(super) fn reshape(mut rule: Rule<'_>, shape: &[Dim]) -> Result<Inferred, ShapeError> {
    let [x] = rule.operands()?;
    rule.extents(shape, "an extent")?;
    let (found, wanted): (Dim, Dim) = (x.shape.iter().product(), shape.iter().product());
    let texts = (rule.show_shape(&x.shape), rule.show_shape(shape));
    rule.equal(&found, &wanted, || format!("shape {} can't be reshaped to {}", texts.0, texts.1))?;
    rule.one(x.dtype, shape.to_vec())
}

pub(super) fn transpose(rule: Rule<'_>, perm: &[usize]) -> Result<Inferred, ShapeError> {
    let [x] = rule.operands()?;
    rule.per_axis("the permutation", perm.len(), x.shape.len())?;
    let mut seen = vec![false; perm.len()];
    for &axis in perm {
        rule.axis(axis, perm.len())?;
        if std::mem::replace(&mut seen[axis], true) {
            return fail(format!("{perm:?} is no permutation: {axis} occurs twice"));
        }
    }
    rule.one(x.dtype, perm.iter().map(|&axis| x.shape[axis].clone()).collect())
}

pub(super) fn slice(
    mut rule: Rule<'_>,
    starts: &[Dim],
    sizes: &[Dim],
    steps: &[i64],
) -> Result<Inferred, ShapeError> {
    let [x] = rule.operands()?;
    let rank = x.shape.len();
    rule.per_axis("starts", starts.len(), rank)?;
    rule.per_axis("sizes", sizes.len(), rank)?;
    rule.per_axis("steps", steps.len(), rank)?;
    rule.extents(sizes, "the size of a slice")?;
    for axis in 0..rank {
        let (start, size, step, extent) =
            (&starts[axis], &sizes[axis], steps[axis], &x.shape[axis]);
        rule.uniform(start, "the start of a slice")?;
        if step == 0 {
            return fail(format!("the step along axis {axis} is 0"));
        }
        if size.is(0) || (start.is(0) && step == 1 && size == extent) {
            continue;
        }
        let last = start + (size - 1).scaled(step);
        let (low, high) = if step > 0 { (start.clone(), last) } else { (last, start.clone()) };
        let text = format!("the slice leaves axis {axis} of shape {}", rule.show_shape(&x.shape));
        // An empty slice may lie anywhere.
        if rule.scope.decide(Cmp::Le, &Dim::ONE, size) == Some(true) {
            rule.at_most(&Dim::ZERO, &low, || text.clone())?;
            rule.at_most(&high, &(extent - 1), || text)?;
        } else {
            let empty = crate::dim::Cond::Cmp(Cmp::Lt, size.clone(), Dim::ONE);
            let low = rule.scope.select(&empty, &Dim::ZERO, &low);
            let high = rule.scope.select(&empty, &Dim::from(-1), &high);
            rule.at_most(&Dim::ZERO, &low, || text.clone())?;
            rule.at_most(&high, &(extent - 1), || text)?;
        }
    }
    rule.one(x.dtype, sizes.to_vec())
}

pub(super) fn pad(
    mut rule: Rule<'_>,
    low: &[Dim],
    high: &[Dim],
    mode: PadMode,
) -> Result<Inferred, ShapeError> {
    let [x] = rule.operands()?;
    rule.per_axis("low", low.len(), x.shape.len())?;
    rule.per_axis("high", high.len(), x.shape.len())?;
    let mut shape = Vec::with_capacity(x.shape.len());
    for ((extent, low), high) in x.shape.iter().zip(low).zip(high) {
        rule.uniform(low, "the padding before")?;
        rule.uniform(high, "the padding after")?;
        let padded = extent + low + high;
        rule.extent(&padded, "the padded extent")?;
        let added = !(low.is(0) && high.is(0));
        if added && !padded.is(0) && !matches!(mode, PadMode::Constant(_)) {
            rule.at_most(&Dim::ONE, extent, || {
                "an axis without elements can be padded with a constant only".to_owned()
            })?;
        }
        shape.push(padded);
    }
    rule.one(x.dtype, shape)
}

pub(super) fn expand(mut rule: Rule<'_>, shape: &[Dim]) -> Result<Inferred, ShapeError> {
    let [x] = rule.operands()?;
    rule.extents(shape, "an extent")?;
    rule.broadcast_to(&x.shape, shape)?;
    rule.one(x.dtype, shape.to_vec())
}

pub(super) fn concat(mut rule: Rule<'_>, axis: usize) -> Result<Inferred, ShapeError> {
    let [first, rest @ ..] = rule.all_operands(1)? else {
        return Err(rule.wrong_count("at least 1"));
    };
    rule.axis(axis, first.shape.len())?;
    let mut shape = first.shape.clone();
    for other in rest {
        rule.same_type(first, other)?;
        if other.shape.len() != shape.len() {
            let texts = (rule.show_shape(&first.shape), rule.show_shape(&other.shape));
            return fail(format!("shapes {} and {} differ in rank", texts.0, texts.1));
        }
        let texts = (rule.show_shape(&first.shape), rule.show_shape(&other.shape));
        for (i, extent) in other.shape.iter().enumerate() {
            shape[i] = if i == axis {
                &shape[i] + extent
            } else {
                rule.equal(&shape[i], extent, || {
                    format!("shapes {} and {} differ along axis {i}", texts.0, texts.1)
                })?
            };
        }
    }
    rule.one(first.dtype, shape)
}
