//! Masks of attention: what is added to scores or written over them, as one operand.

use super::matching::{add_float, scalar};
use aot_ir::op::{BinaryOp, UnaryOp};
use aot_ir::{DType, Graph, GraphError, Op, ValueId};

/// One thing that happens to scores before the softmax.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Masking {
    /// `scores + value * factor`.
    Add { value: ValueId, factor: f64 },
    /// `fill` (with the factor applied) where the condition is `filled`.
    Fill { condition: ValueId, filled: bool, fill: f64 },
}

/// Numbers from here down swallow any score they are added to, as if they had replaced it.
const SWALLOWS: f64 = -1e9;

impl Masking {
    /// What a selection between scores and a number does: the scores, and the masking.
    pub(super) fn of_select(
        g: &Graph,
        [condition, a, b]: [ValueId; 3],
        factor: f64,
    ) -> Option<(ValueId, Self)> {
        let (scores, filled, number) = match (scalar(g, a), scalar(g, b)) {
            (Some(number), None) => (b, true, number.as_f64()),
            (None, Some(number)) => (a, false, number.as_f64()),
            _ => return None,
        };
        let fill = number * factor;
        (factor > 0.0 && fill <= SWALLOWS)
            .then_some((scores, Self::Fill { condition, filled, fill }))
    }
}

/// One operand that masks as all of these do: a `Bool` where that is possible, else an addend.
pub(super) fn combine(
    g: &mut Graph,
    dtype: DType,
    maskings: &[Masking],
    name: &str,
) -> Result<Option<ValueId>, GraphError> {
    let excludes =
        |m: &Masking| matches!(m, Masking::Fill { fill, .. } if *fill == f64::NEG_INFINITY);
    let flags = !maskings.is_empty() && maskings.iter().all(excludes);
    let mut mask: Option<ValueId> = None;
    for masking in maskings {
        let next = match *masking {
            Masking::Add { value, factor: 1.0 } => value,
            Masking::Add { value, factor } => {
                let factor = add_float(g, dtype, factor, name)?;
                g.add1(Op::Binary(BinaryOp::Mul), &[value, factor], name)?
            }
            Masking::Fill { condition, filled: true, .. } if flags => {
                g.add1(Op::Unary(UnaryOp::Not), &[condition], name)?
            }
            Masking::Fill { condition, .. } if flags => condition,
            Masking::Fill { condition, filled, fill } => {
                // What was added before is written over: least numbers must not add up to −∞.
                let fill = add_float(g, dtype, fill, name)?;
                let before = match mask.take() {
                    Some(mask) => mask,
                    None => add_float(g, dtype, 0.0, name)?,
                };
                let (a, b) = if filled { (fill, before) } else { (before, fill) };
                g.add1(Op::Select, &[condition, a, b], name)?
            }
        };
        let op = if flags { BinaryOp::And } else { BinaryOp::Add };
        mask = Some(match mask {
            Some(mask) => g.add1(Op::Binary(op), &[mask, next], name)?,
            None => next,
        });
    }
    Ok(mask)
}
