//! Expressions that are zero in padding.

use super::interpret::{Num, binary, cast, unary};
use aot_ir::dim::{Cond, VarId};
use aot_ir::op::{BinaryOp, UnaryOp};
use aot_kernels::group::{Expr, ExprId, FoldOp, Typed};

/// What is known of an expression where a variable is past its extent.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Its value, up to rounding.
    value: Option<Num>,
    /// It is zero, whatever the rounding.
    zero: bool,
}

impl Known {
    const NOTHING: Self = Self { value: None, zero: false };

    fn finite(self) -> bool {
        self.value.is_some_and(|v| v.float().is_finite())
    }
}

/// Whether an expression is zero wherever `var` is past its extent. Loads whose place depends on `var` are of
/// padding there, or `inside` is among their guards.
pub(super) fn is_zero_past(exprs: &[Typed], id: ExprId, var: VarId, inside: &Cond) -> bool {
    let mut known: Vec<Known> = Vec::with_capacity(id.index() + 1);
    for typed in &exprs[..=id.index()] {
        let here = of(exprs, typed, &known, var, inside);
        known.push(here);
    }
    known[id.index()].zero
}

fn of(exprs: &[Typed], typed: &Typed, known: &[Known], var: VarId, inside: &Cond) -> Known {
    let part = |id: ExprId| known[id.index()];
    let value = |id: ExprId| part(id).value;
    match &typed.expr {
        Expr::Const(scalar) => {
            Known { value: Some(Num::of(*scalar)), zero: scalar.as_f64() == 0.0 }
        }
        Expr::Load { offset, guard, other, .. } => {
            let zero = other.as_f64() == 0.0;
            if has(guard, inside) {
                Known { value: Some(Num::of(*other)), zero }
            } else if offset.uses(var) && (zero || guard.is_always()) {
                Known { value: Some(Num::F(0.0)), zero: true }
            } else {
                Known::NOTHING
            }
        }
        Expr::Unary(op, x) => {
            let odd = matches!(
                op,
                UnaryOp::Neg
                    | UnaryOp::Abs
                    | UnaryOp::Sign
                    | UnaryOp::Relu
                    | UnaryOp::Sqrt
                    | UnaryOp::Sin
                    | UnaryOp::Tanh
                    | UnaryOp::Erf
            );
            Known { value: value(*x).map(|x| unary(*op, x)), zero: odd && part(*x).zero }
        }
        Expr::Binary(op, a, b) => {
            let (x, y) = (part(*a), part(*b));
            let zero = match op {
                BinaryOp::Add | BinaryOp::Sub | BinaryOp::Min | BinaryOp::Max => x.zero && y.zero,
                BinaryOp::Mul => (x.zero && y.finite()) || (x.finite() && y.zero),
                BinaryOp::Div => x.zero && y.value.is_some_and(|y| y.float().abs() > 1e-6),
                _ => false,
            };
            let (both, dtype) = (x.value.zip(y.value), exprs[a.index()].dtype);
            Known { value: both.map(|(x, y)| binary(*op, x, y, dtype)), zero }
        }
        Expr::Select(c, a, b) => match value(*c) {
            Some(c) => part(if c.truth() { *a } else { *b }),
            None => Known { value: None, zero: part(*a).zero && part(*b).zero },
        },
        Expr::Cast { value: x, to } if to.is_float() => {
            Known { value: value(*x).map(|x| cast(x, *to)), zero: part(*x).zero }
        }
        Expr::Fold { op: FoldOp::Sum, body, .. } if part(*body).zero => part(*body),
        _ => Known::NOTHING,
    }
}

/// Whether a condition is among those that `guard` is made of.
fn has(guard: &Cond, part: &Cond) -> bool {
    guard == part || matches!(guard, Cond::All(all) if all.iter().any(|c| c == part))
}
