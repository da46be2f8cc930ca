//! Where the buffers of a run lie in the arena.

use super::lifetimes::{Chain, Life, chains, lifetimes};
use super::placement::{Block, Places, alive, peak, place};
use super::plan::Plan;
use aot_ir::dim::Symbol;
use aot_ir::{Scope, Symbols};
use std::cmp::Reverse;
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

/// What is alive where the most bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peak {
    /// The group of the run.
    pub step: usize,
    /// Bytes of all buffers.
    pub bytes: u64,
    /// The buffers with their bytes, the greatest first. Of those that share memory, the one that the group makes.
    pub buffers: Vec<(u32, u64)>,
}

/// Plans the arena for sizes up to the bounds (greatest atom per symbol).
///
/// Buffers that may take the memory of another one do so only if that makes the arena shorter: what lies in one place
/// for longer is harder to place.
pub fn plan_arena(plan: &Plan<'_>, bounds: &[i64]) -> ArenaPlan {
    let memory = Memory::new(plan, bounds);
    let lower_bound = peak(&memory.blocks(&memory.chains(&plan.in_place))).1;
    let apart = alive(&memory.blocks(&memory.chains(&BTreeMap::new())));
    let needed = plan.in_place.iter().filter(|(to, _)| apart[memory.lives[to].0] > lower_bound);
    let needed: BTreeMap<u32, u32> = needed.map(|(to, from)| (*to, *from)).collect();
    let mut best: Option<(Vec<Chain>, Places)> = None;
    for in_place in [&plan.in_place, &needed, &BTreeMap::new()] {
        let chains = memory.chains(in_place);
        let places = place(&memory.blocks(&chains));
        if best.as_ref().is_none_or(|(_, best)| places.total < best.total) {
            best = Some((chains, places));
        }
        if best.as_ref().is_some_and(|(_, best)| best.total <= lower_bound) {
            break;
        }
    }
    let mut offsets = BTreeMap::new();
    let mut total = 0;
    if let Some((chains, places)) = best {
        for (chain, offset) in chains.iter().zip(&places.offsets) {
            offsets.extend(chain.buffers.iter().map(|buffer| (*buffer, *offset)));
        }
        total = places.total;
    }
    ArenaPlan { bounds: bounds.to_vec(), offsets, total, lower_bound }
}

/// The buffers that make the arena as long as it is at sizes up to the bounds; none where no group needs any.
pub fn peak_of(plan: &Plan<'_>, bounds: &[i64]) -> Option<Peak> {
    let memory = Memory::new(plan, bounds);
    let chains = memory.chains(&plan.in_place);
    let blocks = memory.blocks(&chains);
    let (step, bytes) = peak(&blocks);
    let alive = |life: &Life| (life.0..=life.1).contains(&step);
    let mut buffers: Vec<(u32, u64)> = chains
        .iter()
        .zip(&blocks)
        .filter(|(chain, _)| alive(&chain.life))
        .filter_map(|(chain, block)| {
            let last = chain.buffers.iter().rev().find(|b| alive(&memory.lives[b]))?;
            Some((*last, block.bytes))
        })
        .collect();
    buffers.sort_by_key(|(buffer, bytes)| (Reverse(*bytes), *buffer));
    (!buffers.is_empty()).then_some(Peak { step, bytes, buffers })
}

/// The arena's buffers at sizes up to a bound.
struct Memory {
    lives: BTreeMap<u32, Life>,
    bytes: BTreeMap<u32, u64>,
}

impl Memory {
    fn new(plan: &Plan<'_>, bounds: &[i64]) -> Self {
        let symbols = bounded(&plan.graph.symbols, bounds);
        let scope = Scope::new(&symbols);
        let lives = lifetimes(plan);
        let bytes = |buffer: &u32| {
            let b = &plan.buffers[*buffer as usize];
            let elements = scope.interval(&b.elements).hi.max(0) as u64;
            let bytes = b.dtype.bytes_for(elements).unwrap_or(u64::MAX / 4);
            (*buffer, bytes.div_ceil(ALIGNMENT) * ALIGNMENT)
        };
        let bytes = lives.keys().map(bytes).collect();
        Self { lives, bytes }
    }

    fn chains(&self, in_place: &BTreeMap<u32, u32>) -> Vec<Chain> {
        chains(&self.lives, in_place)
    }

    fn blocks(&self, chains: &[Chain]) -> Vec<Block> {
        let block = |chain: &Chain| {
            let bytes = chain.buffers.iter().map(|buffer| self.bytes[buffer]).max().unwrap_or(0);
            Block { bytes, life: chain.life }
        };
        chains.iter().map(block).collect()
    }
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
