//! The group itself.

use super::{Anchor, Expr, ExprId, OperandId, Typed};
use aot_ir::dim::{Atom, Cond, VarId};
use aot_ir::op::ScatterReduction;
use aot_ir::{DType, Dim, Scope, Symbols};
use serde::{Deserialize, Serialize};
use std::ops::Index;

/// A buffer that a group reads or writes. Bases are aligned to 256 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Operand {
    /// Index of the buffer in the program that the group belongs to; says nothing to kernels but
    /// that equal numbers are one buffer.
    pub buffer: u32,
    /// How its elements are stored.
    pub dtype: DType,
    /// Elements that it holds.
    pub elements: Dim,
    /// No launch of a run writes it: a weight.
    pub constant: bool,
}

/// A write of one element.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Store {
    /// The buffer.
    pub operand: OperandId,
    /// Elements from the buffer's start. Distinct places write distinct elements unless it depends
    /// on data.
    pub offset: Dim,
    /// Where it is done.
    pub guard: Cond,
    /// What is written, converted to the buffer's type.
    pub value: ExprId,
    /// Combines atomically with what is there.
    pub combine: ScatterReduction,
    /// Of a reduction: at every element (else once a row). True for other anchors.
    pub per_element: bool,
}

/// One kernel's worth of computation; see the module's documentation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Group {
    /// For people: what it does, from the names of the source model.
    pub label: String,
    /// Names of the source model's nodes that it computes.
    pub origin: Vec<String>,
    /// Extent of every loop variable, by index; each uses symbols only.
    pub extents: Vec<Dim>,
    /// Expressions; the parts of one come before it.
    pub exprs: Vec<Typed>,
    /// Buffers; no two are the same one.
    pub operands: Vec<Operand>,
    /// What it computes.
    pub anchor: Anchor,
    /// What it writes.
    pub stores: Vec<Store>,
}

impl Group {
    /// The extent of a loop variable.
    pub fn extent(&self, var: VarId) -> &Dim {
        &self.extents[var.0 as usize]
    }

    /// The product of variables' extents.
    pub fn volume(&self, vars: &[VarId]) -> Dim {
        vars.iter().map(|v| self.extent(*v)).product()
    }

    /// What can be proved about this group's index maps.
    pub fn scope<'a>(&'a self, symbols: &'a Symbols) -> Scope<'a> {
        Scope { symbols, extents: &self.extents }
    }

    /// The buffers that it writes, by operand; some may be there more than once.
    pub fn written(&self) -> impl Iterator<Item = OperandId> + '_ {
        let by_host = match &self.anchor {
            Anchor::Host(on_host) => Some(on_host.result),
            _ => None,
        };
        self.stores.iter().map(|store| store.operand).chain(by_host)
    }

    /// Whether the host does it, and no kernel.
    pub fn is_on_host(&self) -> bool {
        matches!(self.anchor, Anchor::Host(_))
    }

    /// Calls `f` on every atom of the size expressions in it: extents, index maps, guards, lengths of buffers.
    pub fn visit_atoms(&self, f: &mut impl FnMut(&Atom)) {
        self.extents.iter().for_each(|dim| dim.visit(f));
        self.operands.iter().for_each(|operand| operand.elements.visit(f));
        if let Anchor::Host(on_host) = &self.anchor {
            on_host.op.dims().into_iter().for_each(|dim| dim.visit(f));
        }
        for store in &self.stores {
            store.offset.visit(f);
            store.guard.visit(f);
        }
        for typed in &self.exprs {
            match &typed.expr {
                Expr::Coord(dim) => dim.visit(f),
                Expr::Load { offset, guard, .. } => {
                    offset.visit(f);
                    guard.visit(f);
                }
                _ => {}
            }
        }
    }

    /// Calls `f` on an expression and everything it is made of, parts first, each once.
    pub fn visit(&self, root: ExprId, f: &mut impl FnMut(ExprId, &Typed)) {
        let mut wanted = vec![false; root.index() + 1];
        wanted[root.index()] = true;
        for i in (0..=root.index()).rev() {
            if !wanted[i] {
                continue;
            }
            self.parts(ExprId(i as u32), &mut |part| wanted[part.index()] = true);
        }
        for (i, _) in wanted.iter().enumerate().filter(|(_, w)| **w) {
            let id = ExprId(i as u32);
            f(id, &self[id]);
        }
    }

    /// The direct parts of an expression, those in its index maps included.
    pub fn parts(&self, id: ExprId, f: &mut impl FnMut(ExprId)) {
        let mut in_dim = |atom: &Atom| {
            if let Atom::Value(v) = atom {
                f(ExprId(*v));
            }
        };
        match &self[id].expr {
            Expr::Const(_) | Expr::Acc(_) => {}
            Expr::Coord(dim) => dim.visit(&mut in_dim),
            Expr::Load { offset, guard, .. } => {
                offset.visit(&mut in_dim);
                guard.visit(&mut in_dim);
            }
            Expr::Unary(_, x) | Expr::Cast { value: x, .. } => f(*x),
            Expr::Fold { body, .. } => f(*body),
            Expr::Binary(_, a, b) => {
                f(*a);
                f(*b);
            }
            Expr::Select(a, b, c) => {
                f(*a);
                f(*b);
                f(*c);
            }
        }
    }
}

impl Index<ExprId> for Group {
    type Output = Typed;
    fn index(&self, id: ExprId) -> &Typed {
        &self.exprs[id.index()]
    }
}
