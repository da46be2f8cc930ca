//! Integer and boolean arithmetic: computed in 64 bits and wrapped to the type's width.

use super::super::error::ExecError;
use super::super::support::Rows;
use super::super::tensor::{Tensor, wrap};
use super::pointwise::update;
use crate::DType;
use crate::op::{BinaryOp, UnaryOp};

pub(super) fn unary(op: UnaryOp, x: &Tensor) -> Tensor {
    let dtype = x.dtype();
    let unsigned = !dtype.is_signed_int();
    let f = |v: i64| match op {
        UnaryOp::Neg => v.wrapping_neg(),
        UnaryOp::Abs if unsigned => v,
        UnaryOp::Abs => v.wrapping_abs(),
        UnaryOp::Sign if unsigned => i64::from(v != 0),
        UnaryOp::Sign => v.signum(),
        UnaryOp::Relu if unsigned => v,
        UnaryOp::Relu => v.max(0),
        UnaryOp::BitNot => !v,
        // Rounding an integer changes nothing.
        _ => v,
    };
    let values = x.to_i64().into_iter().map(f).collect();
    Tensor::from_i64(dtype, x.shape().to_vec(), values)
}

/// `f(target, other)`, or `f(other, target)` when `swap`; `rows` walks `other` over the target's shape.
pub(super) fn binary(
    op: BinaryOp,
    target: &Tensor,
    other: &Tensor,
    rows: &Rows<1>,
    swap: bool,
) -> Result<Tensor, ExecError> {
    let dtype = target.dtype();
    let (mut x, y) = (target.to_i64(), other.to_i64());
    let f = function(op, dtype)?;
    if swap {
        update(&mut x, &y, rows, 2, |x, y| f(y, x));
    } else {
        update(&mut x, &y, rows, 2, f);
    }
    Ok(Tensor::from_i64(dtype, target.shape().to_vec(), x))
}

/// The function on values of the type that are held as `i64` (`U64` wrapped).
fn function(op: BinaryOp, dtype: DType) -> Result<fn(i64, i64) -> i64, ExecError> {
    let wide_unsigned = dtype == DType::U64;
    Ok(match op {
        BinaryOp::Add => i64::wrapping_add,
        BinaryOp::Sub => i64::wrapping_sub,
        BinaryOp::Mul => i64::wrapping_mul,
        BinaryOp::Div if wide_unsigned => {
            |a, b| (a as u64).checked_div(b as u64).unwrap_or(0) as i64
        }
        BinaryOp::Div => |a, b| if b == 0 { 0 } else { a.wrapping_div(b) },
        BinaryOp::Mod | BinaryOp::Rem if wide_unsigned => {
            |a, b| (a as u64).checked_rem(b as u64).unwrap_or(0) as i64
        }
        BinaryOp::Rem => |a, b| if b == 0 { 0 } else { a.wrapping_rem(b) },
        BinaryOp::Mod => |a, b| {
            let rest = if b == 0 { 0 } else { a.wrapping_rem(b) };
            if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }
        },
        BinaryOp::Pow if !dtype.is_signed_int() => |a, b| power(a, b as u64),
        BinaryOp::Pow => |a, b| match (u64::try_from(b), a) {
            (Ok(exponent), _) => power(a, exponent),
            (Err(_), 1) => 1,
            (Err(_), -1) => 1 - 2 * (b & 1),
            (Err(_), _) => 0,
        },
        BinaryOp::Min if wide_unsigned => |a, b| (a as u64).min(b as u64) as i64,
        BinaryOp::Min => i64::min,
        BinaryOp::Max if wide_unsigned => |a, b| (a as u64).max(b as u64) as i64,
        BinaryOp::Max => i64::max,
        BinaryOp::And | BinaryOp::BitAnd => |a, b| a & b,
        BinaryOp::Or | BinaryOp::BitOr => |a, b| a | b,
        BinaryOp::Xor | BinaryOp::BitXor => |a, b| a ^ b,
        BinaryOp::Shl | BinaryOp::Shr => return Ok(shift(op == BinaryOp::Shl, dtype)),
        other => {
            return Err(ExecError::value(format!("{} takes no {dtype}", other.name())));
        }
    })
}

/// Shifts; by the width or more (or a negative amount) nothing but the sign is left.
fn shift(left: bool, dtype: DType) -> fn(i64, i64) -> i64 {
    macro_rules! of_width {
        ($($bits:literal),*) => {
            match (dtype.bits(), left, dtype.is_signed_int()) {
                $(
                    ($bits, true, _) => |a, b| if (0..$bits).contains(&b) { a << b } else { 0 },
                    ($bits, false, true) => {
                        |a, b| a >> if (0..$bits).contains(&b) { b } else { $bits - 1 }
                    }
                    ($bits, false, false) => |a, b| {
                        if (0..$bits).contains(&b) { (a as u64 >> b) as i64 } else { 0 }
                    },
                )*
                _ => |a, _| a,
            }
        };
    }
    of_width!(4, 8, 16, 32, 64)
}

fn power(base: i64, exponent: u64) -> i64 {
    let (mut result, mut base, mut exponent) = (1i64, base, exponent);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    result
}

/// The product of two integers, wrapped to a type.
pub(super) fn multiply(dtype: DType, a: i64, b: i64) -> i64 {
    wrap(dtype, a.wrapping_mul(b))
}
