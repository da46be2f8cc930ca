//! What runs: buffers, steps, launches and the kernels they need.
//!
//! A program is made by `cargo aot build` for one model. Sizes are [`Dim`](aot_ir::Dim)s over the
//! program's symbols; they are evaluated at run time from the shapes of the inputs, and from sizes that
//! the run itself computes: after a [`Step::ReadBack`] the steps that follow know one more.

mod check;
mod memory;
mod types;

pub use types::*;
