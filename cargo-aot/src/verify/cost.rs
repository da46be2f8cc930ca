//! What comparisons cost, so that they can be kept short.

use aot_ir::dim::VarId;
use aot_kernels::group::{Anchor, Expr, Group};

use crate::lower::plan::Plan;
use crate::lower::work;
use crate::pipeline::Work;

/// Operations and bytes of a run of the reference at sizes given by atoms.
pub(super) fn of_reference(plan: &Plan<'_>, atoms: &[i64]) -> f64 {
    let works = plan.steps.iter().enumerate().map(|(step, group)| {
        let work = Work::of(&work(group, &plan.graph.symbols), atoms);
        (work.flop + work.bytes) * plan.times(step, atoms)
    });
    works.sum()
}

/// Expressions that the interpreter evaluates, preparing included.
pub(super) fn of_interpreter(plan: &Plan<'_>, atoms: &[i64]) -> f64 {
    let prepare: f64 = plan.prepare.iter().map(|group| evaluations(group, atoms)).sum();
    let steps = plan.steps.iter().enumerate();
    prepare
        + steps
            .map(|(step, group)| evaluations(group, atoms) * plan.times(step, atoms))
            .sum::<f64>()
}

fn evaluations(group: &Group, atoms: &[i64]) -> f64 {
    /// An operand of a product is a load, most often, and its index.
    const OPERAND: f64 = 2.0;
    /// Products are summed this many times faster than expressions are evaluated.
    const SUMS: f64 = 30.0;
    let extent = |var: &VarId| group.extent(*var).eval(atoms).unwrap_or(0).max(0) as f64;
    let volume = |vars: &[VarId]| vars.iter().map(extent).product::<f64>();
    let folds = group.exprs.iter().filter_map(|typed| match &typed.expr {
        Expr::Fold { vars, .. } => Some(volume(vars)),
        _ => None,
    });
    let each = group.exprs.len() as f64 * folds.fold(1.0, f64::max);
    match &group.anchor {
        Anchor::Map { space } => volume(space) * each,
        Anchor::Reduce { rows, over, stages } => {
            volume(rows) * volume(over) * each * (stages.len() + 1) as f64
        }
        Anchor::Scan { rows, along, .. } => volume(rows) * extent(along) * each * 2.0,
        Anchor::Contraction(c) => {
            let (m, n, k) = (volume(&c.m), volume(&c.n), volume(&c.k));
            volume(&c.batch) * ((m + n) * k * OPERAND + m * n * k / SUMS + m * n * each)
        }
        Anchor::Attention(a) => {
            let (rows, columns, width) = (extent(&a.row), extent(&a.col), extent(&a.width));
            let operands = (rows + columns) * extent(&a.qk) + columns * width;
            volume(&a.batch) * (operands * OPERAND + rows * (columns + width) * each)
        }
        Anchor::Host(_) => 0.0,
        _ => f64::INFINITY,
    }
}
