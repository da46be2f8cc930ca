//! Rule of interpolation.

use super::infer::{Inferred, ShapeError};
use super::rule::{Rule, fail};
use super::{ResizeAttrs, ResizeMode};
use crate::{Dim, Scalar};

pub(super) fn resize(mut rule: Rule<'_>, attrs: &ResizeAttrs) -> Result<Inferred, ShapeError> {
    let [x] = rule.operands()?;
    rule.numeric(x)?;
    rule.per_axis("sizes", attrs.sizes.len(), x.shape.len())?;
    rule.per_axis("scales", attrs.scales.len(), x.shape.len())?;
    rule.extents(&attrs.sizes, "a size")?;
    for scale in attrs.scales.iter().flatten() {
        match scale {
            Scalar::Float(f) if f.is_finite() && *f > 0.0 => {}
            other => return fail(format!("a scale is {other}, expected a positive float")),
        }
    }
    if let ResizeMode::Cubic(a) = attrs.mode
        && !matches!(a, Scalar::Float(f) if f.is_finite())
    {
        return fail(format!("the cubic coefficient {a} is no finite float"));
    }
    for (extent, size) in x.shape.iter().zip(&attrs.sizes) {
        if extent != size && !size.is(0) {
            rule.at_most(&Dim::ONE, extent, || "there is nothing to sample".to_owned())?;
        }
    }
    rule.one(x.dtype, attrs.sizes.clone())
}
