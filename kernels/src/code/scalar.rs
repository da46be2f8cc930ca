//! Scalar expressions as statements.

use super::arguments::Role;
use super::ctype::compute_type_name;
use super::emitter::{Emit, Emitter};
use super::operators;
use super::prelude::Part;
use super::value::{Int, Value};
use crate::group::{Expr, ExprId, FoldOp, compute_type};
use aot_ir::dim::VarId;
use aot_ir::{DType, Dim, Scalar};
use std::collections::HashSet;

/// Windows up to this many places are unrolled and have their extents baked in.
const UNROLLED_WINDOW: i64 = 64;

/// A reduction's running result: mutable C++ variables, one set a lane.
#[derive(Clone, Debug)]
pub struct Accumulator {
    /// What combines.
    pub op: FoldOp,
    /// Type of what is combined.
    pub dtype: DType,
    /// Names of the running values, one a lane.
    pub values: Vec<String>,
    /// For indices of extremes: names of the running indices, one a lane.
    pub indices: Vec<String>,
}

impl Accumulator {
    /// The result.
    pub fn result(&self) -> Value {
        match self.op {
            FoldOp::ArgMax { .. } | FoldOp::ArgMin { .. } => {
                Value { dtype: DType::I64, lanes: self.indices.clone() }
            }
            _ => Value { dtype: self.dtype, lanes: self.values.clone() },
        }
    }

    /// Whether it is an index that is sought.
    pub fn is_arg(&self) -> bool {
        matches!(self.op, FoldOp::ArgMax { .. } | FoldOp::ArgMin { .. })
    }
}

impl<'a> Emitter<'a> {
    /// The value of an expression: emits what is not known yet.
    pub fn value(&mut self, id: ExprId) -> Emit<Value> {
        if let Some(known) = self.known_value(id) {
            return Ok(known);
        }
        let group = self.group;
        let dtype = group[id].dtype;
        let value = match &group[id].expr {
            Expr::Const(c) => Value::same(dtype, operators::literal(dtype, *c)),
            Expr::Coord(dim) => {
                let index = self.index(dim, Role::Other)?;
                let count = match index.step {
                    super::index::Step::Same => 1,
                    _ => self.width(),
                };
                let lanes = (0..count)
                    .map(|l| {
                        let at = self.index_at(&index, l, Role::Other);
                        self.scalar(dtype, &operators::cast(DType::I64, dtype, &at.text))
                    })
                    .collect();
                Value { dtype, lanes }
            }
            Expr::Load { operand, offset, guard, other } => {
                self.load(*operand, offset, guard, *other, dtype)?
            }
            Expr::Acc(n) => match self.acc(*n).cloned() {
                Some(value) => value,
                None => return Err(self.unsupported(format!("result {n} is used too early"))),
            },
            Expr::Unary(op, x) => {
                let x = self.value(*x)?;
                self.require(Part::Math);
                let refused = format!("`{}` on {}", op.name(), x.dtype);
                self.each(dtype, &[&x], |x_| operators::unary(*op, x.dtype, x_[0]))?
                    .ok_or_else(|| self.unsupported(refused))?
            }
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.value(*a)?, self.value(*b)?);
                self.require(Part::Math);
                let refused = format!("`{}` on {}", op.name(), a.dtype);
                self.each(dtype, &[&a, &b], |x| operators::binary(*op, a.dtype, x[0], x[1]))?
                    .ok_or_else(|| self.unsupported(refused))?
            }
            Expr::Select(c, a, b) => {
                let (c, a, b) = (self.value(*c)?, self.value(*a)?, self.value(*b)?);
                let text = |x: &[&str]| Some(format!("{} ? {} : {}", x[0], x[1], x[2]));
                self.each(dtype, &[&c, &a, &b], text)?
                    .ok_or_else(|| self.unsupported("a selection"))?
            }
            Expr::Cast { value, to } => {
                let x = self.value(*value)?;
                self.cast_value(&x, *to)?
            }
            Expr::Fold { op, vars, body } => self.fold(*op, vars, *body)?,
        };
        self.remember_value(id, value.clone());
        Ok(value)
    }

    /// A value converted to a type and widened again, with the semantics of `Op::Cast`.
    pub fn cast_value(&mut self, x: &Value, to: DType) -> Emit<Value> {
        if x.dtype == to {
            return Ok(x.clone());
        }
        self.require(Part::Math);
        self.require(Part::Types);
        let from = x.dtype;
        let cast = |x: &[&str]| Some(operators::cast(from, to, x[0]));
        let made = self.each(compute_type(to), &[x], cast)?;
        made.ok_or_else(|| self.unsupported(format!("a conversion to {to}")))
    }

    /// A named scalar.
    pub fn scalar(&mut self, dtype: DType, text: &str) -> String {
        self.constant(compute_type_name(dtype), "v", text)
    }

    /// Declares one scalar for all lanes, or one a lane where an operand differs between lanes.
    fn each(
        &mut self,
        dtype: DType,
        operands: &[&Value],
        text: impl Fn(&[&str]) -> Option<String>,
    ) -> Emit<Option<Value>> {
        let count = operands.iter().map(|v| v.lanes.len()).max().unwrap_or(1);
        let mut lanes = Vec::with_capacity(count);
        for lane in 0..count {
            let at: Vec<&str> = operands.iter().map(|v| v.lane(lane)).collect();
            let Some(text) = text(&at) else { return Ok(None) };
            lanes.push(self.scalar(dtype, &text));
        }
        Ok(Some(Value { dtype, lanes }))
    }

    /// Emits, in the current layer, the parts of an expression that do not depend on `vars`, so that
    /// they are not computed anew in a loop over them.
    pub fn hoist(&mut self, id: ExprId, vars: &[VarId]) -> Emit<()> {
        let mut pending = vec![id];
        // An expression that many others share is looked at once.
        let mut seen = HashSet::new();
        while let Some(id) = pending.pop() {
            if !seen.insert(id) {
                continue;
            }
            let uses = self.uses.of(id);
            if vars.iter().any(|v| uses.vars.contains(v)) {
                let first = pending.len();
                self.group.parts(id, &mut |part| pending.push(part));
                pending[first..].reverse();
                continue;
            }
            let bound = uses.vars.iter().all(|v| self.var(*v).is_some())
                && uses.accs.iter().all(|n| self.acc(*n).is_some());
            if bound {
                self.value(id)?;
            }
        }
        Ok(())
    }

    fn fold(&mut self, op: FoldOp, vars: &[VarId], body: ExprId) -> Emit<Value> {
        self.hoist(body, vars)?;
        let lanes = self.lanes_of(body);
        let accumulator = self.accumulator(op, self.group[body].dtype, lanes);
        let extents: Vec<Dim> = vars.iter().map(|v| self.group.extent(*v).clone()).collect();
        let constants: Option<Vec<i64>> = extents.iter().map(Dim::as_const).collect();
        let unrolled = constants.filter(|c| {
            c.iter().try_fold(1i64, |p, e| p.checked_mul(*e)).is_some_and(|p| p <= UNROLLED_WINDOW)
        });
        let mut position = Dim::ZERO;
        for (i, var) in vars.iter().enumerate() {
            let extent = match &unrolled {
                Some(constants) => Int::narrow(constants[i].to_string()),
                None => self.extent(*var),
            };
            let name = self.fresh("k");
            let type_name = extent.type_name();
            self.line(if unrolled.is_some() { "#pragma unroll" } else { "#pragma unroll 1" });
            self.open(format!("for ({type_name} {name} = 0; {name} < {}; ++{name})", extent.text));
            self.bind(*var, Int { text: name, wide: extent.wide });
            position = position * &extents[i] + Dim::var(*var);
        }
        let value = self.value(body)?;
        let position = if accumulator.is_arg() {
            Some(self.int(&position, Role::Other)?.widened())
        } else {
            None
        };
        self.accumulate(&accumulator, &value, position.as_deref());
        for _ in vars {
            self.close();
        }
        Ok(accumulator.result())
    }

    /// How many values an expression has at a place, at most: 1 if nothing of it varies by lane.
    pub fn lanes_of(&self, id: ExprId) -> usize {
        let Some(lanes) = &self.lanes else { return 1 };
        let uses = self.uses.of(id);
        let varies = uses.vars.contains(&lanes.var)
            || uses.accs.iter().any(|n| self.acc(*n).is_some_and(|v| !v.is_same()));
        if varies { lanes.width } else { 1 }
    }

    /// Declares a reduction's variables with the neutral element.
    pub fn accumulator(&mut self, op: FoldOp, dtype: DType, lanes: usize) -> Accumulator {
        self.require(Part::Math);
        let start = match op {
            FoldOp::Sum => operators::literal(dtype, Scalar::Int(0)),
            FoldOp::Prod => operators::literal(dtype, Scalar::Int(1)),
            FoldOp::Max | FoldOp::ArgMax { .. } => operators::extreme(dtype, false),
            FoldOp::Min | FoldOp::ArgMin { .. } => operators::extreme(dtype, true),
        };
        let mut accumulator = Accumulator { op, dtype, values: Vec::new(), indices: Vec::new() };
        for _ in 0..lanes {
            let name = self.fresh("a");
            self.line(format!("{} {name} = {start};", compute_type_name(dtype)));
            accumulator.values.push(name);
            if accumulator.is_arg() {
                // No place yet: any beats it.
                let index = self.fresh("a");
                self.line(format!("long long {index} = -1;"));
                accumulator.indices.push(index);
            }
        }
        accumulator
    }

    /// Combines a value into a reduction. A value that varies by lane goes to the lane's variables, or
    /// all to the one there is. `position` is the row-major index at lane 0 where indices are sought;
    /// it grows by one from lane to lane when there is one set of variables, else stays.
    pub fn accumulate(&mut self, into: &Accumulator, value: &Value, position: Option<&str>) {
        let one = into.values.len() == 1;
        let count = if one { value.lanes.len() } else { into.values.len() };
        for lane in 0..count {
            let at = if one { 0 } else { lane };
            let other = value.lane(lane).to_owned();
            if into.is_arg() {
                let position = position.unwrap_or("0");
                let index = if one && lane > 0 {
                    format!("{position} + {lane}")
                } else {
                    position.to_owned()
                };
                self.combine_arg(into, at, &other, &index);
            } else {
                self.combine(into, at, &other);
            }
        }
    }

    /// Combines one value into a reduction's variable at a lane.
    pub fn combine(&mut self, into: &Accumulator, lane: usize, other: &str) {
        let name = &into.values[lane];
        let text = combination(into.op, into.dtype, name, other);
        self.line(format!("{name} = {text};"));
    }

    /// Combines a value and its index (-1: none) into a reduction's variables at a lane.
    pub fn combine_arg(&mut self, into: &Accumulator, lane: usize, other: &str, index: &str) {
        self.require(Part::Math);
        let (value, at) = (&into.values[lane], &into.indices[lane]);
        let (largest, last) = match into.op {
            FoldOp::ArgMax { last } => (true, last),
            FoldOp::ArgMin { last } => (false, last),
            _ => return,
        };
        self.line(format!(
            "better<{largest}, {last}>({value}, {at}, {other}, (long long)({index}));"
        ));
    }
}

/// The combination of two values of a reduction that seeks no index.
fn combination(op: FoldOp, dtype: DType, a: &str, b: &str) -> String {
    use aot_ir::op::BinaryOp as B;
    let op = match op {
        FoldOp::Sum => B::Add,
        FoldOp::Prod => B::Mul,
        FoldOp::Min | FoldOp::ArgMin { .. } => B::Min,
        FoldOp::Max | FoldOp::ArgMax { .. } => B::Max,
    };
    operators::binary(op, dtype, a, b).unwrap_or_else(|| a.to_owned())
}
