//! What expressions and index maps depend on.

use crate::group::{Expr, ExprId, Group};
use aot_ir::Dim;
use aot_ir::dim::{Atom, Cond, VarId};
use std::collections::BTreeSet;

/// Free variables and results of the anchor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// Loop variables, those bound by folds inside left out.
    pub vars: BTreeSet<VarId>,
    /// `Acc(n)`.
    pub accs: BTreeSet<u32>,
}

impl Uses {
    fn extend(&mut self, other: &Self) {
        self.vars.extend(&other.vars);
        self.accs.extend(&other.accs);
    }
}

/// The uses of every expression of a group.
#[derive(Clone, Debug)]
pub struct Dependencies {
    exprs: Vec<Uses>,
}

impl Dependencies {
    /// Of all expressions of `group`.
    pub fn new(group: &Group) -> Self {
        let mut all = Self { exprs: Vec::with_capacity(group.exprs.len()) };
        for (i, typed) in group.exprs.iter().enumerate() {
            let mut uses = Uses::default();
            match &typed.expr {
                Expr::Acc(n) => {
                    uses.accs.insert(*n);
                }
                Expr::Coord(dim) => uses = all.of_dim(dim),
                Expr::Load { offset, guard, .. } => {
                    uses = all.of_dim(offset);
                    uses.extend(&all.of_cond(guard));
                }
                Expr::Fold { vars, body, .. } => {
                    uses = all.of(*body).clone();
                    vars.iter().for_each(|v| {
                        uses.vars.remove(v);
                    });
                }
                _ => group.parts(ExprId(i as u32), &mut |p| uses.extend(&all.exprs[p.index()])),
            }
            all.exprs.push(uses);
        }
        all
    }

    /// Of one expression.
    pub fn of(&self, id: ExprId) -> &Uses {
        &self.exprs[id.index()]
    }

    /// Of an index map, through data-dependent coordinates.
    pub fn of_dim(&self, dim: &Dim) -> Uses {
        let mut uses = Uses::default();
        dim.visit(&mut |atom| self.add_atom(atom, &mut uses));
        uses
    }

    /// Of a condition.
    pub fn of_cond(&self, cond: &Cond) -> Uses {
        let mut uses = Uses::default();
        cond.visit(&mut |atom| self.add_atom(atom, &mut uses));
        uses
    }

    fn add_atom(&self, atom: &Atom, uses: &mut Uses) {
        match atom {
            Atom::Var(v) => {
                uses.vars.insert(*v);
            }
            Atom::Value(n) => uses.extend(&self.exprs[*n as usize]),
            _ => {}
        }
    }
}
