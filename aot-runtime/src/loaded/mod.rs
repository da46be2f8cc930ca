//! Loaded models without the types that generated code adds.

mod model;
mod parts;
mod signature;
mod sizes;

pub use model::{Loaded, MemoryUse};
pub use parts::{Parts, WeightsSource};
pub use signature::Signature;
pub use sizes::Sizes;
