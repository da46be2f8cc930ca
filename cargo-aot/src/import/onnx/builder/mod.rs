//! Builds the graph for operator rules: every operation first tries to stay symbolic, then to be
//! nothing, and only then becomes a node.

mod branch;
mod emit;
mod index;
mod movement;
mod pointwise;
mod random;
mod reduce;
mod repeat;
mod sizes;
mod tensors;
mod texts;

pub(super) use branch::Branch;
pub(super) use random::Seed;
pub(super) use sizes::{DataSizes, Element, Most, element_name};
pub(super) use tensors::{Builder, OpError, OpResult, Tensor, unsupported, wrong};
pub(super) use texts::moves;
