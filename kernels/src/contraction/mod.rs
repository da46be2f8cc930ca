//! Family Contraction: matrix products and convolutions as implicit matrix products.
//!
//! The device code (`cuda/contraction_*.cuh`, `tile.cuh`, `slice.cuh`) is generic over a generated
//! `struct Problem`, which gives operands as functions of (row, k) and the stores. `access` decides how
//! each operand gets to shared memory, `schedule` which tiles are used at which sizes.

pub(crate) mod access;
mod collapse;
mod kernel;
pub(crate) mod output;
pub(crate) mod schedule;
pub(crate) mod side;

pub use kernel::kernels;
