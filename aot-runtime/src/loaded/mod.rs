//! Loaded models without the types that generated code adds.

mod known;
mod memory;
mod model;
mod parts;
mod signature;
mod sizes;
mod state;

pub(crate) use known::Known;
pub use memory::{ContextMemory, MemoryUse};
pub use model::Loaded;
pub use parts::{Parts, WeightsSource};
pub use signature::Signature;
pub use sizes::Sizes;
