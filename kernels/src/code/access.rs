//! What the loads and stores of a group cost along a variable.

use super::ctype::element_bytes;
use super::emitter::Emitter;
use super::packed::per_word;
use crate::group::{Expr, ExprId};
use aot_ir::dim::{Cond, VarId};
use aot_ir::{DType, Dim};
use std::collections::BTreeSet;

/// A load or a store, as far as its cost is concerned.
#[derive(Clone, Debug)]
pub struct Access {
    /// How elements are stored.
    pub storage: DType,
    /// Elements from the buffer's start.
    pub offset: Dim,
    /// Where it is done.
    pub guard: Cond,
    /// Whether it writes.
    pub store: bool,
    /// How often it is done at a place: more than once within folds.
    pub times: f64,
}

impl Access {
    /// Bytes of an element; one for packed types.
    pub fn bytes(&self) -> i64 {
        element_bytes(self.storage).unwrap_or(1)
    }
}

/// What an access that jumps from lane to lane costs next to one that does not.
const SCATTERED: f64 = 4.0;
/// What a store costs next to a load.
const STORE: f64 = 1.5;

impl<'a> Emitter<'a> {
    /// All loads that `roots` are made of.
    pub fn loads(&self, roots: &[ExprId]) -> Vec<Access> {
        let mut wanted = BTreeSet::new();
        for root in roots {
            self.group.visit(*root, &mut |id, _| {
                wanted.insert(id);
            });
        }
        // Trips of the folds around each expression; parts come before what they are part of.
        let mut times = vec![1.0f64; self.group.exprs.len()];
        for id in wanted.iter().rev() {
            let mut trips = times[id.index()];
            if let Expr::Fold { vars, .. } = &self.group[*id].expr {
                let volume = self.scope.interval(&self.group.volume(vars)).hi;
                trips *= volume.clamp(1, 1 << 20) as f64;
            }
            self.group.parts(*id, &mut |p| times[p.index()] = times[p.index()].max(trips));
        }
        let load = |id: &ExprId| match &self.group[*id].expr {
            Expr::Load { operand, offset, guard, .. } => Some(Access {
                storage: self.storage(*operand),
                offset: offset.clone(),
                guard: guard.clone(),
                store: false,
                times: times[id.index()],
            }),
            _ => None,
        };
        wanted.iter().filter_map(load).collect()
    }

    /// The stores of the group that `which` selects.
    pub fn stores(&self, which: impl Fn(&crate::group::Store) -> bool) -> Vec<Access> {
        let access = |s: &crate::group::Store| Access {
            storage: self.storage(s.operand),
            offset: s.offset.clone(),
            guard: s.guard.clone(),
            store: true,
            times: 1.0,
        };
        self.group.stores.iter().filter(|s| which(s)).map(access).collect()
    }

    /// What accesses cost per element when threads go along `var` with `width` lanes each, in
    /// instructions of full warps.
    pub fn access_cost(&mut self, accesses: &[Access], var: VarId, width: usize) -> f64 {
        self.enter();
        self.bind_lanes(var, super::Int::narrow("0"), width);
        let mut cost = 0.0;
        for access in accesses {
            let step = self.step_along(&access.offset, var, width as i64);
            let steady = self.lanes_agree(&access.guard);
            let each = match step {
                Some(s) if s.is(0) && steady => 1.0 / width as f64,
                Some(s) if s.is(1) => {
                    let storage = access.storage;
                    let together = match access.store && storage.bits() < 8 {
                        true if self.has_whole_words(storage, &access.offset) => per_word(storage),
                        _ => self.access_width(access.storage, &access.offset),
                    };
                    match together {
                        n if n > 1 && steady => 1.0 / n as f64,
                        // Lanes of one thread share lines, which the first-level cache catches.
                        _ if width > 1 => 1.25,
                        _ => 1.0,
                    }
                }
                Some(s) if s.is(0) => 1.0,
                _ => SCATTERED,
            };
            cost += each * access.times * if access.store { STORE } else { 1.0 };
        }
        self.close();
        cost
    }
}
