//! Puts groups in an order in which everything is written before it is read.

use super::LowerError;
use super::builder::{Made, Stored};
use super::plan::{BufferKind, Plan};
use aot_ir::Op;
use aot_ir::dim::Atom;
use aot_kernels::group::Group;
use std::collections::{BTreeSet, HashMap};

/// Splits groups into those that prepare and those of a run, each in order of their needs and, where
/// there is a choice, in the given order.
pub(super) fn arrange(plan: &mut Plan<'_>, groups: Vec<Made>) -> Result<(), LowerError> {
    let prepares = |made: &Made| {
        made.group.stores.iter().all(|s| {
            let buffer = made.group.operands[s.operand.index()].buffer;
            plan.buffers[buffer as usize].kind == BufferKind::Prepared
        })
    };
    let (prepare, steps): (Vec<Made>, Vec<Made>) = groups.into_iter().partition(prepares);
    plan.prepare = sorted(plan, prepare)?;
    plan.steps = sorted(plan, steps)?;
    Ok(())
}

/// A value's parts too, where it is a concatenation that was computed in place.
fn with_parts(plan: &Plan<'_>, stored: Stored, out: &mut BTreeSet<Stored>) {
    if !out.insert(stored) || stored.1.is_some() {
        return;
    }
    if let Some(node) = plan.graph.producer(stored.0)
        && matches!(plan.graph[node].op, Op::Concat { .. })
    {
        for operand in &plan.graph[node].inputs {
            with_parts(plan, (*operand, None), out);
        }
    }
}

fn sorted(plan: &Plan<'_>, groups: Vec<Made>) -> Result<Vec<Group>, LowerError> {
    let mut writers: HashMap<Stored, Vec<usize>> = HashMap::new();
    for (i, made) in groups.iter().enumerate() {
        for stored in &made.writes {
            writers.entry(*stored).or_default().push(i);
        }
    }
    let mut before: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); groups.len()];
    for (i, made) in groups.iter().enumerate() {
        let mut needs = BTreeSet::new();
        made.reads.iter().for_each(|stored| with_parts(plan, *stored, &mut needs));
        let needed = needs.iter().filter_map(|stored| writers.get(stored)).flatten();
        before[i].extend(needed.copied().filter(|w| *w != i));
        // What writes where data says comes after what was written there first.
        if made.group.stores.iter().any(|s| s.offset.any(|a| matches!(a, Atom::Value(_)))) {
            let earlier = made.writes.iter().filter_map(|stored| writers.get(stored)).flatten();
            before[i].extend(earlier.copied().filter(|w| *w < i));
        }
    }
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); groups.len()];
    let mut open: Vec<usize> = before.iter().map(BTreeSet::len).collect();
    for (i, needs) in before.iter().enumerate() {
        for need in needs {
            after[*need].push(i);
        }
    }
    let mut ready: BTreeSet<usize> = (0..groups.len()).filter(|i| open[*i] == 0).collect();
    let mut slots: Vec<Option<Group>> = groups.into_iter().map(|m| Some(m.group)).collect();
    let mut out = Vec::with_capacity(slots.len());
    while let Some(next) = ready.pop_first() {
        out.extend(slots[next].take());
        for &i in &after[next] {
            open[i] -= 1;
            if open[i] == 0 {
                ready.insert(i);
            }
        }
    }
    match slots.into_iter().flatten().next() {
        Some(stuck) => Err(LowerError::internal(&stuck.label, "groups need each other")),
        None => Ok(out),
    }
}
