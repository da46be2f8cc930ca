//! Rule of pooling.

use super::infer::{Inferred, ShapeError};
use super::rule::{Rule, fail};
use super::window::Windows;
use super::{PoolAttrs, PoolKind};

pub(super) fn pool(mut rule: Rule<'_>, attrs: &PoolAttrs) -> Result<Inferred, ShapeError> {
    let [x] = rule.operands()?;
    match attrs.kind {
        PoolKind::Max => rule.numeric(x)?,
        PoolKind::Average { .. } => rule.float(x)?,
        PoolKind::Lp(p) if p < 1 => {
            return fail(format!("the exponent is {p}, expected a positive number"));
        }
        PoolKind::Lp(_) => rule.float(x)?,
    };
    if x.shape.len() < 3 {
        let shape = rule.show_shape(&x.shape);
        return fail(format!("shape {shape} has no spatial axes after batch and channels"));
    }
    let PoolAttrs { kernel, strides, pads, dilations, .. } = attrs;
    let windows = Windows { kernel, strides, pads, dilations };
    let spatial = x.shape.len() - 2;
    windows.check(&mut rule, spatial)?;
    let mut shape = x.shape[..2].to_vec();
    for axis in 0..spatial {
        shape.push(windows.count_partial(&rule, axis, &x.shape[axis + 2], attrs.ceil_mode));
    }
    let result = shape[2..].to_vec();
    rule.extents(&result, "an extent of the result")?;
    rule.one(x.dtype, shape)
}
