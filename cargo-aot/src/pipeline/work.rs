//! How much there is to compute and to move.

use aot_ir::dim::VarId;
use aot_kernels::group::{Anchor, Expr, Group};
use serde::Serialize;

/// An amount of work at given sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Work {
    /// Floating-point operations: two for each multiply-add of products, one for each element that
    /// is mapped, reduced or scanned.
    pub flop: f64,
    /// Bytes that must be read or written at least: each buffer of each launch once, and of a
    /// buffer that is only sampled no more than is loaded.
    pub bytes: f64,
}

impl std::ops::AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        self.flop += other.flop;
        self.bytes += other.bytes;
    }
}

impl Work {
    /// The same again and again.
    pub fn times(self, n: f64) -> Self {
        Self { flop: self.flop * n, bytes: self.bytes * n }
    }

    /// The work of a group where the symbols' atoms have these values.
    pub fn of(group: &Group, atoms: &[i64]) -> Self {
        let extent = |var: &VarId| group.extent(*var).eval(atoms).unwrap_or(0).max(0) as f64;
        let volume = |vars: &[VarId]| vars.iter().map(extent).product::<f64>();
        let (flop, places) = match &group.anchor {
            Anchor::Map { space } => (volume(space), volume(space)),
            Anchor::Reduce { rows, over, stages } => {
                let places = volume(rows) * volume(over);
                (places * stages.len() as f64, places)
            }
            Anchor::Scan { rows, along, .. } => {
                let places = volume(rows) * extent(along);
                (places, places)
            }
            Anchor::Contraction(c) => {
                let places = volume(&c.batch) * volume(&c.m) * volume(&c.n) * volume(&c.k);
                (2.0 * places, places)
            }
            Anchor::Attention(a) => {
                let places = volume(&a.batch) * extent(&a.row) * extent(&a.col);
                let widths = extent(&a.qk) + extent(&a.width);
                (2.0 * places * widths, places * widths)
            }
            Anchor::Host(_) => (0.0, 0.0),
            _ => (0.0, f64::INFINITY),
        };
        Self { flop, bytes: bytes(group, atoms, places) }
    }
}

/// Every operand once, but no more than its accesses at `places` places.
fn bytes(group: &Group, atoms: &[i64], places: f64) -> f64 {
    let mut accesses = vec![0.0; group.operands.len()];
    for typed in &group.exprs {
        if let Expr::Load { operand, .. } = &typed.expr {
            accesses[operand.index()] += 1.0;
        }
    }
    for store in &group.stores {
        accesses[store.operand.index()] += 1.0;
    }
    let folds = group.exprs.iter().filter_map(|typed| match &typed.expr {
        Expr::Fold { vars, .. } => {
            let extents = vars.iter().map(|var| group.extent(*var).eval(atoms).unwrap_or(0));
            Some(extents.map(|extent| extent.max(0) as f64).product::<f64>())
        }
        _ => None,
    });
    let places = places * folds.fold(1.0, f64::max);
    group
        .operands
        .iter()
        .zip(accesses)
        .map(|(operand, accesses)| {
            let elements = operand.elements.eval(atoms).unwrap_or(0).max(0) as f64;
            elements.min(accesses * places) * f64::from(operand.dtype.bits()) / 8.0
        })
        .sum()
}
