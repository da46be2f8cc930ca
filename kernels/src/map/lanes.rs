//! Which variable neighbouring threads go along, and how many elements each takes.

use crate::code::Emitter;
use aot_ir::dim::VarId;

/// Instructions of a thread besides loads and stores, for a start.
const OVERHEAD: f64 = 6.0;
/// Below this many threads, fewer elements each are better than wide accesses.
const FEW_THREADS: i64 = 16 * 1024;
const MOST_LANES: i64 = 8;

/// The variable, if there is any, and the number of lanes.
pub(super) fn choose(emitter: &mut Emitter<'_>, space: &[VarId]) -> (Option<VarId>, usize) {
    let group = emitter.group();
    let roots: Vec<_> = group.stores.iter().map(|s| s.value).collect();
    let mut accesses = emitter.loads(&roots);
    accesses.extend(emitter.stores(|_| true));
    let total = emitter.scope().interval(&group.volume(space)).hi;
    let narrowest = accesses.iter().map(|a| a.bytes()).min().unwrap_or(4);
    let mut best: Option<(f64, VarId, usize)> = None;
    // Innermost first: it wins where costs are equal.
    for var in space.iter().rev() {
        let extent = emitter.scope().interval(group.extent(*var)).hi;
        let mut width = 1;
        while width <= MOST_LANES.min(16 / narrowest) {
            let enough = width == 1 || (extent >= width && total / width >= FEW_THREADS);
            if enough {
                let cost = emitter.access_cost(&accesses, *var, width as usize);
                let cost = cost + OVERHEAD / width as f64;
                if best.as_ref().is_none_or(|(least, ..)| cost < *least) {
                    best = Some((cost, *var, width as usize));
                }
            }
            width *= 2;
        }
    }
    best.map_or((None, 1), |(_, var, width)| (Some(var), width))
}
