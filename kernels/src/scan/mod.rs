//! Family Scan: for every row, the running combination of its elements.
//!
//! Two forms. Where neighbouring elements of a row lie together, a power of two of threads walks a
//! row in chunks (`rows`); where neighbouring rows lie together, neighbouring threads take rows, and
//! the threads behind them parts of a row (`columns`).

mod columns;
mod exchange;
mod kernel;
mod problem;
mod rows;

pub use kernel::kernels;
