//! The group interpreter: executes a plan on the CPU, through the planned arena.
//!
//! It defines what groups mean, independently of the kernels that implement them, and so tests
//! fusion, index maps and memory plans without a GPU.

mod eval;
mod memory;
mod run;
mod state;

pub(in crate::lower) use eval::{Num, binary, cast, unary};
pub use memory::Memory;
pub use run::{InterpretError, interpret, interpret_observed, run_group};
