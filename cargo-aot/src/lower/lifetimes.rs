//! When the buffers of a run are needed, and which of them may take the memory of another one.

use super::plan::{BufferKind, Plan};
use std::collections::{BTreeMap, BTreeSet};

/// Steps at which a buffer is first and last needed, both inclusive.
pub(super) type Life = (usize, usize);

/// The lives of the arena's buffers.
pub(super) fn lifetimes(plan: &Plan<'_>) -> BTreeMap<u32, Life> {
    let mut out = touches(plan);
    // A size is read between two steps.
    for reading in &plan.readings {
        if let Some(life) = out.get_mut(&reading.buffer) {
            life.1 = life.1.max(reading.before);
        }
    }
    // What an iteration leaves for the next one or for what follows, or finds from before, lives throughout its loop.
    for repetition in plan.loops.iter().rev() {
        let (first, last) = (repetition.steps.start, repetition.steps.end.saturating_sub(1));
        for (&buffer, life) in &mut out {
            let within = first <= life.1 && life.0 <= last;
            let passes = life.0 < first || life.1 > last || repetition.condition == Some(buffer);
            if within && passes {
                *life = (life.0.min(first), life.1.max(last));
            }
        }
    }
    out
}

/// The groups that first and last read or write the arena's buffers.
fn touches(plan: &Plan<'_>) -> BTreeMap<u32, Life> {
    let mut out = BTreeMap::new();
    for (step, group) in plan.steps.iter().enumerate() {
        for operand in &group.operands {
            if plan.buffers[operand.buffer as usize].kind == BufferKind::Arena {
                out.entry(operand.buffer).or_insert((step, step)).1 = step;
            }
        }
    }
    out
}

/// Buffers that take the memory of one that their group is the last to need; by buffer, the other one.
pub(super) fn in_place(plan: &Plan<'_>) -> BTreeMap<u32, u32> {
    let (touches, lives) = (touches(plan), lifetimes(plan));
    let mut out = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for (step, group) in plan.steps.iter().enumerate() {
        let begins = |buffer| {
            touches.get(&buffer).is_some_and(|life| life.0 == step) && lives[&buffer].0 == step
        };
        // No loop keeps it either, from one of its iterations to another.
        let ends = |buffer| {
            let kept = |first: usize| {
                plan.loops.iter().any(|r| r.steps.contains(&step) && !r.steps.contains(&first))
            };
            touches.get(&buffer).is_some_and(|life| life.0 < step && life.1 == step)
                && lives[&buffer].1 == step
                && !kept(lives[&buffer].0)
        };
        for store in &group.stores {
            let to = group.operands[store.operand.index()].buffer;
            if !begins(to) || out.contains_key(&to) {
                continue;
            }
            let from = group.operands.iter().enumerate().find(|(n, operand)| {
                let id = aot_kernels::group::OperandId(*n as u32);
                ends(operand.buffer)
                    && !taken.contains(&operand.buffer)
                    && group.may_replace(id, store)
            });
            if let Some((_, from)) = from {
                out.insert(to, from.buffer);
                taken.insert(from.buffer);
            }
        }
    }
    out
}

/// Buffers that lie in one place one after the other, in order, and from when to when the place is theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) buffers: Vec<u32>,
    pub(super) life: Life,
}

/// The arena's buffers by their lives, those together that take each other's memory.
pub(super) fn chains(lives: &BTreeMap<u32, Life>, in_place: &BTreeMap<u32, u32>) -> Vec<Chain> {
    let next: BTreeMap<u32, u32> = in_place.iter().map(|(to, from)| (*from, *to)).collect();
    let heads = lives.iter().filter(|(buffer, _)| !in_place.contains_key(buffer));
    heads
        .map(|(&head, &life)| {
            let mut chain = Chain { buffers: vec![head], life };
            let mut last = head;
            while let Some(&buffer) = next.get(&last) {
                chain.buffers.push(buffer);
                chain.life.1 = lives[&buffer].1;
                last = buffer;
            }
            chain
        })
        .collect()
}
