//! A reduction with what the forms need to know of it.

use crate::code::{Access, Emit, Emitter};
use crate::group::{Anchor, ExprId, Group, Stage, Store};
use aot_ir::dim::VarId;

/// A reduction group; variables are merged.
#[derive(Debug)]
pub(super) struct Problem<'a> {
    pub(super) group: &'a Group,
    pub(super) rows: &'a [VarId],
    pub(super) over: &'a [VarId],
    pub(super) stages: &'a [Stage],
}

impl<'a> Problem<'a> {
    pub(super) fn new(group: &'a Group, emitter: &Emitter<'_>) -> Emit<Self> {
        let Anchor::Reduce { rows, over, stages } = &group.anchor else {
            return Err(emitter.unsupported("its anchor is no reduction"));
        };
        Ok(Self { group, rows, over, stages })
    }

    /// Whether an index of an extreme is sought, so that the order of elements matters.
    pub(super) fn seeks_index(&self) -> bool {
        use crate::group::FoldOp as F;
        self.stages.iter().any(|s| matches!(s.op, F::ArgMax { .. } | F::ArgMin { .. }))
    }

    /// Stores that are done at every element.
    pub(super) fn element_stores(&self) -> Vec<&'a Store> {
        self.group.stores.iter().filter(|s| s.per_element).collect()
    }

    /// Stores that are done once a row.
    pub(super) fn row_stores(&self) -> Vec<&'a Store> {
        self.group.stores.iter().filter(|s| !s.per_element).collect()
    }

    /// What is evaluated at every element, phase by phase: one phase a stage, then the stores.
    pub(super) fn phases(&self) -> Vec<Vec<ExprId>> {
        let mut phases: Vec<Vec<ExprId>> = self.stages.iter().map(|s| vec![s.value]).collect();
        let mut last = Vec::new();
        for store in self.element_stores() {
            last.push(store.value);
            let mut collect = |atom: &aot_ir::dim::Atom| {
                if let aot_ir::dim::Atom::Value(n) = atom {
                    last.push(ExprId(*n));
                }
            };
            store.offset.visit(&mut collect);
            store.guard.visit(&mut collect);
        }
        phases.push(last);
        phases
    }

    /// Loads and stores that are done at every element.
    pub(super) fn accesses(&self, emitter: &Emitter<'_>) -> Vec<Access> {
        let roots: Vec<ExprId> = self.phases().concat();
        let uses = emitter.dependencies();
        let mut accesses = emitter.loads(&roots);
        accesses.retain(|a| {
            let vars = uses.of_dim(&a.offset).vars;
            self.over.iter().any(|v| vars.contains(v))
        });
        accesses.extend(emitter.stores(|s| s.per_element));
        accesses
    }

    /// Whether an expression differs between a row's elements.
    pub(super) fn varies(&self, emitter: &Emitter<'_>, id: ExprId) -> bool {
        let vars = &emitter.dependencies().of(id).vars;
        self.over.iter().any(|v| vars.contains(v))
    }
}
