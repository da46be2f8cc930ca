//! Which values of a row's elements are kept in registers from one phase to the next.

use super::problem::Problem;
use crate::code::Emitter;
use crate::group::{Expr, ExprId};
use aot_ir::op::{BinaryOp, UnaryOp};
use std::collections::{BTreeMap, BTreeSet};

/// Expressions to keep, with the phase that evaluates them first.
///
/// Kept is what a later phase needs again and could not compute cheaply from other kept values and
/// from what is the same at all elements of the row.
pub(super) fn choose(problem: &Problem<'_>, emitter: &Emitter<'_>) -> BTreeMap<ExprId, usize> {
    let mut plan = Plan {
        problem,
        emitter,
        first: BTreeMap::new(),
        kept: BTreeMap::new(),
        phase: 0,
        seen: BTreeSet::new(),
    };
    for (phase, roots) in problem.phases().into_iter().enumerate() {
        plan.phase = phase;
        plan.seen.clear();
        roots.into_iter().for_each(|root| plan.walk(root));
        for id in &plan.seen {
            plan.first.entry(*id).or_insert(phase);
        }
    }
    plan.kept
}

struct Plan<'p, 'a> {
    problem: &'p Problem<'a>,
    emitter: &'p Emitter<'a>,
    /// Phase of the first evaluation.
    first: BTreeMap<ExprId, usize>,
    kept: BTreeMap<ExprId, usize>,
    phase: usize,
    seen: BTreeSet<ExprId>,
}

impl Plan<'_, '_> {
    fn walk(&mut self, id: ExprId) {
        let at_hand = !self.problem.varies(self.emitter, id) || self.kept.contains_key(&id);
        if at_hand || !self.seen.insert(id) {
            return;
        }
        if let Some(first) = self.first.get(&id).copied()
            && self.is_expensive(id)
        {
            self.kept.insert(id, first);
            return;
        }
        // What a fold is made of depends on its variables.
        if matches!(self.emitter.group()[id].expr, Expr::Fold { .. }) {
            return;
        }
        let mut parts = Vec::new();
        self.emitter.group().parts(id, &mut |p| parts.push(p));
        parts.into_iter().for_each(|p| self.walk(p));
    }

    /// Whether evaluating it anew takes more than a few instructions.
    fn is_expensive(&self, id: ExprId) -> bool {
        if !self.problem.varies(self.emitter, id) || self.kept.contains_key(&id) {
            return false;
        }
        let group = self.emitter.group();
        let here = match &group[id].expr {
            Expr::Load { .. } | Expr::Fold { .. } => true,
            Expr::Unary(op, _) => !matches!(
                op,
                UnaryOp::Neg
                    | UnaryOp::Abs
                    | UnaryOp::Floor
                    | UnaryOp::Ceil
                    | UnaryOp::Round
                    | UnaryOp::Relu
                    | UnaryOp::Not
                    | UnaryOp::BitNot
                    | UnaryOp::IsNan
                    | UnaryOp::IsPosInf
                    | UnaryOp::IsNegInf
            ),
            Expr::Binary(op, ..) => {
                matches!(op, BinaryOp::Div | BinaryOp::Mod | BinaryOp::Rem | BinaryOp::Pow)
            }
            _ => false,
        };
        let mut parts = Vec::new();
        group.parts(id, &mut |p| parts.push(p));
        here || parts.into_iter().any(|p| self.is_expensive(p))
    }
}
