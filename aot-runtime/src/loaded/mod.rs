//! Loaded models without the types that generated code adds.

mod known;
mod model;
mod parts;
mod signature;
mod sizes;

pub(crate) use known::Known;
pub use model::{Loaded, MemoryUse};
pub use parts::{Parts, WeightsSource};
pub use signature::Signature;
pub use sizes::Sizes;
