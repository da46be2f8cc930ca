//! Puts groups in an order in which everything is written before it is read.

use super::LowerError;
use super::builder::{LoopSteps, Made, Stored, Work};
use super::plan::{BufferKind, Plan, Reading};
use aot_ir::dim::Atom;
use aot_ir::{DType, Graph, Op, SymId, Symbol, ValueId};
use aot_kernels::group::Group;
use std::collections::{BTreeSet, HashMap};

/// Splits groups into those that prepare and those of a run, each in order of their needs and, where
/// there is a choice, in the given order.
pub(super) fn arrange(plan: &mut Plan<'_>, groups: Vec<Made>) -> Result<(), LowerError> {
    let prepares = |made: &Made| match &made.work {
        Work::Group(group) => group.written().all(|operand| {
            let buffer = group.operands[operand.index()].buffer;
            plan.buffers[buffer as usize].kind == BufferKind::Prepared
        }),
        Work::Loop(_) => false,
    };
    let (prepare, steps): (Vec<Made>, Vec<Made>) = groups.into_iter().partition(prepares);
    let prepare = sorted(plan, prepare)?;
    plan.prepare = prepare.into_iter().flat_map(|made| made.groups().to_vec()).collect();
    let steps = sorted(plan, steps)?;
    plan.readings = readings(plan, &steps);
    flatten(plan, steps);
    Ok(())
}

/// Puts the groups of a run one after the other, those of loops as a stretch of them.
fn flatten(plan: &mut Plan<'_>, steps: Vec<Made>) {
    let mut starts = Vec::with_capacity(steps.len() + 1);
    let mut inner = Vec::new();
    for made in steps {
        let start = plan.steps.len();
        starts.push(start);
        match made.work {
            Work::Group(group) => plan.steps.push(*group),
            Work::Loop(steps) => {
                let LoopSteps { mut whole, groups, readings, loops } = *steps;
                whole.steps = start..start + groups.len();
                plan.loops.push(whole);
                plan.loops.extend(loops.into_iter().map(|mut each| {
                    each.steps = each.steps.start + start..each.steps.end + start;
                    each
                }));
                let moved = |r: Reading| Reading { before: r.before + start, ..r };
                inner.extend(readings.into_iter().map(moved));
                plan.steps.extend(groups);
            }
        }
    }
    starts.push(plan.steps.len());
    for reading in &mut plan.readings {
        reading.before = starts[reading.before];
    }
    plan.readings.extend(inner);
    plan.readings.sort_by_key(|reading| reading.before);
}

/// The symbols that a group or loop mentions and that the run binds.
fn mentioned(plan: &Plan<'_>, made: &Made) -> BTreeSet<SymId> {
    let mut out = BTreeSet::new();
    if plan.graph.bindings.is_empty() {
        return out;
    }
    let mut note = |atom: &Atom| {
        if let Atom::Sym(symbol) = atom
            && plan.graph.binding(*symbol).is_some()
        {
            out.insert(*symbol);
        }
    };
    made.groups().iter().for_each(|group| group.visit_atoms(&mut note));
    if let Work::Loop(steps) = &made.work {
        for each in std::iter::once(&steps.whole).chain(&steps.loops) {
            each.count.visit(&mut note);
        }
    }
    out
}

/// Whether a size that the run computes is in its symbol's range whatever it computes: a truth value as 0 or 1.
fn is_sure(graph: &Graph, symbol: SymId) -> bool {
    let truth = graph.binding(symbol).and_then(|size| graph.producer(size));
    let truth = truth.is_some_and(|id| {
        let node = &graph[id];
        matches!(node.op, Op::Cast(_)) && graph[node.inputs[0]].dtype == DType::Bool
    });
    let holds = |s: &Symbol| s.min_size() <= 0 && s.max_size() >= 1 && s.scale == 1;
    truth && graph.symbols.get(symbol).is_some_and(holds)
}

/// Which sizes are read where, by position in the order. Whenever the run has to wait for one, all that are made by
/// then are read. Those that loops count need no reading.
fn readings(plan: &Plan<'_>, steps: &[Made]) -> Vec<Reading> {
    let graph = plan.graph;
    let made = |value: ValueId| steps.iter().rposition(|made| made.writes.contains(&(value, None)));
    let mut pending: Vec<(SymId, u32, Option<usize>)> = graph
        .bindings
        .iter()
        .filter_map(|b| Some((b.symbol, plan.homes.get(&b.size)?.buffer, made(b.size))))
        .collect();
    let mut out = Vec::new();
    let end = (!plan.nested).then_some(None);
    for (before, made) in steps.iter().map(Some).chain(end).enumerate() {
        let wanted = made.map(|made| mentioned(plan, made));
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
                sure: is_sure(plan.graph, symbol),
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
        let sizes = mentioned(plan, made).into_iter();
        needs.extend(sizes.filter_map(|symbol| Some((plan.graph.binding(symbol)?, None))));
        let needed = needs.iter().filter_map(|stored| writers.get(stored)).flatten();
        before[i].extend(needed.copied().filter(|w| *w != i));
        // What writes where data says comes after what was written there first.
        let scatters =
            |g: &Group| g.stores.iter().any(|s| s.offset.any(|a| matches!(a, Atom::Value(_))));
        if matches!(&made.work, Work::Group(group) if scatters(group)) {
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
        Some(stuck) => Err(LowerError::internal(stuck.label(), "groups need each other")),
        None => Ok(out),
    }
}
