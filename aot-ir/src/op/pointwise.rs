//! Rules of pointwise operators.

use super::infer::{Inferred, ShapeError};
use super::rule::Rule;
use super::{BinaryOp, UnaryOp};
use crate::DType;

pub(super) fn unary(rule: Rule<'_>, op: UnaryOp) -> Result<Inferred, ShapeError> {
    let [x] = rule.operands()?;
    match op {
        UnaryOp::Not => rule.type_of(x, |t| t == DType::Bool, "bool")?,
        UnaryOp::BitNot => rule.type_of(x, DType::is_int, "integers")?,
        UnaryOp::Neg
        | UnaryOp::Abs
        | UnaryOp::Sign
        | UnaryOp::Floor
        | UnaryOp::Ceil
        | UnaryOp::Round
        | UnaryOp::Relu => rule.numeric(x)?,
        _ => rule.float(x)?,
    };
    rule.one(if op.is_predicate() { DType::Bool } else { x.dtype }, x.shape.clone())
}

pub(super) fn binary(mut rule: Rule<'_>, op: BinaryOp) -> Result<Inferred, ShapeError> {
    let [a, b] = rule.operands()?;
    let dtype = rule.same_type(a, b)?;
    match op {
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => {
            rule.type_of(a, |t| t == DType::Bool, "bool")?;
        }
        BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor | BinaryOp::Shl | BinaryOp::Shr => {
            rule.type_of(a, DType::is_int, "integers")?;
        }
        BinaryOp::Atan2 => {
            rule.float(a)?;
        }
        BinaryOp::Eq | BinaryOp::Ne => {}
        _ => {
            rule.numeric(a)?;
        }
    }
    let shape = rule.broadcast(&a.shape, &b.shape)?;
    rule.one(if op.is_comparison() { DType::Bool } else { dtype }, shape)
}

pub(super) fn select(mut rule: Rule<'_>) -> Result<Inferred, ShapeError> {
    let [condition, a, b] = rule.operands()?;
    rule.type_of(condition, |t| t == DType::Bool, "a bool condition")?;
    let dtype = rule.same_type(a, b)?;
    let shape = rule.broadcast(&a.shape, &b.shape)?;
    let shape = rule.broadcast(&condition.shape, &shape)?;
    rule.one(dtype, shape)
}

pub(super) fn cast(rule: Rule<'_>, dtype: DType) -> Result<Inferred, ShapeError> {
    let [x] = rule.operands()?;
    rule.one(dtype, x.shape.clone())
}
