//! Values of scalar expressions.

use super::{InterpretError, Memory};
use aot_ir::dim::{Atom, VarId};
use aot_ir::exec::NarrowFloat;
use aot_ir::op::{BinaryOp, UnaryOp};
use aot_ir::{DType, Dim, Scalar};
use aot_kernels::group::{Expr, ExprId, FoldOp, Group};
use half::{bf16, f16};
use std::cell::{Cell, RefCell};

/// A scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::lower) enum Num {
    B(bool),
    I(i64),
    F(f64),
}

impl Num {
    pub(in crate::lower) fn of(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Bool(b) => Self::B(b),
            Scalar::Int(i) => Self::I(i),
            Scalar::Float(f) => Self::F(f),
        }
    }

    pub(in crate::lower) fn float(self) -> f64 {
        match self {
            Self::B(b) => f64::from(u8::from(b)),
            Self::I(i) => i as f64,
            Self::F(f) => f,
        }
    }

    pub(super) fn int(self) -> i64 {
        match self {
            Self::B(b) => b.into(),
            Self::I(i) => i,
            Self::F(f) => f as i64,
        }
    }

    pub(in crate::lower) fn truth(self) -> bool {
        match self {
            Self::B(b) => b,
            Self::I(i) => i != 0,
            Self::F(f) => f != 0.0,
        }
    }
}

/// One place of a group: values of variables, results of the anchor.
pub(super) struct Place<'a> {
    pub(super) group: &'a Group,
    pub(super) memory: &'a Memory,
    atoms: &'a [i64],
    vars: RefCell<Vec<i64>>,
    acc: Vec<Num>,
    /// Expressions that several others are made of: at which moment one was evaluated, and its value.
    known: RefCell<Vec<Option<(u64, Num)>>>,
    shared: Vec<bool>,
    /// Counts changes of variables and results.
    moment: Cell<u64>,
}

type Result<T> = std::result::Result<T, InterpretError>;

impl<'a> Place<'a> {
    /// The group's first place, without results.
    pub(super) fn new(group: &'a Group, memory: &'a Memory, atoms: &'a [i64]) -> Self {
        let mut users = vec![0; group.exprs.len()];
        for i in 0..group.exprs.len() {
            group.parts(ExprId(i as u32), &mut |part| users[part.index()] += 1);
        }
        Self {
            group,
            memory,
            atoms,
            vars: RefCell::new(vec![0; group.extents.len()]),
            acc: Vec::new(),
            known: RefCell::new(vec![None; group.exprs.len()]),
            shared: users.into_iter().map(|n| n > 1).collect(),
            moment: Cell::new(0),
        }
    }

    pub(super) fn set(&self, var: VarId, value: i64) {
        self.vars.borrow_mut()[var.0 as usize] = value;
        self.moment.set(self.moment.get() + 1);
    }

    /// Says what the anchor gives here.
    pub(super) fn set_results(&mut self, results: Vec<Num>) {
        self.acc = results;
        self.moment.set(self.moment.get() + 1);
    }

    /// Adds what a further stage of the anchor gives here.
    pub(super) fn add_result(&mut self, result: Num) {
        self.acc.push(result);
        self.moment.set(self.moment.get() + 1);
    }

    /// The value of an integer expression.
    pub(super) fn dim(&self, dim: &Dim) -> Result<i64> {
        Ok(dim.eval(&|atom: &Atom| self.atom(atom))?)
    }

    pub(super) fn holds(&self, cond: &aot_ir::dim::Cond) -> Result<bool> {
        Ok(cond.eval(&|atom: &Atom| self.atom(atom))?)
    }

    fn atom(&self, atom: &Atom) -> Option<i64> {
        match atom {
            Atom::Sym(s) => self.atoms.get(s.0 as usize).copied(),
            Atom::Var(v) => self.vars.borrow().get(v.0 as usize).copied(),
            Atom::Value(v) => self.eval(ExprId(*v)).ok().map(Num::int),
            _ => None,
        }
    }

    pub(super) fn eval(&self, id: ExprId) -> Result<Num> {
        if !self.shared[id.index()] {
            return self.evaluate(id);
        }
        let now = self.moment.get();
        if let Some((moment, value)) = self.known.borrow()[id.index()]
            && moment == now
        {
            return Ok(value);
        }
        let value = self.evaluate(id)?;
        // Where it folds, variables were moved and put back: it holds from now on.
        self.known.borrow_mut()[id.index()] = Some((self.moment.get(), value));
        Ok(value)
    }

    fn evaluate(&self, id: ExprId) -> Result<Num> {
        let typed = &self.group[id];
        let value = match &typed.expr {
            Expr::Const(scalar) => Num::of(*scalar),
            Expr::Coord(dim) => Num::I(self.dim(dim)?),
            Expr::Load { operand, offset, guard, other } => {
                if self.holds(guard)? {
                    let buffer = self.group.operands[operand.index()].buffer;
                    let at = self.dim(offset)?;
                    let label = || self.group.label.clone();
                    let bounds = || InterpretError::Bounds { group: label(), buffer, element: at };
                    let value = self.memory.read(buffer, at).ok_or_else(bounds)?;
                    if self.memory.is_padding(buffer, at) && value.float() != 0.0 {
                        return Err(InterpretError::Padding {
                            group: label(),
                            buffer,
                            element: at,
                        });
                    }
                    value
                } else {
                    Num::of(*other)
                }
            }
            Expr::Acc(n) => self.acc.get(*n as usize).copied().ok_or_else(|| {
                InterpretError::Malformed(self.group.label.clone(), "an unset result is read")
            })?,
            Expr::Unary(op, x) => unary(*op, self.eval(*x)?),
            Expr::Binary(op, a, b) => {
                let dtype = self.group[*a].dtype;
                binary(*op, self.eval(*a)?, self.eval(*b)?, dtype)
            }
            Expr::Select(c, a, b) => {
                if self.eval(*c)?.truth() {
                    self.eval(*a)?
                } else {
                    self.eval(*b)?
                }
            }
            Expr::Cast { value, to } => cast(self.eval(*value)?, *to),
            Expr::Fold { op, vars, body } => self.fold(*op, vars, *body)?,
            other => {
                debug_assert!(false, "{other:?}");
                return Err(InterpretError::Malformed(
                    self.group.label.clone(),
                    "an unknown expression",
                ));
            }
        };
        Ok(round(value, typed.dtype))
    }

    fn fold(&self, op: FoldOp, vars: &[VarId], body: ExprId) -> Result<Num> {
        let dtype = self.group[body].dtype;
        let mut folding = Folding::new(op, dtype);
        let saved = self.vars.borrow().clone();
        for_each(vars, &|v| self.dim(self.group.extent(v)), &mut |coords| {
            for (var, value) in vars.iter().zip(coords) {
                self.set(*var, *value);
            }
            folding.add(self.eval(body)?);
            Ok(())
        })?;
        *self.vars.borrow_mut() = saved;
        self.moment.set(self.moment.get() + 1);
        Ok(folding.result())
    }
}

/// Calls `f` with every combination of coordinates, row-major.
pub(super) fn for_each(
    vars: &[VarId],
    extent: &dyn Fn(VarId) -> Result<i64>,
    f: &mut dyn FnMut(&[i64]) -> Result<()>,
) -> Result<()> {
    let extents = vars.iter().map(|v| extent(*v)).collect::<Result<Vec<i64>>>()?;
    if extents.iter().any(|e| *e <= 0) {
        return Ok(());
    }
    let mut at = vec![0i64; extents.len()];
    loop {
        f(&at)?;
        let mut axis = extents.len();
        loop {
            if axis == 0 {
                return Ok(());
            }
            axis -= 1;
            at[axis] += 1;
            if at[axis] < extents[axis] {
                break;
            }
            at[axis] = 0;
        }
    }
}

/// A reduction in progress; sums of `F32` are kept in `F64` and rounded at the end.
pub(super) struct Folding {
    op: FoldOp,
    dtype: DType,
    value: Num,
    count: i64,
    at: i64,
}

impl Folding {
    pub(super) fn new(op: FoldOp, dtype: DType) -> Self {
        let float = dtype.is_float();
        let value = match (op, float) {
            (FoldOp::Sum, true) => Num::F(0.0),
            (FoldOp::Sum, false) => Num::I(0),
            (FoldOp::Prod, true) => Num::F(1.0),
            (FoldOp::Prod, false) => Num::I(1),
            (FoldOp::Max | FoldOp::ArgMax { .. }, true) => Num::F(f64::NEG_INFINITY),
            (FoldOp::Min | FoldOp::ArgMin { .. }, true) => Num::F(f64::INFINITY),
            (FoldOp::Max | FoldOp::ArgMax { .. }, false) => Num::I(lowest(dtype)),
            (_, _) => Num::I(highest(dtype)),
        };
        Self { op, dtype, value, count: 0, at: 0 }
    }

    pub(super) fn add(&mut self, x: Num) {
        let first = self.count == 0;
        match self.op {
            FoldOp::Sum => {
                self.value = match (self.value, x) {
                    (Num::F(a), b) => Num::F(a + b.float()),
                    (a, b) => round(Num::I(a.int().wrapping_add(b.int())), self.dtype),
                }
            }
            FoldOp::Prod => {
                self.value = match (self.value, x) {
                    (Num::F(a), b) => Num::F(a * b.float()),
                    (a, b) => round(Num::I(a.int().wrapping_mul(b.int())), self.dtype),
                }
            }
            FoldOp::Max => self.value = binary(BinaryOp::Max, self.value, x, self.dtype),
            FoldOp::Min => self.value = binary(BinaryOp::Min, self.value, x, self.dtype),
            FoldOp::ArgMax { last } | FoldOp::ArgMin { last } => {
                let max = matches!(self.op, FoldOp::ArgMax { .. });
                let (was_nan, is_nan) = (self.value.float().is_nan(), x.float().is_nan());
                let better = match (self.value, x) {
                    (Num::F(_), _) if was_nan || is_nan => is_nan && (!was_nan || last),
                    (Num::F(a), b) => {
                        let b = b.float();
                        (if max { b > a } else { b < a }) || (last && b == a)
                    }
                    (a, b) => {
                        let (a, b) = (a.int(), b.int());
                        (if max { b > a } else { b < a }) || (last && b == a)
                    }
                };
                if better || first {
                    self.value = x;
                    self.at = self.count;
                }
            }
            other => debug_assert!(false, "{other:?}"),
        }
        self.count += 1;
    }

    pub(super) fn result(&self) -> Num {
        match self.op {
            FoldOp::ArgMax { .. } | FoldOp::ArgMin { .. } => Num::I(self.at),
            _ => round(self.value, self.dtype),
        }
    }
}

fn lowest(dtype: DType) -> i64 {
    match dtype {
        DType::I32 => i32::MIN.into(),
        DType::I64 => i64::MIN,
        _ => 0,
    }
}

fn highest(dtype: DType) -> i64 {
    match dtype {
        DType::I32 => i32::MAX.into(),
        DType::U32 => u32::MAX.into(),
        DType::U64 => -1,
        _ => i64::MAX,
    }
}

/// Rounds or wraps to the type that an expression is computed in.
fn round(value: Num, dtype: DType) -> Num {
    match (value, dtype) {
        (Num::F(f), DType::F32) => Num::F((f as f32).into()),
        (Num::I(i), DType::I32) => Num::I((i as i32).into()),
        (Num::I(i), DType::U32) => Num::I((i as u32).into()),
        (v, DType::Bool) => Num::B(v.truth()),
        (v, t) if t.is_float() => Num::F(v.float()),
        (v, _) => v,
    }
}

pub(in crate::lower) fn cast(value: Num, to: DType) -> Num {
    match to {
        DType::Bool => Num::B(value.truth()),
        DType::F16 => Num::F(f16::from_f32(value.float() as f32).to_f64()),
        DType::Bf16 => Num::F(bf16::from_f32(value.float() as f32).to_f64()),
        DType::F32 => Num::F((value.float() as f32).into()),
        DType::F64 => Num::F(value.float()),
        t if t.is_float() => {
            let x = value.float();
            Num::F(NarrowFloat::of(t).map_or(x, |format| format.round(x)))
        }
        t => {
            let bits = t.bits();
            let signed = t.is_signed_int();
            if bits == 64 {
                return Num::I(match value {
                    Num::F(f) if !signed => f as u64 as i64,
                    v => v.int(),
                });
            }
            let (lo, hi) = if signed {
                (-1i64 << (bits - 1), (1i64 << (bits - 1)) - 1)
            } else {
                (0, (1i64 << bits) - 1)
            };
            Num::I(match value {
                Num::F(f) => (f as i64).clamp(lo, hi),
                // Integers and booleans wrap to the type's bits.
                v if signed => v.int() << (64 - bits) >> (64 - bits),
                v => v.int() & hi,
            })
        }
    }
}

pub(in crate::lower) fn unary(op: UnaryOp, x: Num) -> Num {
    let f = |g: fn(f64) -> f64| Num::F(g(x.float()));
    match (op, x) {
        (UnaryOp::Neg, Num::I(i)) => Num::I(i.wrapping_neg()),
        (UnaryOp::Neg, _) => f(|x| -x),
        (UnaryOp::Abs, Num::I(i)) => Num::I(i.wrapping_abs()),
        (UnaryOp::Abs, _) => f(f64::abs),
        (UnaryOp::Sign, Num::I(i)) => Num::I(i.signum()),
        (UnaryOp::Sign, _) => f(|x| if x == 0.0 || x.is_nan() { x } else { x.signum() }),
        (UnaryOp::Relu, Num::I(i)) => Num::I(i.max(0)),
        (UnaryOp::Relu, _) => f(|x| if x < 0.0 { 0.0 } else { x }),
        (UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round, Num::I(_)) => x,
        (UnaryOp::Floor, _) => f(f64::floor),
        (UnaryOp::Ceil, _) => f(f64::ceil),
        (UnaryOp::Round, _) => f(f64::round_ties_even),
        (UnaryOp::Reciprocal, _) => f(|x| 1.0 / x),
        (UnaryOp::Sqrt, _) => f(f64::sqrt),
        (UnaryOp::Exp, _) => f(f64::exp),
        (UnaryOp::Log, _) => f(f64::ln),
        (UnaryOp::Log1p, _) => f(f64::ln_1p),
        (UnaryOp::Expm1, _) => f(f64::exp_m1),
        (UnaryOp::Sin, _) => f(f64::sin),
        (UnaryOp::Cos, _) => f(f64::cos),
        (UnaryOp::Tan, _) => f(f64::tan),
        (UnaryOp::Asin, _) => f(f64::asin),
        (UnaryOp::Acos, _) => f(f64::acos),
        (UnaryOp::Atan, _) => f(f64::atan),
        (UnaryOp::Sinh, _) => f(f64::sinh),
        (UnaryOp::Cosh, _) => f(f64::cosh),
        (UnaryOp::Tanh, _) => f(f64::tanh),
        (UnaryOp::Asinh, _) => f(f64::asinh),
        (UnaryOp::Acosh, _) => f(f64::acosh),
        (UnaryOp::Atanh, _) => f(f64::atanh),
        (UnaryOp::Erf, _) => f(libm::erf),
        (UnaryOp::Sigmoid, _) => f(|x| 1.0 / (1.0 + (-x).exp())),
        (UnaryOp::Not, v) => Num::B(!v.truth()),
        (UnaryOp::BitNot, v) => Num::I(!v.int()),
        (UnaryOp::IsNan, v) => Num::B(v.float().is_nan()),
        (UnaryOp::IsPosInf, v) => Num::B(v.float() == f64::INFINITY),
        (UnaryOp::IsNegInf, v) => Num::B(v.float() == f64::NEG_INFINITY),
        (other, _) => {
            debug_assert!(false, "{other:?}");
            Num::F(f64::NAN)
        }
    }
}

pub(in crate::lower) fn binary(op: BinaryOp, a: Num, b: Num, dtype: DType) -> Num {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let float = dtype.is_float();
    let (x, y) = (a.float(), b.float());
    let (i, j) = (a.int(), b.int());
    let order = if float {
        x.partial_cmp(&y)
    } else if dtype == DType::U64 {
        Some((i as u64).cmp(&(j as u64)))
    } else {
        Some(i.cmp(&j))
    };
    let pick = |f: f64, i: i64| if float { Num::F(f) } else { Num::I(i) };
    match op {
        BinaryOp::Add => pick(x + y, i.wrapping_add(j)),
        BinaryOp::Sub => pick(x - y, i.wrapping_sub(j)),
        BinaryOp::Mul => pick(x * y, i.wrapping_mul(j)),
        BinaryOp::Div if dtype == DType::U64 => {
            Num::I((i as u64).checked_div(j as u64).unwrap_or(0) as i64)
        }
        BinaryOp::Div => pick(x / y, if j == 0 { 0 } else { i.wrapping_div(j) }),
        BinaryOp::Mod => pick(
            {
                let r = x % y;
                if r != 0.0 && (r < 0.0) != (y < 0.0) { r + y } else { r }
            },
            if j == 0 {
                0
            } else {
                let r = i.wrapping_rem(j);
                if r != 0 && (r < 0) != (j < 0) { r + j } else { r }
            },
        ),
        BinaryOp::Rem => pick(x % y, if j == 0 { 0 } else { i.wrapping_rem(j) }),
        BinaryOp::Pow => pick(x.powf(y), x.powf(y) as i64),
        BinaryOp::Min if float && (x.is_nan() || y.is_nan()) => Num::F(f64::NAN),
        BinaryOp::Max if float && (x.is_nan() || y.is_nan()) => Num::F(f64::NAN),
        BinaryOp::Min => {
            if order == Some(Greater) {
                b
            } else {
                a
            }
        }
        BinaryOp::Max => {
            if order == Some(Less) {
                b
            } else {
                a
            }
        }
        BinaryOp::Atan2 => Num::F(x.atan2(y)),
        BinaryOp::And => Num::B(a.truth() && b.truth()),
        BinaryOp::Or => Num::B(a.truth() || b.truth()),
        BinaryOp::Xor => Num::B(a.truth() != b.truth()),
        BinaryOp::BitAnd => Num::I(i & j),
        BinaryOp::BitOr => Num::I(i | j),
        BinaryOp::BitXor => Num::I(i ^ j),
        BinaryOp::Shl => Num::I(u32::try_from(j).ok().and_then(|j| i.checked_shl(j)).unwrap_or(0)),
        BinaryOp::Shr => {
            let j = j.clamp(0, 63);
            Num::I(if dtype == DType::U64 { ((i as u64) >> j) as i64 } else { i >> j })
        }
        BinaryOp::Eq => Num::B(order == Some(Equal)),
        BinaryOp::Ne => Num::B(order != Some(Equal)),
        BinaryOp::Lt => Num::B(order == Some(Less)),
        BinaryOp::Le => Num::B(matches!(order, Some(Less | Equal))),
        BinaryOp::Gt => Num::B(order == Some(Greater)),
        BinaryOp::Ge => Num::B(matches!(order, Some(Greater | Equal))),
        other => {
            debug_assert!(false, "{other:?}");
            Num::F(f64::NAN)
        }
    }
}
