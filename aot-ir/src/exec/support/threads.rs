//! Work on several cores.

use std::sync::OnceLock;

/// Work below this is not worth a thread, in elementary operations.
const WORTHWHILE: usize = 200_000;

fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from).min(16))
}

/// Calls `f(i, part)` for parts of `out` that together are all of it; `part` starts at element
/// `i * unit` and holds whole units (a last one may be short).
///
/// `cost` is the number of elementary operations per unit; with enough of them the parts are computed
/// on several threads.
pub(in crate::exec) fn parts<T: Send>(
    out: &mut [T],
    unit: usize,
    cost: usize,
    f: impl Fn(usize, &mut [T]) + Sync,
) {
    if out.is_empty() {
        return;
    }
    let unit = unit.max(1);
    let units = out.len().div_ceil(unit);
    let threads = cores().min(units).min(units.saturating_mul(cost) / WORTHWHILE + 1);
    if threads < 2 {
        return f(0, out);
    }
    spread(out, unit, units.div_ceil(threads), &f);
}

/// What runs on each part.
type Work<'a, T> = &'a (dyn Fn(usize, &mut [T]) + Sync);

/// Compiled once per element type, as threads are much code.
#[inline(never)]
fn spread<T: Send>(out: &mut [T], unit: usize, share: usize, f: Work<'_, T>) {
    std::thread::scope(|scope| {
        let mut parts = out.chunks_mut(share * unit).enumerate();
        let first = parts.next();
        for (i, part) in parts {
            scope.spawn(move || f(i * share, part));
        }
        if let Some((_, part)) = first {
            f(0, part);
        }
    });
}
