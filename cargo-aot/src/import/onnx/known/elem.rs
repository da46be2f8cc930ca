//! One known element, and arithmetic on it.

use aot_ir::dim::{Atom, Cmp, Cond};
use aot_ir::op::{BinaryOp, UnaryOp};
use aot_ir::{DType, Dim, Scope};

/// Expressions with more atoms than this are computed at run time instead.
const MAX_ATOMS: usize = 96;

/// The value of one element.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) enum Elem {
    /// Of an integer tensor.
    Int(Dim),
    /// Of a `Bool` tensor.
    Bool(Cond),
    /// Of a float tensor: a quotient whose divisor is positive and whose parts are not both constant.
    Ratio(Dim, Dim),
    /// Of a float tensor.
    Float(f64),
}

fn truth(value: bool) -> Cond {
    if value { Cond::always() } else { Cond::Cmp(Cmp::Le, Dim::ONE, Dim::ZERO) }
}

fn not(cond: &Cond) -> Option<Cond> {
    if *cond == truth(false) {
        return Some(truth(true));
    }
    Some(match cond {
        Cond::Cmp(Cmp::Eq, a, b) => Cond::Cmp(Cmp::Ne, a.clone(), b.clone()),
        Cond::Cmp(Cmp::Ne, a, b) => Cond::Cmp(Cmp::Eq, a.clone(), b.clone()),
        Cond::Cmp(Cmp::Lt, a, b) => Cond::Cmp(Cmp::Le, b.clone(), a.clone()),
        Cond::Cmp(Cmp::Le, a, b) => Cond::Cmp(Cmp::Lt, b.clone(), a.clone()),
        Cond::All(parts) if parts.is_empty() => truth(false),
        Cond::All(_) => return None,
    })
}

/// The nearest value that the float type has.
pub(in super::super) fn round_to(dtype: DType, value: f64) -> f64 {
    match dtype {
        DType::F32 => f64::from(value as f32),
        DType::F16 => half::f16::from_f64(value).to_f64(),
        DType::Bf16 => half::bf16::from_f64(value).to_f64(),
        _ => value,
    }
}

/// A float as a quotient, if it is an integer over a small power of two.
fn as_ratio(value: f64) -> Option<(Dim, Dim)> {
    (0..=16).find_map(|k| {
        let den = 1i64 << k;
        let num = value * den as f64;
        (num.fract() == 0.0 && num.abs() < (1i64 << 40) as f64)
            .then(|| (Dim::from(num as i64), Dim::from(den)))
    })
}

fn ratio(num: Dim, den: Dim, dtype: DType, scope: &Scope<'_>) -> Option<Elem> {
    if let (Some(a), Some(b)) = (num.as_const(), den.as_const()) {
        return Some(Elem::Float(round_to(dtype, a as f64 / b as f64)));
    }
    if !scope.proves_nonneg(&(&den - 1)) {
        return None;
    }
    if !den.is(1) && scope.modulo(&num, &den).is(0) {
        return Some(Elem::Ratio(scope.floor_div(&num, &den), Dim::ONE));
    }
    Some(Elem::Ratio(num, den))
}

impl Elem {
    /// A boolean.
    pub(in super::super) fn truth(value: bool) -> Self {
        Self::Bool(truth(value))
    }

    /// The integer, if it is one.
    pub(in super::super) fn as_int(&self) -> Option<&Dim> {
        match self {
            Self::Int(d) => Some(d),
            _ => None,
        }
    }

    /// The boolean, if it is decided.
    pub(in super::super) fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(c) if c.is_always() => Some(true),
            Self::Bool(c) if *c == truth(false) => Some(false),
            _ => None,
        }
    }

    /// The number, if it is a constant.
    pub(in super::super) fn as_const(&self) -> Option<f64> {
        match self {
            Self::Int(d) => d.as_const().map(|v| v as f64),
            Self::Float(v) => Some(*v),
            Self::Bool(_) => self.as_bool().map(|b| f64::from(u8::from(b))),
            Self::Ratio(..) => None,
        }
    }

    fn dims(&self) -> Vec<&Dim> {
        fn of<'a>(cond: &'a Cond, out: &mut Vec<&'a Dim>) {
            match cond {
                Cond::Cmp(_, a, b) => out.extend([a, b]),
                Cond::All(parts) => parts.iter().for_each(|p| of(p, out)),
            }
        }
        match self {
            Self::Int(d) => vec![d],
            Self::Ratio(a, b) => vec![a, b],
            Self::Float(_) => Vec::new(),
            Self::Bool(cond) => {
                let mut out = Vec::new();
                of(cond, &mut out);
                out
            }
        }
    }

    /// Whether some atom, at any depth, satisfies `f`.
    pub(in super::super) fn any(&self, mut f: impl FnMut(&Atom) -> bool) -> bool {
        self.dims().into_iter().any(|d| d.any(&mut f))
    }

    /// Whether it is small enough to be kept as an expression.
    fn is_simple(&self) -> bool {
        let mut atoms = 0;
        for dim in self.dims() {
            dim.visit(&mut |_| atoms += 1);
        }
        atoms <= MAX_ATOMS
    }

    /// The element with atoms replaced.
    pub(in super::super) fn substitute(
        &self,
        scope: &Scope<'_>,
        f: &dyn Fn(&Atom) -> Option<Dim>,
    ) -> Option<Self> {
        let out = match self {
            Self::Int(d) => Self::Int(d.substitute(scope, f)),
            Self::Bool(c) => {
                let c = c.substitute(scope, f);
                Self::Bool(scope.decide_cond(&c).map_or(c, truth))
            }
            Self::Ratio(a, b) => {
                return ratio(a.substitute(scope, f), b.substitute(scope, f), DType::F64, scope);
            }
            Self::Float(v) => Self::Float(*v),
        };
        out.is_simple().then_some(out)
    }

    /// `f(self)` as the operator says, in elements of `dtype`.
    pub(in super::super) fn unary(
        &self,
        op: UnaryOp,
        dtype: DType,
        scope: &Scope<'_>,
    ) -> Option<Self> {
        Some(match (op, self) {
            (UnaryOp::Not, Self::Bool(c)) => Self::Bool(not(c)?),
            (UnaryOp::Neg, Self::Int(d)) => Self::Int(-d),
            (UnaryOp::Neg, Self::Ratio(a, b)) => Self::Ratio(-a, b.clone()),
            (UnaryOp::Abs, Self::Int(d)) => Self::Int(scope.max(d, &-d)),
            (UnaryOp::Relu, Self::Int(d)) => Self::Int(scope.max(d, &Dim::ZERO)),
            (UnaryOp::Floor, Self::Ratio(a, b)) => Self::Ratio(scope.floor_div(a, b), Dim::ONE),
            (UnaryOp::Ceil, Self::Ratio(a, b)) => Self::Ratio(scope.ceil_div(a, b), Dim::ONE),
            (UnaryOp::Round, Self::Ratio(_, b)) if b.is(1) => self.clone(),
            (UnaryOp::Sqrt, Self::Int(_)) | (_, Self::Bool(_) | Self::Ratio(..)) => return None,
            (_, Self::Float(v)) => {
                let v = *v;
                let value = match op {
                    UnaryOp::Neg => -v,
                    UnaryOp::Abs => v.abs(),
                    UnaryOp::Floor => v.floor(),
                    UnaryOp::Ceil => v.ceil(),
                    UnaryOp::Round => v.round_ties_even(),
                    UnaryOp::Reciprocal => 1.0 / v,
                    UnaryOp::Sqrt => v.sqrt(),
                    UnaryOp::Exp => v.exp(),
                    UnaryOp::Log => v.ln(),
                    UnaryOp::Relu if !v.is_nan() => v.max(0.0),
                    UnaryOp::IsNan => return Some(Self::truth(v.is_nan())),
                    _ => return None,
                };
                Self::Float(round_to(dtype, value))
            }
            _ => return None,
        })
        .filter(Self::is_simple)
    }

    /// `f(self, other)` as the operator says, for operands of `dtype`.
    pub(in super::super) fn binary(
        &self,
        op: BinaryOp,
        other: &Self,
        dtype: DType,
        scope: &Scope<'_>,
    ) -> Option<Self> {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => int_binary(op, a, b, dtype, scope),
            (Self::Bool(a), Self::Bool(b)) => bool_binary(op, a, b),
            (Self::Float(a), Self::Float(b)) => float_binary(op, *a, *b, dtype),
            (Self::Ratio(a, b), Self::Float(f)) => {
                let (c, d) = as_ratio(*f)?;
                ratio_binary(op, (a, b), (&c, &d), dtype, scope)
            }
            (Self::Float(f), Self::Ratio(c, d)) => {
                let (a, b) = as_ratio(*f)?;
                ratio_binary(op, (&a, &b), (c, d), dtype, scope)
            }
            (Self::Ratio(a, b), Self::Ratio(c, d)) => {
                ratio_binary(op, (a, b), (c, d), dtype, scope)
            }
            _ => None,
        }
        .filter(Self::is_simple)
    }

    /// `a` where the condition holds, else `b`.
    pub(in super::super) fn select(
        cond: &Self,
        a: &Self,
        b: &Self,
        scope: &Scope<'_>,
    ) -> Option<Self> {
        match cond.as_bool() {
            Some(true) => return Some(a.clone()),
            Some(false) => return Some(b.clone()),
            None if a == b => return Some(a.clone()),
            None => {}
        }
        let Self::Bool(c) = cond else { return None };
        match (a, b) {
            (Self::Int(a), Self::Int(b)) => Some(Self::Int(scope.select(c, a, b))),
            (Self::Bool(x), Self::Bool(_)) => match (a.as_bool(), b.as_bool()) {
                (Some(true), Some(false)) => Some(cond.clone()),
                (Some(false), Some(true)) => Some(Self::Bool(not(c)?)),
                (None, Some(false)) => Some(Self::Bool(c.clone().and(x.clone()))),
                _ => None,
            },
            (Self::Ratio(a, d), Self::Ratio(b, e)) if d == e => {
                Some(Self::Ratio(scope.select(c, a, b), d.clone()))
            }
            _ => None,
        }
        .filter(Self::is_simple)
    }

    /// Conversion as [`aot_ir::Op::Cast`] defines it.
    pub(in super::super) fn cast(&self, to: DType, scope: &Scope<'_>) -> Option<Self> {
        let fits = |v: i64| -> i64 {
            match to {
                DType::I32 => v.clamp(i32::MIN.into(), i32::MAX.into()),
                DType::U32 => v.clamp(0, u32::MAX.into()),
                DType::I16 => v.clamp(i16::MIN.into(), i16::MAX.into()),
                DType::U16 => v.clamp(0, u16::MAX.into()),
                DType::I8 => v.clamp(i8::MIN.into(), i8::MAX.into()),
                DType::U8 => v.clamp(0, u8::MAX.into()),
                _ => v,
            }
        };
        Some(match self {
            _ if to == DType::Bool => match self {
                Self::Bool(_) => self.clone(),
                Self::Int(d) => {
                    let cond = scope.cond(Cmp::Ne, d, &Dim::ZERO);
                    Self::Bool(cond)
                }
                Self::Ratio(a, _) => Self::Bool(scope.cond(Cmp::Ne, a, &Dim::ZERO)),
                Self::Float(v) => Self::truth(*v != 0.0),
            },
            Self::Int(d) if to.is_int() => match d.as_const() {
                Some(v) => Self::Int(fits(v).into()),
                None => self.clone(),
            },
            Self::Int(d) => match d.as_const() {
                Some(v) => Self::Float(round_to(to, v as f64)),
                None => Self::Ratio(d.clone(), Dim::ONE),
            },
            Self::Bool(c) if to.is_int() => Self::Int(scope.select(c, &Dim::ONE, &Dim::ZERO)),
            Self::Bool(_) => Self::Float(self.as_const()?),
            Self::Float(v) if to.is_int() => Self::Int(fits(*v as i64).into()),
            Self::Float(v) => Self::Float(round_to(to, *v)),
            Self::Ratio(a, b) if to.is_int() => {
                // Truncation is rounding down where the quotient is not negative.
                if !b.is(1) && !scope.proves_nonneg(a) {
                    return None;
                }
                Self::Int(scope.floor_div(a, b))
            }
            Self::Ratio(..) => self.clone(),
        })
    }
}

fn compare(op: BinaryOp, a: &Dim, b: &Dim, scope: &Scope<'_>) -> Option<Elem> {
    Some(Elem::Bool(match op {
        BinaryOp::Eq => scope.cond(Cmp::Eq, a, b),
        BinaryOp::Ne => scope.cond(Cmp::Ne, a, b),
        BinaryOp::Lt => scope.cond(Cmp::Lt, a, b),
        BinaryOp::Le => scope.cond(Cmp::Le, a, b),
        BinaryOp::Gt => scope.cond(Cmp::Lt, b, a),
        BinaryOp::Ge => scope.cond(Cmp::Le, b, a),
        _ => return None,
    }))
}

fn int_binary(op: BinaryOp, a: &Dim, b: &Dim, dtype: DType, scope: &Scope<'_>) -> Option<Elem> {
    if op.is_comparison() {
        return compare(op, a, b, scope);
    }
    let positive = |d: &Dim| scope.proves_nonneg(&(d - 1));
    let out = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Min => scope.min(a, b),
        BinaryOp::Max => scope.max(a, b),
        BinaryOp::Pow => match (a.as_const(), b.as_const()) {
            (Some(a), Some(b)) => Dim::from(a.checked_pow(u32::try_from(b).ok()?)?),
            (None, Some(n @ 0..=4)) => (0..n).fold(Dim::ONE, |p, _| &p * a),
            _ => return None,
        },
        _ => match (a.as_const(), b.as_const()) {
            (Some(x), Some(y)) => Dim::from(match op {
                BinaryOp::Div => x.checked_div(y)?,
                BinaryOp::Rem => x.checked_rem(y)?,
                BinaryOp::Mod if y > 0 => x.rem_euclid(y),
                BinaryOp::Mod if y < 0 => -((-x).rem_euclid(y.checked_neg()?)),
                BinaryOp::BitAnd => x & y,
                BinaryOp::BitOr => x | y,
                BinaryOp::BitXor => x ^ y,
                _ => return None,
            }),
            _ if !positive(b) => return None,
            _ => match op {
                BinaryOp::Div if scope.proves_nonneg(a) => scope.floor_div(a, b),
                BinaryOp::Rem if scope.proves_nonneg(a) => scope.modulo(a, b),
                BinaryOp::Mod => scope.modulo(a, b),
                _ => return None,
            },
        },
    };
    // What wraps is left to the type's own arithmetic.
    let wraps = matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Pow);
    (!wraps || scope.holds(dtype, &out)).then_some(Elem::Int(out))
}

fn bool_binary(op: BinaryOp, a: &Cond, b: &Cond) -> Option<Elem> {
    let (x, y) = (Elem::Bool(a.clone()).as_bool(), Elem::Bool(b.clone()).as_bool());
    let cond = match (op, x, y) {
        (BinaryOp::And, Some(false), _) | (BinaryOp::And, _, Some(false)) => truth(false),
        (BinaryOp::And, ..) => a.clone().and(b.clone()),
        (BinaryOp::Or, Some(true), _) | (BinaryOp::Or, _, Some(true)) => truth(true),
        (BinaryOp::Or | BinaryOp::Xor, Some(false), _) => b.clone(),
        (BinaryOp::Or | BinaryOp::Xor, _, Some(false)) => a.clone(),
        (BinaryOp::Eq, Some(true), _) => b.clone(),
        (BinaryOp::Eq, _, Some(true)) => a.clone(),
        (BinaryOp::Xor | BinaryOp::Ne, Some(true), _) | (BinaryOp::Eq, Some(false), _) => not(b)?,
        (BinaryOp::Xor | BinaryOp::Ne, _, Some(true)) | (BinaryOp::Eq, _, Some(false)) => not(a)?,
        (BinaryOp::Ne, Some(false), _) => b.clone(),
        (BinaryOp::Ne, _, Some(false)) => a.clone(),
        _ => return None,
    };
    Some(Elem::Bool(cond))
}

fn float_binary(op: BinaryOp, a: f64, b: f64, dtype: DType) -> Option<Elem> {
    let value = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div => a / b,
        BinaryOp::Pow => a.powf(b),
        BinaryOp::Min if !a.is_nan() && !b.is_nan() => a.min(b),
        BinaryOp::Max if !a.is_nan() && !b.is_nan() => a.max(b),
        BinaryOp::Eq => return Some(Elem::truth(a == b)),
        BinaryOp::Ne => return Some(Elem::truth(a != b)),
        BinaryOp::Lt => return Some(Elem::truth(a < b)),
        BinaryOp::Le => return Some(Elem::truth(a <= b)),
        BinaryOp::Gt => return Some(Elem::truth(a > b)),
        BinaryOp::Ge => return Some(Elem::truth(a >= b)),
        _ => return None,
    };
    Some(Elem::Float(round_to(dtype, value)))
}

fn ratio_binary(
    op: BinaryOp,
    (a, b): (&Dim, &Dim),
    (c, d): (&Dim, &Dim),
    dtype: DType,
    scope: &Scope<'_>,
) -> Option<Elem> {
    if op.is_comparison() {
        return compare(op, &(a * d), &(c * b), scope);
    }
    match op {
        BinaryOp::Add if b == d => ratio(a + c, b.clone(), dtype, scope),
        BinaryOp::Sub if b == d => ratio(a - c, b.clone(), dtype, scope),
        BinaryOp::Add => ratio(&(a * d) + &(c * b), b * d, dtype, scope),
        BinaryOp::Sub => ratio(&(a * d) - &(c * b), b * d, dtype, scope),
        BinaryOp::Mul => ratio(a * c, b * d, dtype, scope),
        BinaryOp::Div => ratio(a * d, b * c, dtype, scope),
        BinaryOp::Min if b == d => ratio(scope.min(a, c), b.clone(), dtype, scope),
        BinaryOp::Max if b == d => ratio(scope.max(a, c), b.clone(), dtype, scope),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_decided_stays_decided() {
        for value in [true, false] {
            let not = Elem::Bool(not(&truth(value)).unwrap());
            assert_eq!(not.as_bool(), Some(!value));
        }
    }
}
