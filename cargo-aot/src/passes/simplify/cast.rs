//! Rules for conversions.

use super::super::matching::node;
use super::super::rewriter::Candidate;
use aot_ir::{DType, Graph, GraphError, Op, ValueId};

/// Whether a conversion keeps every value.
fn lossless(from: DType, to: DType) -> bool {
    if from == to || from == DType::Bool {
        return true;
    }
    match (from.is_float(), to.is_float()) {
        (true, true) => {
            let narrow = DType::is_narrow_float;
            match (from, to) {
                (_, DType::F64) => true,
                (f, DType::F32) => f != DType::F64,
                // All but the powers of two fit the exponent of binary16, all that of bfloat16.
                (f, DType::F16) => narrow(f) && f != DType::F8E8M0,
                (f, DType::Bf16) => narrow(f),
                _ => false,
            }
        }
        (false, false) if to == DType::Bool => false,
        (false, false) => match (from.is_signed_int(), to.is_signed_int()) {
            (true, false) => false,
            (false, true) => to.bits() > from.bits(),
            _ => to.bits() >= from.bits(),
        },
        (false, true) => {
            let magnitude = from.bits() - u32::from(from.is_signed_int());
            match to {
                DType::F64 => magnitude <= 53,
                DType::F32 => magnitude <= 24,
                DType::F16 => magnitude <= 11,
                DType::Bf16 => magnitude <= 8,
                _ => false,
            }
        }
        (true, false) => false,
    }
}

pub(super) fn cast(
    g: &mut Graph,
    to: DType,
    c: Candidate<'_>,
) -> Result<Option<ValueId>, GraphError> {
    let [x] = *c.inputs else { return Ok(None) };
    if g[x].dtype == to {
        return Ok(Some(x));
    }
    let Some(inner) = node(g, x).filter(|n| matches!(n.op, Op::Cast(_))) else { return Ok(None) };
    let operand = inner.inputs[0];
    let (from, via) = (g[operand].dtype, g[x].dtype);
    // Integers saturate when they come from floats and wrap when they come from integers.
    let changes_rule = from.is_int() && via.is_float() && to.is_int() && from != to;
    if !lossless(from, via) || changes_rule {
        return Ok(None);
    }
    if from == to {
        return Ok(Some(operand));
    }
    g.add1(Op::Cast(to), &[operand], c.name).map(Some)
}
