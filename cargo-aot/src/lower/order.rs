//! Puts groups in an order in which everything is written before it is read.

use super::LowerError;
use super::builder::{Made, Stored};
use super::plan::{BufferKind, Plan, Reading};
use aot_ir::dim::Atom;
use aot_ir::{Op, SymId, ValueId};
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
    plan.prepare = sorted(plan, prepare)?.into_iter().map(|made| made.group).collect();
    let steps = sorted(plan, steps)?;
    plan.readings = readings(plan, &steps);
    plan.steps = steps.into_iter().map(|made| made.group).collect();
    Ok(())
}

/// The symbols that a group mentions and that the run binds.
fn mentioned(plan: &Plan<'_>, group: &Group) -> BTreeSet<SymId> {
    let mut out = BTreeSet::new();
    if plan.graph.bindings.is_empty() {
        return out;
    }
    group.visit_atoms(&mut |atom| {
        if let Atom::Sym(symbol) = atom
            && plan.graph.binding(*symbol).is_some()
        {
            out.insert(*symbol);
        }
    });
    out
}

/// Which sizes are read where. Whenever the run has to wait for one, all that are made by then are read.
fn readings(plan: &Plan<'_>, steps: &[Made]) -> Vec<Reading> {
    let graph = plan.graph;
    let made = |value: ValueId| steps.iter().rposition(|made| made.writes.contains(&(value, None)));
    let mut pending: Vec<(SymId, u32, Option<usize>)> = graph
        .bindings
        .iter()
        .filter_map(|b| Some((b.symbol, plan.homes.get(&b.size)?.buffer, made(b.size))))
        .collect();
    let mut out = Vec::new();
    for (before, group) in steps.iter().map(|made| Some(&made.group)).chain([None]).enumerate() {
        let wanted = group.map(|group| mentioned(plan, group));
        let waits = pending.iter().any(|(symbol, ..)| match &wanted {
            Some(wanted) => wanted.contains(symbol),
            None => true,
        });
        if waits {
            let (now, later) = pending.into_iter().partition(|(.., made)| *made < Some(before));
            pending = later;
            let now: Vec<(SymId, u32, Option<usize>)> = now;
            out.extend(now.into_iter().map(|(symbol, buffer, _)| Reading {
                before,
                symbol,
                buffer,
            }));
        }
    }
    out
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

fn sorted(plan: &Plan<'_>, groups: Vec<Made>) -> Result<Vec<Made>, LowerError> {
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
        let sizes = mentioned(plan, &made.group).into_iter();
        needs.extend(sizes.filter_map(|symbol| Some((plan.graph.binding(symbol)?, None))));
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
    let mut slots: Vec<Option<Made>> = groups.into_iter().map(Some).collect();
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
        Some(stuck) => Err(LowerError::internal(&stuck.group.label, "groups need each other")),
        None => Ok(out),
    }
}
