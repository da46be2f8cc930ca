//! Rules of matrix products and convolutions.

use super::ConvAttrs;
use super::infer::{Inferred, ShapeError};
use super::rule::{Rule, fail};
use super::window::Windows;
use crate::{Dim, Value};

pub(super) fn matmul(mut rule: Rule<'_>) -> Result<Inferred, ShapeError> {
    let [a, b] = rule.operands()?;
    let dtype = rule.same_type(a, b)?;
    rule.numeric(a)?;
    let texts = (rule.show_shape(&a.shape), rule.show_shape(&b.shape));
    let ([a_lead @ .., m, k], [b_lead @ .., k2, n]) = (a.shape.as_slice(), b.shape.as_slice())
    else {
        return fail(format!("shapes {} and {}: both need two axes or more", texts.0, texts.1));
    };
    rule.equal(k, k2, || format!("inner extents of {} and {} differ", texts.0, texts.1))?;
    let mut shape = rule.broadcast(a_lead, b_lead)?;
    shape.extend([m.clone(), n.clone()]);
    rule.one(dtype, shape)
}

/// Checks what convolutions share; gives the number of spatial axes.
fn operands<'a>(
    rule: &mut Rule<'a>,
    attrs: &ConvAttrs,
) -> Result<(&'a Value, &'a Value, usize), ShapeError> {
    let [x, w] = rule.operands()?;
    rule.same_type(x, w)?;
    rule.numeric(x)?;
    let texts = (rule.show_shape(&x.shape), rule.show_shape(&w.shape));
    if x.shape.len() < 3 || x.shape.len() != w.shape.len() {
        return fail(format!(
            "shapes {} and {}: both need the same number of axes, three or more",
            texts.0, texts.1
        ));
    }
    if attrs.groups < 1 {
        return fail(format!("there are {} groups, expected one or more", attrs.groups));
    }
    let spatial = x.shape.len() - 2;
    windows(attrs, w).check(rule, spatial)?;
    Ok((x, w, spatial))
}

fn windows<'a>(attrs: &'a ConvAttrs, w: &'a Value) -> Windows<'a> {
    let ConvAttrs { strides, pads, dilations, .. } = attrs;
    Windows { kernel: &w.shape[2..], strides, pads, dilations }
}

fn divisible(rule: &mut Rule<'_>, channels: &Dim, groups: i64) -> Result<(), ShapeError> {
    let rest = rule.scope.modulo(channels, &Dim::from(groups));
    rule.equal(&rest, &Dim::ZERO, || {
        format!("{channels} channels can't be divided into {groups} groups")
    })?;
    Ok(())
}

pub(super) fn conv(mut rule: Rule<'_>, attrs: &ConvAttrs) -> Result<Inferred, ShapeError> {
    let (x, w, spatial) = operands(&mut rule, attrs)?;
    let channels = w.shape[1].scaled(attrs.groups);
    rule.equal(&x.shape[1], &channels, || {
        format!("the operand's channels and the kernel's ({} groups)", attrs.groups)
    })?;
    divisible(&mut rule, &w.shape[0], attrs.groups)?;
    let mut shape = vec![x.shape[0].clone(), w.shape[0].clone()];
    for axis in 0..spatial {
        shape.push(windows(attrs, w).count(&rule, axis, &x.shape[axis + 2]));
    }
    let result = shape[2..].to_vec();
    rule.extents(&result, "an extent of the result")?;
    rule.one(x.dtype, shape)
}

pub(super) fn conv_transpose(
    mut rule: Rule<'_>,
    attrs: &ConvAttrs,
    output_padding: &[i64],
) -> Result<Inferred, ShapeError> {
    let (x, w, spatial) = operands(&mut rule, attrs)?;
    if output_padding.len() != spatial {
        let len = output_padding.len();
        return fail(format!(
            "output padding has {len} entries, expected one per spatial axis: {spatial}"
        ));
    }
    if let Some(bad) = output_padding.iter().find(|&&v| v < 0) {
        return fail(format!("an output padding is {bad}, which is negative"));
    }
    rule.equal(&x.shape[1], &w.shape[0], || "the operand's channels and the kernel's".to_owned())?;
    divisible(&mut rule, &w.shape[0], attrs.groups)?;
    let mut shape = vec![x.shape[0].clone(), w.shape[1].scaled(attrs.groups)];
    for (axis, &added) in output_padding.iter().enumerate() {
        let (low, high) = &attrs.pads[axis];
        let span = windows(attrs, w).span(axis);
        let reach = (&x.shape[axis + 2] - 1).scaled(attrs.strides[axis]) + span;
        shape.push(reach - low - high + added);
    }
    let result = shape[2..].to_vec();
    rule.extents(&result, "an extent of the result")?;
    rule.one(x.dtype, shape)
}
