//! A value as a scalar expression of its coordinates.
//!
//! Values that live in memory are loaded; all others are computed in place from their operands, so
//! that pointwise and movement operators vanish into whoever reads them.

use super::LowerError;
use super::builder::Builder;
use super::coords::{broadcast, reshape};
use super::{resize, window};
use aot_ir::dim::{Cmp, Cond};
use aot_ir::op::{BinaryOp, PadMode, UnaryOp};
use aot_ir::{DType, Def, Dim, NodeId, Op, Scalar, ValueId};
use aot_kernels::group::{Expr, ExprId, compute_type};

impl Builder<'_> {
    /// The element of `value` at `coords`, in the type that arithmetic on it is done in.
    pub(super) fn value_at(
        &mut self,
        value: ValueId,
        coords: &[Dim],
    ) -> Result<ExprId, LowerError> {
        let key = (value, coords.to_vec(), self.guard.clone());
        if let Some(&id) = self.known.get(&key) {
            return Ok(id);
        }
        let id = self.read_or_compute(value, coords)?;
        self.known.insert(key, id);
        Ok(id)
    }

    /// The element of `value` computed from its operands, even if it has a home.
    pub(super) fn computed_at(
        &mut self,
        value: ValueId,
        coords: &[Dim],
    ) -> Result<ExprId, LowerError> {
        match self.plan.graph[value].def {
            Def::Node(node, output) => self.apply(node, output, coords),
            Def::Input(_) | Def::Const(_) => self.value_at(value, coords),
        }
    }

    /// As [`Builder::value_at`] where `guard` holds, else `other`; nothing is read there then.
    pub(super) fn value_where(
        &mut self,
        value: ValueId,
        coords: &[Dim],
        guard: &Cond,
        other: Scalar,
    ) -> Result<ExprId, LowerError> {
        match self.scope().decide_cond(guard) {
            Some(true) => return self.value_at(value, coords),
            Some(false) => {
                let dtype = self.plan.graph[value].dtype;
                return Ok(self.constant(other, dtype));
            }
            None => {}
        }
        let outer = self.guard.clone();
        self.guard = outer.clone().and(guard.clone());
        let inner = self.value_at(value, coords);
        let own = std::mem::replace(&mut self.guard, outer);
        let inner = inner?;
        if let Some(load) = self.with_other(inner, &own, other) {
            return Ok(load);
        }
        if matches!(self.expr(inner), Expr::Const(c) if c.as_f64() == other.as_f64()) {
            return Ok(inner);
        }
        let cond = self.condition(guard);
        let dtype = self.plan.graph[value].dtype;
        let other = self.constant(other, dtype);
        Ok(self.select(cond, inner, other))
    }

    fn read_or_compute(&mut self, value: ValueId, coords: &[Dim]) -> Result<ExprId, LowerError> {
        let graph = self.plan.graph;
        let v = &graph[value];
        if let Def::Const(id) = v.def
            && let Some(scalar) = super::uniform_scalar(&graph[id])
        {
            return Ok(self.constant(scalar, v.dtype));
        }
        if let Some(home) = self.home(value) {
            let loaded = self.load(home, coords);
            return Ok(self.cast(loaded, compute_type(v.dtype)));
        }
        match v.def {
            Def::Node(node, output) => self.apply(node, output, coords),
            Def::Input(_) | Def::Const(_) => {
                Err(LowerError::internal(&v.name, "an input or constant has no buffer"))
            }
        }
    }

    /// The n-th result of a node at `coords`.
    fn apply(&mut self, id: NodeId, output: u32, coords: &[Dim]) -> Result<ExprId, LowerError> {
        let graph = self.plan.graph;
        let node = &graph[id];
        self.note(&node.name);
        let result = &graph[node.outputs[output as usize]];
        let shape = |v: ValueId| graph[v].shape.as_slice();
        let first = node.inputs.first().copied();
        let x = || first.ok_or_else(|| LowerError::internal(&node.name, "an operand is missing"));
        match &node.op {
            Op::Unary(op) => {
                let a = self.value_at(x()?, coords)?;
                Ok(self.unary(*op, a))
            }
            Op::Binary(_) | Op::Select => {
                let mut operands = Vec::with_capacity(3);
                for &input in &node.inputs {
                    operands.push(self.value_at(input, &broadcast(coords, shape(input)))?);
                }
                self.pointwise(id, &operands)
            }
            Op::Cast(_) => {
                let a = self.value_at(x()?, coords)?;
                self.pointwise(id, &[a])
            }
            Op::Iota { axis, dtype, .. } => Ok(self.coord(&coords[*axis], *dtype)),
            Op::Dims { dims, scalar } => {
                let mut out = dims.last().cloned().unwrap_or(Dim::ZERO);
                if !scalar {
                    for (i, dim) in dims.iter().enumerate().rev().skip(1) {
                        let here = Cond::Cmp(Cmp::Eq, coords[0].clone(), (i as i64).into());
                        out = self.scope().select(&here, dim, &out);
                    }
                }
                Ok(self.coord(&out, DType::I64))
            }
            Op::Fill { value, dtype, .. } => Ok(self.constant(*value, *dtype)),
            Op::Loop(attrs) if attrs.is_conditional() && output == 0 => {
                Ok(self.coord(&attrs.made(), DType::I64))
            }
            Op::Reshape { .. } => {
                let coords = reshape(&self.scope(), coords, &result.shape, shape(x()?));
                self.value_at(x()?, &coords)
            }
            Op::Transpose { perm } => {
                let mut source = vec![Dim::ZERO; perm.len()];
                for (to, &from) in perm.iter().enumerate() {
                    source[from] = coords[to].clone();
                }
                self.value_at(x()?, &source)
            }
            Op::Slice { starts, steps, .. } => {
                let source: Vec<Dim> = coords
                    .iter()
                    .zip(starts)
                    .zip(steps)
                    .map(|((c, s), k)| c.scaled(*k) + s)
                    .collect();
                self.value_at(x()?, &source)
            }
            Op::Pad { low, mode, .. } => self.padded(x()?, coords, low, *mode),
            Op::Expand { .. } => self.value_at(x()?, &broadcast(coords, shape(x()?))),
            Op::Concat { axis } => self.concat(&node.inputs, *axis, coords),
            Op::Gather { axis } => {
                let rank = shape(node.inputs[1]).len();
                let at = self.value_at(node.inputs[1], &coords[*axis..axis + rank])?;
                let at = self.wrapped(at, &shape(x()?)[*axis]);
                let mut source = coords[..*axis].to_vec();
                source.push(at);
                source.extend_from_slice(&coords[axis + rank..]);
                self.indexed(x()?, &source, &[*axis])
            }
            Op::GatherElements { axis } => {
                let at = self.value_at(node.inputs[1], coords)?;
                let mut source = coords.to_vec();
                source[*axis] = self.wrapped(at, &shape(x()?)[*axis]);
                self.indexed(x()?, &source, &[*axis])
            }
            Op::GatherNd { batch_dims } => {
                let indices = node.inputs[1];
                let rank = shape(indices).len();
                let k = shape(indices)[rank - 1].as_const().ok_or_else(|| {
                    LowerError::unsupported(node, "the last extent of the indices is not constant")
                })?;
                let mut source = coords[..*batch_dims].to_vec();
                let mut axes = Vec::new();
                for i in 0..k {
                    let mut place = coords[..rank - 1].to_vec();
                    place.push(i.into());
                    let at = self.value_at(indices, &place)?;
                    axes.push(source.len());
                    source.push(self.wrapped(at, &shape(x()?)[batch_dims + i as usize]));
                }
                source.extend_from_slice(&coords[rank - 1..]);
                self.indexed(x()?, &source, &axes)
            }
            Op::Pool(attrs) => window::pool(self, attrs, x()?, coords),
            Op::Conv(attrs) => window::depthwise(self, attrs, x()?, node.inputs[1], coords),
            Op::Resize(attrs) => resize::resize(self, attrs, x()?, coords),
            op => Err(LowerError::internal(&node.name, &format!("{} is not inline", op.name()))),
        }
    }

    /// A pointwise node's result from its operands' elements.
    pub(super) fn pointwise(&mut self, id: NodeId, args: &[ExprId]) -> Result<ExprId, LowerError> {
        let graph = self.plan.graph;
        let node = &graph[id];
        let storage = graph[node.inputs[0]].dtype;
        match (&node.op, args) {
            (Op::Unary(op), &[x]) => Ok(self.unary(*op, x)),
            (Op::Binary(op), &[a, b]) => {
                let out = self.binary(*op, a, b);
                Ok(self.narrowed(out, storage))
            }
            (Op::Select, &[c, a, b]) => Ok(self.select(c, a, b)),
            (Op::Cast(to), &[x]) => Ok(self.cast(x, *to)),
            (op, _) => {
                Err(LowerError::internal(&node.name, &format!("{} is not pointwise", op.name())))
            }
        }
    }

    /// Integer arithmetic on types narrower than its compute type wraps to the type.
    fn narrowed(&mut self, value: ExprId, storage: DType) -> ExprId {
        let narrow = storage.is_int() && storage.bits() < 32;
        if narrow && self.dtype(value) != DType::Bool {
            let bits =
                self.push(Expr::Const(Scalar::Int(i64::from(32 - storage.bits()))), DType::I32);
            let up = self.push(Expr::Binary(BinaryOp::Shl, value, bits), DType::I32);
            let down = self.push(Expr::Binary(BinaryOp::Shr, up, bits), DType::I32);
            if storage.is_signed_int() {
                return down;
            }
            let mask =
                self.push(Expr::Const(Scalar::Int((1i64 << storage.bits()) - 1)), DType::I32);
            return self.push(Expr::Binary(BinaryOp::BitAnd, value, mask), DType::I32);
        }
        value
    }

    /// An index that may count from the end, as a coordinate.
    pub(super) fn wrapped(&mut self, at: ExprId, extent: &Dim) -> Dim {
        let dim = self.index(at);
        if self.scope().proves_nonneg(&dim) {
            return dim;
        }
        let zero = self.push(Expr::Const(Scalar::Int(0)), self.dtype(at));
        let extent = self.coord(extent, self.dtype(at));
        let negative = self.binary(BinaryOp::Lt, at, zero);
        let from_end = self.binary(BinaryOp::Add, at, extent);
        let at = self.select(negative, from_end, at);
        self.index(at)
    }

    /// The element at coordinates of which those along `axes` come from data: where such a one is
    /// out of range nothing is read and the result is zero.
    fn indexed(
        &mut self,
        value: ValueId,
        coords: &[Dim],
        axes: &[usize],
    ) -> Result<ExprId, LowerError> {
        let mut guard = Cond::always();
        for &axis in axes {
            let extent = &self.plan.graph[value].shape[axis];
            guard = guard.and(self.within(&coords[axis], extent));
        }
        self.value_where(value, coords, &guard, Scalar::Int(0))
    }

    /// `0 <= x < extent`, as far as it is not proved.
    pub(super) fn within(&self, x: &Dim, extent: &Dim) -> Cond {
        let scope = self.scope();
        scope.cond(Cmp::Le, &Dim::ZERO, x).and(scope.cond(Cmp::Lt, x, extent))
    }

    fn padded(
        &mut self,
        value: ValueId,
        coords: &[Dim],
        low: &[Dim],
        mode: PadMode,
    ) -> Result<ExprId, LowerError> {
        let graph = self.plan.graph;
        let shape = &graph[value].shape;
        let mut source = Vec::with_capacity(coords.len());
        let mut guard = Cond::always();
        for ((coord, low), extent) in coords.iter().zip(low).zip(shape) {
            let at = coord - low;
            let scope = self.scope();
            let last = extent - 1;
            source.push(match mode {
                PadMode::Constant(_) => {
                    guard = guard.and(self.within(&at, extent));
                    at
                }
                PadMode::Edge => scope.max(&Dim::ZERO, &scope.min(&at, &last)),
                PadMode::Wrap => scope.modulo(&at, extent),
                PadMode::Reflect => {
                    // |at| mirrored at the last element: last - |last - |at||.
                    let from_start = scope.max(&at, &-&at);
                    let to_end = &last - &from_start;
                    &last - scope.max(&to_end, &-&to_end)
                }
            });
        }
        match mode {
            PadMode::Constant(other) => self.value_where(value, &source, &guard, other),
            _ => self.value_at(value, &source),
        }
    }

    fn concat(
        &mut self,
        inputs: &[ValueId],
        axis: usize,
        coords: &[Dim],
    ) -> Result<ExprId, LowerError> {
        let graph = self.plan.graph;
        let mut starts = Vec::with_capacity(inputs.len());
        let mut next = Dim::ZERO;
        for &input in inputs {
            starts.push(next.clone());
            next = next + &graph[input].shape[axis];
        }
        let mut out: Option<ExprId> = None;
        for (i, (&input, start)) in inputs.iter().zip(&starts).enumerate().rev() {
            let mut source = coords.to_vec();
            source[axis] = &coords[axis] - start;
            let inside = self.within(&source[axis], &graph[input].shape[axis]);
            let here = self.value_where(input, &source, &inside, Scalar::Int(0))?;
            out = Some(match out {
                None => here,
                Some(after) => {
                    let end = &starts[i + 1];
                    let before_end = self.scope().cond(Cmp::Lt, &coords[axis], end);
                    let before_end = self.condition(&before_end);
                    self.select(before_end, here, after)
                }
            });
        }
        out.ok_or_else(|| LowerError::internal("concat", "it has no operands"))
    }

    /// `x` clamped to `0..extent`, as a coordinate.
    pub(super) fn clamped(&self, x: &Dim, extent: &Dim) -> Dim {
        let scope = self.scope();
        scope.max(&Dim::ZERO, &scope.min(x, &(extent - 1)))
    }

    /// A float rounded down, as an integer.
    pub(super) fn floor_to_int(&mut self, x: ExprId) -> ExprId {
        let floor = self.unary(UnaryOp::Floor, x);
        self.cast(floor, DType::I64)
    }
}
