//! Family Reduce: for every row, stages of reductions over its elements.
//!
//! Two forms. Where neighbouring elements of a row lie together, a power of two of threads takes a
//! row (`rows`); where neighbouring rows lie together, neighbouring threads take rows and the
//! threads behind them share a row's elements (`columns`).

mod columns;
mod exchange;
mod kept;
mod kernel;
mod problem;
mod rows;

pub use kernel::kernels;
