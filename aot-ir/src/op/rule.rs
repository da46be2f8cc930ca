//! What shape rules share: access to operands, equality of dims, and texts of errors.

use super::infer::{Inferred, ShapeError};
use crate::dim::Cmp;
use crate::{DType, Dim, Op, Scope, Symbols, Value};

/// The state of one application of a rule.
pub(super) struct Rule<'a> {
    op: &'a Op,
    operands: &'a [&'a Value],
    pub(super) scope: Scope<'a>,
    guards: Vec<(Dim, Dim)>,
}

/// Most axes of a tensor.
pub(super) const MAX_RANK: usize = 64;

pub(super) fn fail<T>(text: impl Into<String>) -> Result<T, ShapeError> {
    Err(ShapeError(text.into()))
}

impl<'a> Rule<'a> {
    pub(super) fn new(op: &'a Op, operands: &'a [&'a Value], symbols: &'a Symbols) -> Self {
        Self { op, operands, scope: Scope::new(symbols), guards: Vec::new() }
    }

    /// The operands, whose number must be `N`.
    pub(super) fn operands<const N: usize>(&self) -> Result<[&'a Value; N], ShapeError> {
        <[&Value; N]>::try_from(self.operands).map_err(|_| self.wrong_count(&N.to_string()))
    }

    /// All operands; there must be at least `least`.
    pub(super) fn all_operands(&self, least: usize) -> Result<&'a [&'a Value], ShapeError> {
        if self.operands.len() < least {
            return Err(self.wrong_count(&format!("at least {least}")));
        }
        Ok(self.operands)
    }

    pub(super) fn wrong_count(&self, expected: &str) -> ShapeError {
        ShapeError(format!(
            "{} takes {expected} operands, found {}",
            self.op.name(),
            self.operands.len()
        ))
    }

    /// A dim with the names that users know.
    pub(super) fn show(&self, dim: &Dim) -> String {
        self.scope.symbols.show(dim)
    }

    /// A shape with the names that users know.
    pub(super) fn show_shape(&self, shape: &[Dim]) -> String {
        let dims: Vec<String> = shape.iter().map(|d| self.show(d)).collect();
        format!("[{}]", dims.join(", "))
    }

    /// The one result, with what is left to check.
    pub(super) fn one(self, dtype: DType, shape: Vec<Dim>) -> Result<Inferred, ShapeError> {
        self.results(vec![(dtype, shape)])
    }

    /// The results, with what is left to check.
    pub(super) fn results(self, outputs: Vec<(DType, Vec<Dim>)>) -> Result<Inferred, ShapeError> {
        for (_, shape) in &outputs {
            if shape.len() > MAX_RANK {
                return fail(format!("a result has {} axes, more than {MAX_RANK}", shape.len()));
            }
            let mut least = 1i64;
            for dim in shape {
                least = least.saturating_mul(self.scope.interval(dim).lo.max(0));
            }
            if least > 1 << 56 {
                let shape = self.show_shape(shape);
                return fail(format!(
                    "a result of shape {shape} has more elements than can be held"
                ));
            }
        }
        Ok(Inferred { outputs, guards: self.guards })
    }

    /// Two dims that must be equal: the simpler of them.
    pub(super) fn equal(
        &mut self,
        a: &Dim,
        b: &Dim,
        what: impl FnOnce() -> String,
    ) -> Result<Dim, ShapeError> {
        let simple = if complexity(b) < complexity(a) { b } else { a }.clone();
        if a == b || self.scope.proves_eq(a, b) {
            return Ok(simple);
        }
        if self.scope.decide(Cmp::Eq, a, b) == Some(false) {
            return fail(format!("{}: {} is not {}", what(), self.show(a), self.show(b)));
        }
        self.guard(a.clone(), b.clone());
        Ok(simple)
    }

    /// Two shapes that must be equal, of the same rank.
    pub(super) fn equal_shapes(
        &mut self,
        a: &[Dim],
        b: &[Dim],
        what: &str,
    ) -> Result<Vec<Dim>, ShapeError> {
        let texts = (self.show_shape(a), self.show_shape(b));
        if a.len() != b.len() {
            return fail(format!("{what}: shape {} is not {}", texts.0, texts.1));
        }
        let text = || format!("{what}: shape {} is not {}", texts.0, texts.1);
        a.iter().zip(b).map(|(a, b)| self.equal(a, b, text)).collect()
    }

    /// Records that two dims must be equal at run time.
    pub(super) fn guard(&mut self, a: Dim, b: Dim) {
        if !self.guards.iter().any(|(x, y)| (x == &a && y == &b) || (x == &b && y == &a)) {
            self.guards.push((a, b));
        }
    }

    /// Requires `a <= b`.
    pub(super) fn at_most(
        &mut self,
        a: &Dim,
        b: &Dim,
        what: impl FnOnce() -> String,
    ) -> Result<(), ShapeError> {
        match self.scope.decide(Cmp::Le, a, b) {
            Some(true) => Ok(()),
            Some(false) => {
                fail(format!("{}: {} is more than {}", what(), self.show(a), self.show(b)))
            }
            None => {
                let smaller = self.scope.min(a, b);
                if smaller != *a {
                    self.guard(smaller, a.clone());
                }
                Ok(())
            }
        }
    }

    /// An extent: it must depend on run-time sizes only and not be negative.
    pub(super) fn extent(&mut self, dim: &Dim, what: &str) -> Result<(), ShapeError> {
        self.uniform(dim, what)?;
        // What is an extent of an operand was found to be one before; proofs take long.
        if self.operands.iter().any(|operand| operand.shape.contains(dim)) {
            return Ok(());
        }
        if self.scope.decide(Cmp::Lt, dim, &Dim::ZERO) == Some(true) {
            let reason = self.scope.symbols.why_negative(dim);
            return fail(format!("{what} is {}, which is negative{reason}", self.show(dim)));
        }
        self.at_most(&Dim::ZERO, dim, || what.to_owned())
    }

    /// Requires that a dim depends on run-time sizes only.
    pub(super) fn uniform(&self, dim: &Dim, what: &str) -> Result<(), ShapeError> {
        if dim.is_uniform() {
            return Ok(());
        }
        fail(format!("{what} is {}, which is no function of run-time sizes", self.show(dim)))
    }

    /// Requires a shape of valid extents.
    pub(super) fn extents(&mut self, shape: &[Dim], what: &str) -> Result<(), ShapeError> {
        shape.iter().try_for_each(|dim| self.extent(dim, what))
    }

    /// The extent that two broadcast extents give.
    pub(super) fn broadcast_dim(&mut self, a: &Dim, b: &Dim) -> Result<Dim, ShapeError> {
        if a == b || b.is(1) {
            return Ok(a.clone());
        }
        if a.is(1) {
            return Ok(b.clone());
        }
        if self.scope.decide(Cmp::Eq, a, b) != Some(false) {
            return self.equal(a, b, || "extents do not broadcast".to_owned());
        }
        for (maybe_one, other) in [(a, b), (b, a)] {
            if self.scope.decide(Cmp::Eq, maybe_one, &Dim::ONE) != Some(false) {
                self.guard(maybe_one.clone(), Dim::ONE);
                return Ok(other.clone());
            }
        }
        fail(format!("extents {} and {} do not broadcast", self.show(a), self.show(b)))
    }

    /// The shape that two broadcast shapes give, aligned at the last axis.
    pub(super) fn broadcast(&mut self, a: &[Dim], b: &[Dim]) -> Result<Vec<Dim>, ShapeError> {
        let rank = a.len().max(b.len());
        let mut shape = Vec::with_capacity(rank);
        for axis in 0..rank {
            let at = |s: &[Dim]| (axis + s.len()).checked_sub(rank).map(|i| s[i].clone());
            let dim = match (at(a), at(b)) {
                (Some(x), Some(y)) => self.broadcast_dim(&x, &y).map_err(|error| {
                    let (a, b) = (self.show_shape(a), self.show_shape(b));
                    ShapeError(format!("shapes {a} and {b}: {error}"))
                })?,
                (Some(x), None) | (None, Some(x)) => x,
                (None, None) => Dim::ONE,
            };
            shape.push(dim);
        }
        Ok(shape)
    }

    /// Requires that `from` broadcasts to `to` without changing it, aligned at the last axis; gives
    /// `to`.
    pub(super) fn broadcast_to(&mut self, from: &[Dim], to: &[Dim]) -> Result<(), ShapeError> {
        let texts = (self.show_shape(from), self.show_shape(to));
        let text = || format!("shape {} does not broadcast to {}", texts.0, texts.1);
        let Some(lead) = to.len().checked_sub(from.len()) else {
            return fail(text());
        };
        for (a, b) in from.iter().zip(&to[lead..]) {
            if a.is(1) || a == b {
                continue;
            }
            if self.scope.decide(Cmp::Eq, a, b) == Some(false) {
                if self.scope.decide(Cmp::Eq, a, &Dim::ONE) == Some(false) {
                    return fail(text());
                }
                self.guard(a.clone(), Dim::ONE);
            } else {
                self.equal(a, b, text)?;
            }
        }
        Ok(())
    }

    /// Requires an axis of a tensor of this rank.
    pub(super) fn axis(&self, axis: usize, rank: usize) -> Result<(), ShapeError> {
        if axis < rank {
            return Ok(());
        }
        fail(format!("axis {axis} is out of range for {rank} axes"))
    }

    /// Requires ascending axes, without repetition, of a tensor of this rank.
    pub(super) fn axes(&self, axes: &[usize], rank: usize) -> Result<(), ShapeError> {
        axes.iter().try_for_each(|&axis| self.axis(axis, rank))?;
        if axes.windows(2).all(|w| w[0] < w[1]) {
            return Ok(());
        }
        fail(format!("axes {axes:?} are not ascending without repetition"))
    }

    /// Requires that a list has one entry per axis.
    pub(super) fn per_axis(&self, what: &str, len: usize, rank: usize) -> Result<(), ShapeError> {
        if len == rank {
            return Ok(());
        }
        fail(format!("{what} has {len} entries, expected one per axis: {rank}"))
    }

    /// Requires operands of one type.
    pub(super) fn same_type(&self, a: &Value, b: &Value) -> Result<DType, ShapeError> {
        if a.dtype == b.dtype {
            return Ok(a.dtype);
        }
        fail(format!("operands are {} and {}, expected one type", a.dtype, b.dtype))
    }

    /// Requires that an operand's type satisfies `fits`.
    pub(super) fn type_of(
        &self,
        value: &Value,
        fits: impl Fn(DType) -> bool,
        expected: &str,
    ) -> Result<DType, ShapeError> {
        if fits(value.dtype) {
            return Ok(value.dtype);
        }
        fail(format!("{} takes {expected}, found {}", self.op.name(), value.dtype))
    }

    /// Requires a numeric operand.
    pub(super) fn numeric(&self, value: &Value) -> Result<DType, ShapeError> {
        self.type_of(value, |t| t != DType::Bool, "numbers")
    }

    /// Requires a floating-point operand.
    pub(super) fn float(&self, value: &Value) -> Result<DType, ShapeError> {
        self.type_of(value, DType::is_float, "floating-point numbers")
    }

    /// Requires indices.
    pub(super) fn indices(&self, value: &Value) -> Result<(), ShapeError> {
        self.type_of(value, |t| t.is_int() && t.bits() >= 8, "integer indices").map(|_| ())
    }
}

/// How long a dim is: constants first.
fn complexity(dim: &Dim) -> usize {
    let mut atoms = 0;
    dim.visit(&mut |_| atoms += 1);
    atoms * 4 + dim.terms().len() * 2 + usize::from(dim.constant_part() != 0)
}
