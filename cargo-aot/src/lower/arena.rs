//! Where the buffers of a run lie in the arena: lifetimes and offsets.

use super::plan::{BufferKind, Plan};
use aot_ir::dim::Symbol;
use aot_ir::{Scope, Symbols};
use std::collections::BTreeMap;

/// Alignment of buffers in the arena, in bytes.
const ALIGNMENT: u64 = 256;

/// Offsets of all arena buffers for sizes up to a bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArenaPlan {
    /// Greatest atom per symbol.
    pub bounds: Vec<i64>,
    /// Byte offsets by buffer.
    pub offsets: BTreeMap<u32, u64>,
    /// Bytes in all.
    pub total: u64,
    /// Most bytes that are alive at once: no arena can be smaller.
    pub lower_bound: u64,
}

/// Steps at which an arena buffer is first written and last used, both inclusive.
pub fn lifetimes(plan: &Plan<'_>) -> BTreeMap<u32, (usize, usize)> {
    let mut out = BTreeMap::new();
    for (step, group) in plan.steps.iter().enumerate() {
        for operand in &group.operands {
            if plan.buffers[operand.buffer as usize].kind == BufferKind::Arena {
                out.entry(operand.buffer).or_insert((step, step)).1 = step;
            }
        }
    }
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

/// Plans the arena for sizes up to the bounds (greatest atom per symbol).
///
/// Greatest buffers first, each at the lowest offset that no buffer alive at the same time covers.
pub fn plan_arena(plan: &Plan<'_>, bounds: &[i64]) -> ArenaPlan {
    let symbols = bounded(&plan.graph.symbols, bounds);
    let scope = Scope::new(&symbols);
    let lives = lifetimes(plan);
    let bytes = |buffer: u32| {
        let b = &plan.buffers[buffer as usize];
        let elements = scope.interval(&b.elements).hi.max(0) as u64;
        b.dtype.bytes_for(elements).unwrap_or(u64::MAX / 4).div_ceil(ALIGNMENT) * ALIGNMENT
    };
    let mut order: Vec<(u32, u64)> = lives.keys().map(|&b| (b, bytes(b))).collect();
    order.sort_by_key(|&(buffer, size)| (std::cmp::Reverse(size), buffer));
    let mut placed: Vec<(u64, u64, (usize, usize))> = Vec::new();
    let mut offsets = BTreeMap::new();
    let mut total = 0;
    for (buffer, size) in order {
        let life = lives[&buffer];
        let mut offset = 0u64;
        let mut taken: Vec<(u64, u64)> = placed
            .iter()
            .filter(|(_, _, other)| life.0 <= other.1 && other.0 <= life.1)
            .map(|&(start, end, _)| (start, end))
            .collect();
        taken.sort_unstable();
        for (start, end) in taken {
            if offset.saturating_add(size) <= start {
                break;
            }
            offset = offset.max(end);
        }
        let end = offset.saturating_add(size);
        placed.push((offset, end, life));
        offsets.insert(buffer, offset);
        total = total.max(end);
    }
    let lower_bound = (0..plan.steps.len())
        .map(|step| {
            let alive = lives.iter().filter(|(_, life)| (life.0..=life.1).contains(&step));
            alive.map(|(&b, _)| bytes(b)).fold(0u64, u64::saturating_add)
        })
        .max()
        .unwrap_or(0);
    ArenaPlan { bounds: bounds.to_vec(), offsets, total, lower_bound }
}

/// The symbols with their greatest atoms lowered to the bounds.
fn bounded(symbols: &Symbols, bounds: &[i64]) -> Symbols {
    let mut out = Symbols::default();
    for (i, (_, symbol)) in symbols.iter().enumerate() {
        let hi = bounds.get(i).map_or(symbol.hi, |b| symbol.hi.min(*b));
        out.add(Symbol { hi, ..symbol.clone() });
    }
    out
}
