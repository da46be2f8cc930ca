//! Family Attention: softmax(score) · v without the scores in memory.
//!
//! Operands get to shared memory as those of contractions do (`contraction::access`); scores are evaluated
//! on the accumulators, with their coordinates, so that masks of any kind are read in place.

mod kernel;

pub use kernel::{MAX_WIDTH, kernels};
