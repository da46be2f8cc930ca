//! Rules of attention, softmax and normalisation.

use super::AttentionAttrs;
use super::infer::{Inferred, ShapeError};
use super::rule::{Rule, fail};
use crate::{DType, Scalar};

pub(super) fn attention(
    mut rule: Rule<'_>,
    attrs: &AttentionAttrs,
) -> Result<Inferred, ShapeError> {
    let count = if attrs.has_mask { 4 } else { 3 };
    let operands = rule.all_operands(count)?;
    let [q, k, v, mask @ ..] = operands else { return Err(rule.wrong_count("3 or 4")) };
    if operands.len() != count {
        return Err(rule.wrong_count(&count.to_string()));
    }
    let dtype = rule.float(q)?;
    rule.same_type(q, k)?;
    rule.same_type(q, v)?;
    if !matches!(attrs.scale, Scalar::Float(_)) {
        return fail(format!("the scale {} is no float", attrs.scale));
    }
    let texts: Vec<String> = [q, k, v].iter().map(|x| rule.show_shape(&x.shape)).collect();
    let shapes = (q.shape.as_slice(), k.shape.as_slice(), v.shape.as_slice());
    let ([q_lead @ .., s, d], [k_lead @ .., t, d2], [v_lead @ .., t2, e]) = shapes else {
        return fail(format!("shapes {}: all need two axes or more", texts.join(", ")));
    };
    let text = |what: &str| format!("{what} of {} differ", texts.join(", "));
    rule.equal(d, d2, || text("widths of queries and keys"))?;
    let t = rule.equal(t, t2, || text("numbers of keys and values"))?;
    let lead = rule.broadcast(q_lead, k_lead)?;
    let mut shape = rule.broadcast(&lead, v_lead)?;
    if let [mask] = mask {
        if mask.dtype != DType::Bool && mask.dtype != dtype {
            return fail(format!("the mask is {}, expected bool or {dtype}", mask.dtype));
        }
        let mut scores = shape.clone();
        scores.extend([s.clone(), t]);
        rule.broadcast_to(&mask.shape, &scores)?;
    }
    shape.extend([s.clone(), e.clone()]);
    rule.one(dtype, shape)
}

pub(super) fn softmax(rule: Rule<'_>, axis: usize) -> Result<Inferred, ShapeError> {
    let [x] = rule.operands()?;
    rule.float(x)?;
    rule.axis(axis, x.shape.len())?;
    rule.one(x.dtype, x.shape.clone())
}

pub(super) fn normalize(
    rule: Rule<'_>,
    axes: &[usize],
    epsilon: Scalar,
) -> Result<Inferred, ShapeError> {
    let [x] = rule.operands()?;
    rule.float(x)?;
    rule.axes(axes, x.shape.len())?;
    if !matches!(epsilon, Scalar::Float(_)) {
        return fail(format!("epsilon {epsilon} is no float"));
    }
    rule.one(x.dtype, x.shape.clone())
}
