//! A scan with what the forms need to know of it.

use crate::code::{Access, Accumulator, Emit, Emitter, Int, Value};
use crate::group::{Anchor, ExprId, FoldOp, Group, Store};
use aot_ir::DType;
use aot_ir::dim::{Atom, VarId};

/// A scan group; variables are merged.
#[derive(Debug)]
pub(super) struct Problem<'a> {
    pub(super) group: &'a Group,
    pub(super) rows: &'a [VarId],
    pub(super) along: VarId,
    pub(super) op: FoldOp,
    pub(super) value: ExprId,
    pub(super) exclusive: bool,
    pub(super) reverse: bool,
}

impl<'a> Problem<'a> {
    pub(super) fn new(group: &'a Group, emitter: &Emitter<'_>) -> Emit<Self> {
        let Anchor::Scan { rows, along, op, value, exclusive, reverse } = &group.anchor else {
            return Err(emitter.unsupported("its anchor is no scan"));
        };
        if matches!(op, FoldOp::ArgMax { .. } | FoldOp::ArgMin { .. }) {
            return Err(emitter.unsupported("a running index of an extreme"));
        }
        Ok(Self {
            group,
            rows,
            along: *along,
            op: *op,
            value: *value,
            exclusive: *exclusive,
            reverse: *reverse,
        })
    }

    /// What values are combined in.
    pub(super) fn dtype(&self) -> DType {
        self.group[self.value].dtype
    }

    /// Loads and stores that are done at every element.
    pub(super) fn accesses(&self, emitter: &Emitter<'_>) -> Vec<Access> {
        let mut roots = vec![self.value];
        for store in &self.group.stores {
            roots.push(store.value);
            let mut collect = |atom: &Atom| {
                if let Atom::Value(n) = atom {
                    roots.push(ExprId(*n));
                }
            };
            store.offset.visit(&mut collect);
            store.guard.visit(&mut collect);
        }
        let uses = emitter.dependencies();
        let mut accesses = emitter.loads(&roots);
        accesses.retain(|a| uses.of_dim(&a.offset).vars.contains(&self.along));
        accesses.extend(emitter.stores(|_| true));
        accesses
    }

    /// Emits what is the same at all elements of a row.
    pub(super) fn hoist(&self, emitter: &mut Emitter<'_>) -> Emit<()> {
        emitter.hoist(self.value, &[self.along])?;
        self.group.stores.iter().try_for_each(|s| emitter.hoist(s.value, &[self.along]))
    }

    /// The place, counted from where the scan begins, as one that the variable takes: of `count` places,
    /// elements or groups of lanes.
    pub(super) fn place(&self, emitter: &mut Emitter<'_>, step: Int, count: &Int) -> Int {
        if !self.reverse {
            return step;
        }
        let text = format!("{} - 1 - {}", count.text, step.text);
        emitter.constant_int("n", &Int { text, wide: step.wide || count.wide })
    }

    /// Takes a thread's values, one a lane, into `running`, the combination of all before them, and binds
    /// the scan's results.
    pub(super) fn advance(
        &self,
        emitter: &mut Emitter<'_>,
        running: &Accumulator,
        value: &Value,
        width: usize,
    ) {
        let mut lanes = vec![String::new(); width];
        let order: Vec<usize> =
            if self.reverse { (0..width).rev().collect() } else { (0..width).collect() };
        for lane in order {
            if self.exclusive {
                lanes[lane] = emitter.scalar(self.dtype(), &running.values[0]);
            }
            emitter.combine(running, 0, value.lane(lane));
            if !self.exclusive {
                lanes[lane] = emitter.scalar(self.dtype(), &running.values[0]);
            }
        }
        emitter.bind_acc(0, Value { dtype: self.dtype(), lanes });
    }

    /// All stores at the current place.
    pub(super) fn stores(&self, emitter: &mut Emitter<'_>) -> Emit<()> {
        let stores: Vec<&Store> = self.group.stores.iter().collect();
        emitter.store_all(&stores)
    }
}
