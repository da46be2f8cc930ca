//! Places for blocks of memory that are needed for a while each.

use super::lifetimes::Life;
use std::cmp::Reverse;

/// Work that a search may do: blocks looked at while others are placed.
const EFFORT: usize = 2_000_000;
/// Orders that a search tries at most.
const TRIES: usize = 400;

/// A block to be placed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) bytes: u64,
    pub(super) life: Life,
}

impl Block {
    fn meets(&self, other: &Self) -> bool {
        self.life.0 <= other.life.1 && other.life.0 <= self.life.1
    }
}

/// Where blocks begin, and where the last one ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) offsets: Vec<u64>,
    pub(super) total: u64,
}

/// The bytes of the blocks that are alive at each step.
pub(super) fn alive(blocks: &[Block]) -> Vec<u64> {
    let end = blocks.iter().map(|block| block.life.1 + 1).max().unwrap_or(0);
    let mut changes = vec![0i128; end + 1];
    for block in blocks {
        changes[block.life.0] += i128::from(block.bytes);
        changes[block.life.1 + 1] -= i128::from(block.bytes);
    }
    let mut sum = 0i128;
    let sums = changes[..end].iter().map(|change| {
        sum += change;
        u64::try_from(sum).unwrap_or(u64::MAX)
    });
    sums.collect()
}

/// The first step at which the most bytes are alive, and these. No placement ends before.
pub(super) fn peak(blocks: &[Block]) -> (usize, u64) {
    let alive = alive(blocks);
    let most = alive.iter().copied().max().unwrap_or(0);
    (alive.iter().position(|bytes| *bytes == most).unwrap_or(0), most)
}

/// Places blocks so that none overlap that are alive at once.
///
/// Several orders are tried and the best changed at random (the same way each time) as long as the result may get
/// shorter and is worth the work.
pub(super) fn place(blocks: &[Block]) -> Places {
    let (step, bound) = peak(blocks);
    let at_peak = |b: &Block| u64::from((b.life.0..=b.life.1).contains(&step));
    let span = |b: &Block| (b.life.1 - b.life.0 + 1) as u64;
    // The greatest is placed first.
    let ranks = |b: &Block| {
        [
            [b.bytes, span(b), 0],
            [at_peak(b), b.bytes, span(b)],
            [at_peak(b), span(b), b.bytes],
            [b.bytes.saturating_mul(span(b)), b.bytes, 0],
        ]
    };
    let mut best: Option<(Vec<usize>, Fit, Places)> = None;
    for (rank, fit) in (0..4).flat_map(|rank| [(rank, Fit::Lowest), (rank, Fit::Smallest)]) {
        let mut order: Vec<usize> = (0..blocks.len()).collect();
        order.sort_by_key(|i| Reverse(ranks(&blocks[*i])[rank]));
        let found = in_order(blocks, &order, fit);
        if best.as_ref().is_none_or(|(.., best)| found.total < best.total) {
            best = Some((order, fit, found));
        }
        if best.as_ref().is_some_and(|(.., best)| best.total <= bound) {
            break;
        }
    }
    let Some((mut order, fit, mut found)) = best else {
        return Places { offsets: Vec::new(), total: 0 };
    };
    let tries = (EFFORT / (blocks.len() * blocks.len()).max(1)).min(TRIES);
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..tries {
        if found.total <= bound {
            break;
        }
        // One of those that end last comes earlier.
        let is_last = |i: &usize| found.offsets[*i] + blocks[*i].bytes == found.total;
        let Some(at) = order.iter().position(is_last) else { break };
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mut changed = order.clone();
        let moved = changed.remove(at);
        changed.insert(random as usize % (at + 1), moved);
        let next = in_order(blocks, &changed, fit);
        if next.total <= found.total {
            (order, found) = (changed, next);
        }
    }
    found
}

/// Which of the gaps that a block fits into it gets.
#[derive(Clone, Copy, Debug)]
enum Fit {
    Lowest,
    Smallest,
}

/// Places blocks one after the other.
fn in_order(blocks: &[Block], order: &[usize], fit: Fit) -> Places {
    let mut offsets = vec![0u64; blocks.len()];
    let mut total = 0;
    let mut taken: Vec<(u64, u64)> = Vec::new();
    for (n, &i) in order.iter().enumerate() {
        let block = blocks[i];
        taken.clear();
        let before = order[..n].iter().filter(|j| blocks[**j].meets(&block));
        taken.extend(before.map(|j| (offsets[*j], offsets[*j].saturating_add(blocks[*j].bytes))));
        taken.sort_unstable();
        let (mut end, mut best) = (0u64, None::<(u64, u64)>);
        for &(start, stop) in &taken {
            let gap = start.saturating_sub(end);
            let better = match fit {
                Fit::Lowest => best.is_none(),
                Fit::Smallest => best.is_none_or(|(least, _)| gap < least),
            };
            if gap >= block.bytes && better {
                best = Some((gap, end));
            }
            end = end.max(stop);
        }
        offsets[i] = best.map_or(end, |(_, offset)| offset);
        total = total.max(offsets[i].saturating_add(block.bytes));
    }
    Places { offsets, total }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(bytes: u64, first: usize, last: usize) -> Block {
        Block { bytes, life: (first, last) }
    }

    #[test]
    fn a_chain_takes_turns() {
        let blocks = [block(4, 0, 1), block(4, 1, 2), block(4, 2, 3), block(4, 3, 4)];
        assert_eq!(peak(&blocks), (1, 8));
        let places = place(&blocks);
        assert_eq!(places.total, 8);
        assert_eq!(place(&[]), Places { offsets: Vec::new(), total: 0 });
    }

    #[test]
    fn other_orders_are_tried() {
        let mut random = 7u64;
        let mut worse = 0;
        for _ in 0..200 {
            let blocks: Vec<Block> = (0..12)
                .map(|_| {
                    random = random.wrapping_mul(6364136223846793005).wrapping_add(99);
                    let first = (random >> 60) as usize;
                    block(1 + (random >> 40) % 50, first, first + (random >> 33) as usize % 5)
                })
                .collect();
            let mut order: Vec<usize> = (0..blocks.len()).collect();
            order.sort_by_key(|i| Reverse(blocks[*i].bytes));
            let (first, best) = (in_order(&blocks, &order, Fit::Lowest), place(&blocks));
            assert!(best.total <= first.total && best.total >= peak(&blocks).1);
            worse += usize::from(best.total < first.total);
            for (i, a) in blocks.iter().enumerate() {
                for (j, b) in blocks.iter().enumerate().filter(|(j, b)| *j != i && a.meets(b)) {
                    let (x, y) = (best.offsets[i], best.offsets[j]);
                    assert!(x + a.bytes <= y || y + b.bytes <= x);
                }
            }
        }
        assert!(worse > 20, "{worse}");
    }
}
