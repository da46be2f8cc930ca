//! Family Map: every place of the iteration space by itself.

mod kernel;
mod lanes;

pub use kernel::kernels;
