//! How often the driver was asked for what runs should not need.

use std::sync::atomic::{AtomicU64, Ordering};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static GRAPHS: AtomicU64 = AtomicU64::new(0);
static WAITS: AtomicU64 = AtomicU64::new(0);

/// Calls of the driver by this process, so far; see [`driver_counts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverCounts {
    /// Allocations of memory on GPUs and of page-locked memory of the host, of more than no bytes.
    pub allocations: u64,
    /// Graphs that were made.
    pub graphs: u64,
    /// Times that a run waited for what it had launched before it could launch more.
    pub waits: u64,
}

/// Calls of the CUDA driver that this process made so far, for all models and devices; with the feature
/// `cuda`. Of a model that is [warm](crate::Model::warmup), one run at a time, with inputs and outputs on the
/// host, adds no allocation and no graph, unless a loop takes another number of iterations that follows from
/// sizes.
pub fn driver_counts() -> DriverCounts {
    DriverCounts {
        allocations: ALLOCATIONS.load(Ordering::Relaxed),
        graphs: GRAPHS.load(Ordering::Relaxed),
        waits: WAITS.load(Ordering::Relaxed),
    }
}

pub(super) fn count_allocation() {
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
}

pub(super) fn count_graph() {
    GRAPHS.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn count_wait() {
    WAITS.fetch_add(1, Ordering::Relaxed);
}
