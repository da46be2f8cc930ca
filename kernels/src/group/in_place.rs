//! Where a group's result may take the memory of one of its operands.

use super::{Anchor, Expr, ExprId, Group, OperandId, Store};
use aot_ir::dim::Atom;
use aot_ir::op::ScatterReduction;

impl Group {
    /// Whether the memory of `operand` may become that of the buffer that `store` writes.
    ///
    /// True only if every element of the operand is read for the store that overwrites it and for nothing else that
    /// could come later. Kernels see to it that
    /// * one thread does a store, once, and reads before it what the store's value is made of;
    /// * elements of a reduced row are all read, for its stages, before the row's first store.
    ///
    /// What a contraction multiplies, attention attends to or a scan combines is read by several threads or again, and
    /// never qualifies; what their stores read does.
    pub fn may_replace(&self, operand: OperandId, store: &Store) -> bool {
        let (from, to) = (&self.operands[operand.index()], &self.operands[store.operand.index()]);
        let alike = from.dtype == to.dtype && from.elements == to.elements;
        if operand == store.operand || !alike || from.dtype.bits() < 8 {
            return false;
        }
        let plain = store.combine == ScatterReduction::None
            && store.guard.is_always()
            && !store.offset.any(|atom| matches!(atom, Atom::Value(_)));
        let touches = |id: OperandId| self.stores.iter().filter(|s| s.operand == id).count();
        if !plain || touches(operand) != 0 || touches(store.operand) != 1 {
            return false;
        }
        let mut loads = Vec::new();
        for (i, typed) in self.exprs.iter().enumerate() {
            if let Expr::Load { operand: read, offset, .. } = &typed.expr {
                if *read == store.operand || (*read == operand && *offset != store.offset) {
                    return false;
                }
                if *read == operand {
                    loads.push(ExprId(i as u32));
                }
            }
        }
        let elsewhere = self.stores.iter().filter(|s| s.operand != store.operand);
        let mut others: Vec<ExprId> = elsewhere.flat_map(roots).collect();
        match &self.anchor {
            Anchor::Map { .. } => {}
            Anchor::Reduce { .. } if store.per_element => {}
            Anchor::Reduce { stages, .. } => others.extend(stages.iter().map(|s| s.value)),
            Anchor::Scan { value, .. } => others.push(*value),
            Anchor::Contraction(c) => others.extend([c.a, c.b]),
            Anchor::Attention(a) => others.extend([a.q, a.k, a.v, a.score]),
            Anchor::Host(_) => return false,
        }
        let mut read_elsewhere = false;
        for root in others {
            self.visit(root, &mut |id, _| read_elsewhere |= loads.contains(&id));
        }
        !loads.is_empty() && !read_elsewhere
    }
}

/// The expressions that a store evaluates.
fn roots(store: &Store) -> Vec<ExprId> {
    let mut out = vec![store.value];
    let mut note = |atom: &Atom| {
        if let Atom::Value(n) = atom {
            out.push(ExprId(*n));
        }
    };
    store.offset.visit(&mut note);
    store.guard.visit(&mut note);
    out
}

#[cfg(test)]
mod tests {
    use super::super::{Contraction, MathType, Operand, Stage, Typed};
    use super::*;
    use crate::group::FoldOp;
    use aot_ir::dim::{Cond, VarId};
    use aot_ir::op::{BinaryOp, UnaryOp};
    use aot_ir::{DType, Dim, Scalar};

    const ROWS: VarId = VarId(0);
    const COLUMNS: VarId = VarId(1);

    /// `y[i, j] = -x[i, j]` of 3 rows of 4, in binary32.
    fn negation(anchor: Anchor) -> Group {
        let place = Dim::var(ROWS) * 4 + Dim::var(COLUMNS);
        let operand =
            |buffer| Operand { buffer, dtype: DType::F32, elements: 12.into(), constant: false };
        let load = Expr::Load {
            operand: OperandId(0),
            offset: place.clone(),
            guard: Cond::always(),
            other: Scalar::Float(0.0),
        };
        let of = |expr| Typed { expr, dtype: DType::F32 };
        Group {
            label: "negation".into(),
            origin: Vec::new(),
            extents: vec![3.into(), 4.into()],
            exprs: vec![of(load), of(Expr::Unary(UnaryOp::Neg, ExprId(0)))],
            operands: vec![operand(0), operand(1)],
            anchor,
            stores: vec![Store {
                operand: OperandId(1),
                offset: place,
                guard: Cond::always(),
                value: ExprId(1),
                combine: ScatterReduction::None,
                per_element: true,
            }],
        }
    }

    fn map() -> Group {
        negation(Anchor::Map { space: vec![ROWS, COLUMNS] })
    }

    fn may(group: &Group) -> bool {
        group.may_replace(OperandId(0), &group.stores[0])
    }

    #[test]
    fn elements_are_read_where_they_are_written() {
        assert!(may(&map()));
        let not = |change: &dyn Fn(&mut Group)| {
            let mut group = map();
            change(&mut group);
            assert!(!may(&group), "{group:?}");
        };
        let read_at = |group: &mut Group, place: Dim| {
            let Expr::Load { offset, .. } = &mut group.exprs[0].expr else { unreachable!() };
            *offset = place;
        };
        not(&|g| read_at(g, Dim::var(COLUMNS)));
        not(&|g| read_at(g, Dim::var(COLUMNS) * 3 + Dim::var(ROWS)));
        not(&|g| g.operands[1].dtype = DType::I32);
        not(&|g| g.operands[1].elements = 24.into());
        not(&|g| g.operands.iter_mut().for_each(|o| o.dtype = DType::I4));
        not(&|g| g.stores[0].guard = Cond::within(&Dim::var(COLUMNS), &Dim::from(3)));
        not(&|g| g.stores[0].combine = ScatterReduction::Add);
        // Once more, elsewhere.
        not(&|g| {
            let mut again = g.exprs[0].clone();
            let Expr::Load { offset, .. } = &mut again.expr else { unreachable!() };
            *offset = Dim::var(COLUMNS);
            g.exprs.push(again);
            let sum = Expr::Binary(BinaryOp::Add, ExprId(1), ExprId(2));
            g.exprs.push(Typed { expr: sum, dtype: DType::F32 });
            g.stores[0].value = ExprId(3);
        });
    }

    /// A second store may come after the first.
    #[test]
    fn what_two_stores_read_stays() {
        let mut group = map();
        group.operands.push(Operand { buffer: 2, ..group.operands[1].clone() });
        group.stores.push(Store { operand: OperandId(2), ..group.stores[0].clone() });
        assert!(!may(&group));
        let constant = Expr::Const(Scalar::Float(1.0));
        group.exprs.push(Typed { expr: constant, dtype: DType::F32 });
        group.stores[1].value = ExprId(2);
        assert!(may(&group));
    }

    #[test]
    fn rows_are_read_before_they_are_written_but_matrix_operands_are_read_by_many() {
        let stages = vec![Stage { op: FoldOp::Max, value: ExprId(0) }];
        let reduce = Anchor::Reduce { rows: vec![ROWS], over: vec![COLUMNS], stages };
        let mut group = negation(reduce);
        assert!(may(&group));
        group.stores[0].per_element = false;
        assert!(!may(&group));
        let product = |a| {
            let (m, n) = (vec![ROWS], vec![COLUMNS]);
            let (batch, k, math) = (Vec::new(), Vec::new(), MathType::F32);
            negation(Anchor::Contraction(Contraction { batch, m, n, k, a, b: ExprId(2), math }))
        };
        let with_constant = |mut group: Group| {
            let constant = Expr::Const(Scalar::Float(1.0));
            group.exprs.push(Typed { expr: constant, dtype: DType::F32 });
            group
        };
        assert!(!may(&with_constant(product(ExprId(0)))));
        assert!(may(&with_constant(product(ExprId(2)))));
    }
}
