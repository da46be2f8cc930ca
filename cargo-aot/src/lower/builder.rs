//! Makes one group: loop variables, expressions (each distinct one once) and operands.

mod access;

use super::plan::{Home, Plan, Reading, Repetition};
use access::PaddedVar;
use aot_ir::dim::{Atom, Cmp, Cond, VarId};
use aot_ir::op::{BinaryOp, UnaryOp};
use aot_ir::{DType, Dim, Scalar, Scope, ValueId};
use aot_kernels::group::{
    Anchor, Expr, ExprId, FoldOp, Group, Operand, Store, Typed, compute_type,
};
use std::collections::{BTreeSet, HashMap};

/// A group in the making.
pub(super) struct Builder<'p> {
    pub(super) plan: &'p Plan<'p>,
    extents: Vec<Dim>,
    /// Variables that go on through padding.
    padded: Vec<PaddedVar>,
    exprs: Vec<Typed>,
    ids: HashMap<Typed, ExprId>,
    operands: Vec<Operand>,
    stores: Vec<Store>,
    origin: Vec<String>,
    /// Values already computed, by value, coordinates and guard.
    pub(super) known: HashMap<(ValueId, Vec<Dim>, Cond), ExprId>,
    /// Holds wherever expressions made now are evaluated; loads must respect it.
    pub(super) guard: Cond,
    /// Load copies of this type where there are any.
    preferred: Option<DType>,
    /// Load no copies at all.
    originals: bool,
    reads: BTreeSet<Stored>,
}

/// A value in memory, or its copy in another type.
pub(super) type Stored = (ValueId, Option<DType>);

/// A group, or a loop of groups, with what it needs to be ordered.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) work: Work,
    pub(super) reads: BTreeSet<Stored>,
    pub(super) writes: Vec<Stored>,
}

/// What is done at one place of the order.
#[derive(Debug)]
pub(super) enum Work {
    Group(Box<Group>),
    Loop(Box<LoopSteps>),
}

/// The groups of a loop, in order.
#[derive(Debug)]
pub(super) struct LoopSteps {
    /// All of them.
    pub(super) whole: Repetition,
    pub(super) groups: Vec<Group>,
    pub(super) readings: Vec<Reading>,
    /// Those within it.
    pub(super) loops: Vec<Repetition>,
}

impl Made {
    pub(super) fn groups(&self) -> &[Group] {
        match &self.work {
            Work::Group(group) => std::slice::from_ref(group),
            Work::Loop(steps) => &steps.groups,
        }
    }

    /// For people: what it does.
    pub(super) fn label(&self) -> &str {
        self.groups().first().map_or("a loop", |group| &group.label)
    }
}

impl<'p> Builder<'p> {
    pub(super) fn new(plan: &'p Plan<'p>) -> Self {
        Self {
            plan,
            extents: Vec::new(),
            padded: Vec::new(),
            exprs: Vec::new(),
            ids: HashMap::new(),
            operands: Vec::new(),
            stores: Vec::new(),
            origin: Vec::new(),
            known: HashMap::new(),
            guard: Cond::always(),
            preferred: None,
            originals: false,
            reads: BTreeSet::new(),
        }
    }

    /// A group that copies: it reads values where they were computed.
    pub(super) fn of_originals(plan: &'p Plan<'p>) -> Self {
        Self { originals: true, ..Self::new(plan) }
    }

    /// From now on copies of values in this type are read where there are any.
    pub(super) fn prefer(&mut self, dtype: Option<DType>) {
        if self.preferred != dtype {
            self.known.clear();
        }
        self.preferred = dtype;
    }

    /// Where a value is read from, if it is in memory; notes that it is read.
    pub(super) fn home(&mut self, value: ValueId) -> Option<&'p Home> {
        let home = self.plan.homes.get(&value)?;
        let own = self.plan.buffers[home.buffer as usize].dtype;
        for dtype in self.preferred.into_iter().chain([own]).filter(|_| !self.originals) {
            if let Some(copy) = self.plan.converted.get(&(value, dtype)) {
                self.reads.insert((value, Some(dtype)));
                return Some(copy);
            }
        }
        self.reads.insert((value, None));
        Some(home)
    }

    pub(super) fn scope(&self) -> Scope<'_> {
        Scope { symbols: &self.plan.graph.symbols, extents: &self.extents }
    }

    /// A new loop variable.
    pub(super) fn var(&mut self, extent: &Dim) -> VarId {
        self.extents.push(extent.clone());
        VarId(self.extents.len() as u32 - 1)
    }

    /// Notes a node of the source model as computed here.
    pub(super) fn note(&mut self, name: &str) {
        if !name.is_empty() && !self.origin.iter().any(|o| o == name) {
            self.origin.push(name.to_owned());
        }
    }

    pub(super) fn push(&mut self, expr: Expr, dtype: DType) -> ExprId {
        let typed = Typed { expr, dtype };
        if let Some(&id) = self.ids.get(&typed) {
            return id;
        }
        let id = ExprId(self.exprs.len() as u32);
        self.exprs.push(typed.clone());
        self.ids.insert(typed, id);
        id
    }

    pub(super) fn dtype(&self, id: ExprId) -> DType {
        self.exprs[id.index()].dtype
    }

    pub(super) fn expr(&self, id: ExprId) -> &Expr {
        &self.exprs[id.index()].expr
    }

    pub(super) fn float(&mut self, value: f64, dtype: DType) -> ExprId {
        self.push(Expr::Const(Scalar::Float(value)), dtype)
    }

    /// A constant of a storage type.
    pub(super) fn constant(&mut self, value: Scalar, storage: DType) -> ExprId {
        let dtype = compute_type(storage);
        let value = match dtype {
            DType::Bool => Scalar::Bool(value.as_f64() != 0.0),
            t if t.is_float() => Scalar::Float(value.as_f64()),
            _ => Scalar::Int(value.as_i64()),
        };
        self.push(Expr::Const(value), dtype)
    }

    /// An integer expression as a number of type `dtype`.
    pub(super) fn coord(&mut self, dim: &Dim, dtype: DType) -> ExprId {
        let int = match dim.as_const() {
            Some(c) => self.push(Expr::Const(Scalar::Int(c)), DType::I64),
            None => match dim.as_atom() {
                Some(Atom::Value(v)) => ExprId(*v),
                _ => self.push(Expr::Coord(dim.clone()), DType::I64),
            },
        };
        self.cast(int, dtype)
    }

    /// The integer expression that an expression is, if it is one.
    fn as_dim(&self, id: ExprId) -> Option<Dim> {
        let Typed { expr, dtype } = &self.exprs[id.index()];
        match expr {
            Expr::Coord(dim) => Some(dim.clone()),
            // Of 64 bits without sign, what is negative stands for more than 2⁶³.
            Expr::Const(Scalar::Int(i)) if dtype.is_int() && (*i >= 0 || dtype.is_signed_int()) => {
                Some((*i).into())
            }
            _ => None,
        }
    }

    /// An integer expression to be used as a coordinate.
    pub(super) fn index(&self, id: ExprId) -> Dim {
        self.as_dim(id).unwrap_or_else(|| Dim::atom(Atom::Value(id.0)))
    }

    pub(super) fn unary(&mut self, op: UnaryOp, x: ExprId) -> ExprId {
        let dtype = if op.is_predicate() { DType::Bool } else { self.dtype(x) };
        if op == UnaryOp::Neg
            && let Some(negative) = self.as_dim(x).map(|d| -&d)
            && self.scope().holds(dtype, &negative)
        {
            return self.push_dim(&negative, dtype);
        }
        self.push(Expr::Unary(op, x), dtype)
    }

    fn push_dim(&mut self, dim: &Dim, dtype: DType) -> ExprId {
        match dim.as_const() {
            Some(c) => self.push(Expr::Const(Scalar::Int(c)), dtype),
            None => self.push(Expr::Coord(dim.clone()), dtype),
        }
    }

    pub(super) fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        let dtype = if op.is_comparison() { DType::Bool } else { self.dtype(a) };
        if let (Some(x), Some(y)) = (self.as_dim(a), self.as_dim(b)) {
            let scope = self.scope();
            let positive = |d: &Dim| scope.interval(d).lo > 0;
            let folded = match op {
                BinaryOp::Add => Some(&x + &y),
                BinaryOp::Sub => Some(&x - &y),
                BinaryOp::Mul => Some(&x * &y),
                BinaryOp::Div if positive(&y) && scope.proves_nonneg(&x) => {
                    Some(scope.floor_div(&x, &y))
                }
                BinaryOp::Mod if positive(&y) => Some(scope.modulo(&x, &y)),
                BinaryOp::Min => Some(scope.min(&x, &y)),
                BinaryOp::Max => Some(scope.max(&x, &y)),
                _ => None,
            };
            if let Some(dim) = folded.filter(|dim| scope.holds(dtype, dim)) {
                return self.push_dim(&dim, dtype);
            }
            let decided = match op {
                BinaryOp::Eq => scope.decide(Cmp::Eq, &x, &y),
                BinaryOp::Ne => scope.decide(Cmp::Ne, &x, &y),
                BinaryOp::Lt => scope.decide(Cmp::Lt, &x, &y),
                BinaryOp::Le => scope.decide(Cmp::Le, &x, &y),
                BinaryOp::Gt => scope.decide(Cmp::Lt, &y, &x),
                BinaryOp::Ge => scope.decide(Cmp::Le, &y, &x),
                _ => None,
            };
            if let Some(known) = decided {
                return self.push(Expr::Const(Scalar::Bool(known)), DType::Bool);
            }
        }
        self.push(Expr::Binary(op, a, b), dtype)
    }

    pub(super) fn select(&mut self, cond: ExprId, a: ExprId, b: ExprId) -> ExprId {
        match self.expr(cond) {
            Expr::Const(Scalar::Bool(true)) => a,
            Expr::Const(Scalar::Bool(false)) => b,
            _ if a == b => a,
            _ => {
                let dtype = self.dtype(a);
                self.push(Expr::Select(cond, a, b), dtype)
            }
        }
    }

    /// A condition on coordinates as a boolean.
    pub(super) fn condition(&mut self, cond: &Cond) -> ExprId {
        match self.scope().decide_cond(cond) {
            Some(known) => self.push(Expr::Const(Scalar::Bool(known)), DType::Bool),
            None => {
                let flag = Dim::atom(Atom::Select(cond.clone(), Dim::ONE, Dim::ZERO));
                let flag = self.push(Expr::Coord(flag), DType::I64);
                let zero = self.push(Expr::Const(Scalar::Int(0)), DType::I64);
                self.push(Expr::Binary(BinaryOp::Ne, flag, zero), DType::Bool)
            }
        }
    }

    /// Conversion to a storage type, with rounding, in the type that its arithmetic is done in.
    pub(super) fn cast(&mut self, value: ExprId, to: DType) -> ExprId {
        let (from, compute) = (self.dtype(value), compute_type(to));
        if from == to {
            return value;
        }
        if to.is_int()
            && let Some(dim) = self.as_dim(value)
            && self.scope().holds(to, &dim)
        {
            return self.push_dim(&dim, compute);
        }
        match *self.expr(value) {
            Expr::Const(c) if compute == to => return self.constant(c, to),
            _ => {}
        }
        self.push(Expr::Cast { value, to }, compute)
    }

    pub(super) fn fold(&mut self, op: FoldOp, vars: Vec<VarId>, body: ExprId) -> ExprId {
        let dtype = self.dtype(body);
        if vars.is_empty() {
            return body;
        }
        self.push(Expr::Fold { op, vars, body }, dtype)
    }

    pub(super) fn acc(&mut self, n: u32, dtype: DType) -> ExprId {
        self.push(Expr::Acc(n), dtype)
    }

    /// The group, which writes the given values.
    pub(super) fn finish(self, label: String, anchor: Anchor, writes: Vec<Stored>) -> Made {
        let group = Group {
            label,
            origin: self.origin,
            extents: self.extents,
            exprs: self.exprs,
            operands: self.operands,
            anchor,
            stores: self.stores,
        };
        Made { work: Work::Group(Box::new(group)), reads: self.reads, writes }
    }
}
