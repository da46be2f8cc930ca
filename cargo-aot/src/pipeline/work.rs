//! How much there is to compute and to move.

use aot_runtime::program::LaunchWork;
use serde::Serialize;

/// An amount of work at given sizes; see [`LaunchWork`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Work {
    /// Floating-point operations.
    pub flop: f64,
    /// Bytes that must be read or written at least.
    pub bytes: f64,
}

impl std::ops::AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        self.flop += other.flop;
        self.bytes += other.bytes;
    }
}

impl Work {
    /// The same again and again.
    pub fn times(self, n: f64) -> Self {
        Self { flop: self.flop * n, bytes: self.bytes * n }
    }

    /// The work where the symbols' atoms have these values.
    pub fn of(work: &LaunchWork, atoms: &[i64]) -> Self {
        let value = |dim: &aot_ir::Dim| dim.eval(atoms).unwrap_or(0).max(0) as f64;
        Self { flop: value(&work.flop), bytes: value(&work.bytes) }
    }
}
