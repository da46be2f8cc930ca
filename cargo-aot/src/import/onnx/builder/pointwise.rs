//! Pointwise operations, and broadcasting.

use super::super::known::{Content, Elem};
use super::tensors::{Builder, OpResult, Tensor, wrong};
use aot_ir::dim::Cmp;
use aot_ir::op::{BinaryOp, UnaryOp};
use aot_ir::{DType, Dim, Op, Scope};

/// Coordinates in an operand of coordinates in the result that it broadcasts to.
pub(super) fn broadcast_at(shape: &[Dim], coordinates: &[Dim]) -> Vec<Dim> {
    let lead = coordinates.len().saturating_sub(shape.len());
    shape
        .iter()
        .zip(&coordinates[lead..])
        .map(|(extent, at)| if extent.is(1) { Dim::ZERO } else { at.clone() })
        .collect()
}

/// Whether arithmetic on known elements follows this type's own arithmetic (small integers wrap).
fn follows(dtype: DType) -> bool {
    matches!(
        dtype,
        DType::Bool | DType::I32 | DType::I64 | DType::F16 | DType::Bf16 | DType::F32 | DType::F64
    )
}

impl Builder {
    /// The shape that two shapes broadcast to. Extents that can't be proved equal are taken to be.
    pub(in super::super) fn broadcast(&self, a: &[Dim], b: &[Dim]) -> OpResult<Vec<Dim>> {
        let rank = a.len().max(b.len());
        let scope = self.scope();
        let at = |s: &[Dim], axis: usize| {
            (axis + s.len()).checked_sub(rank).map_or(Dim::ONE, |i| s[i].clone())
        };
        let mut shape = Vec::with_capacity(rank);
        for axis in 0..rank {
            let (x, y) = (at(a, axis), at(b, axis));
            shape.push(if x == y || y.is(1) {
                x
            } else if x.is(1) {
                y
            } else if scope.decide(Cmp::Eq, &x, &y) == Some(false) {
                if scope.decide(Cmp::Eq, &x, &Dim::ONE).is_none() {
                    y
                } else if scope.decide(Cmp::Eq, &y, &Dim::ONE).is_none() {
                    x
                } else {
                    let symbols = self.symbols();
                    return wrong(format!(
                        "extents {} and {} do not broadcast",
                        symbols.show(&x),
                        symbols.show(&y)
                    ));
                }
            } else if x.as_const().is_some() {
                x
            } else {
                y
            });
        }
        Ok(shape)
    }

    /// Whether the shapes broadcast for sure, so that nothing has to be checked at run time.
    fn broadcasts_provably(&self, shapes: &[&[Dim]], to: &[Dim]) -> bool {
        let scope = self.scope();
        shapes.iter().all(|shape| {
            let Some(lead) = to.len().checked_sub(shape.len()) else { return false };
            shape.iter().zip(&to[lead..]).all(|(a, b)| a.is(1) || scope.proves_eq(a, b))
        })
    }

    /// A known result over the broadcast shape of known operands.
    fn known_pointwise(
        &mut self,
        operands: &[Tensor],
        dtype: DType,
        f: impl Fn(&[Elem], &Scope<'_>) -> Option<Elem>,
    ) -> Option<Tensor> {
        let contents: Vec<_> = operands.iter().map(|&t| self.content(t)).collect::<Option<_>>()?;
        let mut shape: Vec<Dim> = Vec::new();
        for c in &contents {
            shape = self.broadcast(&shape, &c.shape).ok()?;
        }
        let shapes: Vec<&[Dim]> = contents.iter().map(|c| c.shape.as_slice()).collect();
        if !self.broadcasts_provably(&shapes, &shape) {
            return None;
        }
        let content = Content::make(&shape, self.symbols(), |at, scope| {
            let elements = contents
                .iter()
                .map(|c| c.at(&broadcast_at(&c.shape, at), scope))
                .collect::<Option<Vec<_>>>()?;
            f(&elements, scope)
        })?;
        Some(self.known(dtype, content))
    }

    /// `op(x)`.
    pub(in super::super) fn unary(&mut self, op: UnaryOp, x: Tensor) -> OpResult {
        let dtype = self.dtype(x);
        let result = if op.is_predicate() { DType::Bool } else { dtype };
        if follows(dtype)
            && let Some(t) =
                self.known_pointwise(&[x], result, |e, scope| e[0].unary(op, dtype, scope))
        {
            return Ok(t);
        }
        self.op(Op::Unary(op), &[x])
    }

    /// `op(a, b)`, broadcast.
    pub(in super::super) fn binary(&mut self, op: BinaryOp, a: Tensor, b: Tensor) -> OpResult {
        let dtype = self.dtype(a);
        let result = if op.is_comparison() { DType::Bool } else { dtype };
        if follows(dtype)
            && dtype == self.dtype(b)
            && let Some(t) = self
                .known_pointwise(&[a, b], result, |e, scope| e[0].binary(op, &e[1], dtype, scope))
        {
            return Ok(t);
        }
        if let Some(t) = self.neutral(op, a, b)? {
            return Ok(t);
        }
        self.op(Op::Binary(op), &[a, b])
    }

    /// The result where one operand is the operator's neutral element.
    fn neutral(&mut self, op: BinaryOp, a: Tensor, b: Tensor) -> OpResult<Option<Tensor>> {
        let neutral = match op {
            BinaryOp::And | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Pow => 1.0,
            BinaryOp::Or | BinaryOp::Xor | BinaryOp::Add | BinaryOp::Sub => 0.0,
            _ => return Ok(None),
        };
        let commutes = !matches!(op, BinaryOp::Sub | BinaryOp::Div | BinaryOp::Pow);
        for (x, other, allowed) in [(a, b, true), (b, a, commutes)] {
            if allowed && self.uniform(other) == Some(neutral) && self.dtype(x) == self.dtype(other)
            {
                let shape = self.broadcast(self.shape(x), self.shape(other))?;
                if self.broadcasts_provably(&[self.shape(x), self.shape(other)], &shape) {
                    return Ok(Some(self.expand(x, &shape)?));
                }
            }
        }
        Ok(None)
    }

    /// `a` where `condition`, else `b`, broadcast.
    pub(in super::super) fn select(&mut self, condition: Tensor, a: Tensor, b: Tensor) -> OpResult {
        let dtype = self.dtype(a);
        if dtype == self.dtype(b)
            && let Some(t) = self.known_pointwise(&[condition, a, b], dtype, |e, scope| {
                Elem::select(&e[0], &e[1], &e[2], scope)
            })
        {
            return Ok(t);
        }
        if dtype == self.dtype(b)
            && let Some(decided) = self.content(condition).and_then(|c| c.uniform()?.as_bool())
        {
            let chosen = if decided { a } else { b };
            let shape = self.broadcast(self.shape(a), self.shape(b))?;
            let shape = self.broadcast(self.shape(condition), &shape)?;
            let all = [self.shape(a), self.shape(b), self.shape(condition)];
            if self.broadcasts_provably(&all, &shape) {
                return self.expand(chosen, &shape);
            }
        }
        self.op(Op::Select, &[condition, a, b])
    }

    /// Conversion to another element type.
    pub(in super::super) fn cast(&mut self, x: Tensor, to: DType) -> OpResult {
        if self.dtype(x) == to {
            return Ok(x);
        }
        if follows(to)
            && let Some(t) = self.known_pointwise(&[x], to, |e, scope| e[0].cast(to, scope))
        {
            return Ok(t);
        }
        let (out, from) = (self.op(Op::Cast(to), &[x])?, self.dtype(x));
        if to == DType::I64 && from.is_int() || to == DType::I32 && from.bits() < 32 {
            self.set_made_of(out, &[x]);
        }
        Ok(out)
    }

    /// A tensor in the type that its elements are computed in: binary16 is for what is stored, and for inputs and
    /// outputs.
    pub(in super::super) fn widened(&mut self, x: Tensor) -> OpResult {
        match self.dtype(x) {
            DType::F16 => self.cast(x, DType::F32),
            _ => Ok(x),
        }
    }

    /// Conversion to the element type of another tensor.
    pub(in super::super) fn cast_like(&mut self, x: Tensor, like: Tensor) -> OpResult {
        let to = self.dtype(like);
        self.cast(x, to)
    }

    /// `a + b`.
    pub(in super::super) fn sum(&mut self, a: Tensor, b: Tensor) -> OpResult {
        self.binary(BinaryOp::Add, a, b)
    }

    /// `a - b`.
    pub(in super::super) fn difference(&mut self, a: Tensor, b: Tensor) -> OpResult {
        self.binary(BinaryOp::Sub, a, b)
    }

    /// `a * b`.
    pub(in super::super) fn product(&mut self, a: Tensor, b: Tensor) -> OpResult {
        self.binary(BinaryOp::Mul, a, b)
    }

    /// `a / b`.
    pub(in super::super) fn quotient(&mut self, a: Tensor, b: Tensor) -> OpResult {
        self.binary(BinaryOp::Div, a, b)
    }

    /// `op(x, value)` with a scalar of the type of `x`.
    pub(in super::super) fn with(&mut self, op: BinaryOp, x: Tensor, value: f64) -> OpResult {
        let scalar = self.scalar_like(value, x);
        self.binary(op, x, scalar)
    }
}
