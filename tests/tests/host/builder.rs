//! Groups written down in few lines.

use aot_ir::dim::{Atom, Cond, VarId};
use aot_ir::op::{BinaryOp, ScatterReduction, UnaryOp};
use aot_ir::{DType, Dim, Scalar};
use aot_kernels::group::{
    Anchor, Expr, ExprId, FoldOp, Group, Operand, OperandId, Stage, Store, Typed, compute_type,
};

/// A group under construction.
#[derive(Debug)]
pub(crate) struct Builder {
    pub(crate) group: Group,
}

pub(crate) fn var(v: VarId) -> Dim {
    Dim::var(v)
}

impl Builder {
    pub(crate) fn new(label: &str) -> Self {
        Self {
            group: Group {
                label: label.to_owned(),
                origin: Vec::new(),
                extents: Vec::new(),
                exprs: Vec::new(),
                operands: Vec::new(),
                anchor: Anchor::Map { space: Vec::new() },
                stores: Vec::new(),
            },
        }
    }

    pub(crate) fn var(&mut self, extent: impl Into<Dim>) -> VarId {
        self.group.extents.push(extent.into());
        VarId(self.group.extents.len() as u32 - 1)
    }

    pub(crate) fn operand(&mut self, dtype: DType, elements: impl Into<Dim>) -> OperandId {
        let buffer = self.group.operands.len() as u32;
        self.group.operands.push(Operand {
            buffer,
            dtype,
            elements: elements.into(),
            constant: false,
        });
        OperandId(buffer)
    }

    pub(crate) fn expr(&mut self, dtype: DType, expr: Expr) -> ExprId {
        self.group.exprs.push(Typed { expr, dtype });
        ExprId(self.group.exprs.len() as u32 - 1)
    }

    pub(crate) fn load(&mut self, operand: OperandId, offset: Dim) -> ExprId {
        self.guarded(operand, offset, Cond::always(), Scalar::Int(0))
    }

    pub(crate) fn guarded(
        &mut self,
        operand: OperandId,
        offset: Dim,
        guard: Cond,
        other: Scalar,
    ) -> ExprId {
        let dtype = compute_type(self.group.operands[operand.index()].dtype);
        self.expr(dtype, Expr::Load { operand, offset, guard, other })
    }

    pub(crate) fn dtype(&self, x: ExprId) -> DType {
        self.group[x].dtype
    }

    pub(crate) fn unary(&mut self, op: UnaryOp, x: ExprId) -> ExprId {
        let dtype = if op.is_predicate() { DType::Bool } else { self.dtype(x) };
        self.expr(dtype, Expr::Unary(op, x))
    }

    pub(crate) fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        let dtype = if op.is_comparison() { DType::Bool } else { self.dtype(a) };
        self.expr(dtype, Expr::Binary(op, a, b))
    }

    pub(crate) fn float(&mut self, x: f64) -> ExprId {
        self.expr(DType::F32, Expr::Const(Scalar::Float(x)))
    }

    pub(crate) fn acc(&mut self, n: u32, dtype: DType) -> ExprId {
        self.expr(dtype, Expr::Acc(n))
    }

    pub(crate) fn cast(&mut self, value: ExprId, to: DType) -> ExprId {
        self.expr(compute_type(to), Expr::Cast { value, to })
    }

    pub(crate) fn fold(&mut self, op: FoldOp, vars: &[VarId], body: ExprId) -> ExprId {
        let dtype = match op {
            FoldOp::ArgMax { .. } | FoldOp::ArgMin { .. } => DType::I64,
            _ => self.dtype(body),
        };
        self.expr(dtype, Expr::Fold { op, vars: vars.to_vec(), body })
    }

    /// The value of an `I64` or `I32` expression as a coordinate.
    pub(crate) fn coordinate(&self, x: ExprId) -> Dim {
        Dim::atom(Atom::Value(x.0))
    }

    pub(crate) fn store(&mut self, operand: OperandId, offset: Dim, value: ExprId) -> &mut Store {
        self.group.stores.push(Store {
            operand,
            offset,
            guard: Cond::always(),
            value,
            combine: ScatterReduction::None,
            per_element: true,
        });
        let last = self.group.stores.len() - 1;
        &mut self.group.stores[last]
    }

    pub(crate) fn reduce(
        mut self,
        rows: &[VarId],
        over: &[VarId],
        stages: &[(FoldOp, ExprId)],
    ) -> Group {
        let stages = stages.iter().map(|(op, value)| Stage { op: *op, value: *value }).collect();
        self.group.anchor = Anchor::Reduce { rows: rows.to_vec(), over: over.to_vec(), stages };
        self.group
    }

    /// The running combination of a value, as `Acc(0)`.
    pub(crate) fn scan(
        mut self,
        rows: &[VarId],
        along: VarId,
        (op, value): (FoldOp, ExprId),
        (exclusive, reverse): (bool, bool),
    ) -> Group {
        let rows = rows.to_vec();
        self.group.anchor = Anchor::Scan { rows, along, op, value, exclusive, reverse };
        self.group
    }

    pub(crate) fn map(mut self, space: &[VarId]) -> Group {
        self.group.anchor = Anchor::Map { space: space.to_vec() };
        self.group
    }
}
