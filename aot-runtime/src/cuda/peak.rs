//! The most that a GPU can do.

use std::time::Duration;

use super::Gpu;
use crate::Result;
use crate::profile::Work;
use crate::program::Unit;

/// Rates of a GPU at the clocks that it is made for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peak {
    /// Of its memory.
    bytes_per_second: f64,
    /// Cycles per second, of all multiprocessors together.
    cycles_per_second: f64,
    capability: u16,
}

impl Peak {
    pub(super) fn of(gpu: &Gpu) -> Result<Self> {
        let clocks = gpu.clocks()?;
        Ok(Self {
            // Two transfers a cycle.
            bytes_per_second: 2.0 * clocks.memory_hertz * clocks.bus_bytes,
            cycles_per_second: clocks.hertz * clocks.multiprocessors,
            capability: gpu.capability().0 * 10 + gpu.capability().1,
        })
    }

    /// How long the work takes at the least, where that is known.
    pub(super) fn floor(&self, work: Work, unit: Unit) -> Option<Duration> {
        let rate = flop_per_cycle(self.capability, unit)? * self.cycles_per_second;
        let seconds = (work.bytes / self.bytes_per_second).max(work.flop / rate);
        Duration::try_from_secs_f64(seconds).ok()
    }
}

/// Floating-point operations of a multiprocessor in a cycle, without sparsity; from NVIDIA's descriptions of the
/// architectures and, for binary32, the CUDA C++ Programming Guide's table of throughputs (two for a multiply-add).
fn flop_per_cycle(capability: u16, unit: Unit) -> Option<f64> {
    let (plain, tf32, half) = match capability {
        75 => (128.0, None, 1024.0),
        80 => (128.0, Some(1024.0), 2048.0),
        86..=89 => (256.0, Some(256.0), 1024.0),
        90 => (256.0, Some(2048.0), 4096.0),
        100..=110 => (256.0, Some(4096.0), 8192.0),
        120.. => (256.0, Some(512.0), 1024.0),
        _ => return None,
    };
    match unit {
        Unit::Plain => Some(plain),
        Unit::Tf32 => tf32,
        Unit::Half => Some(half),
    }
}
