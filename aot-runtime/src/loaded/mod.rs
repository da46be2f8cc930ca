//! Loaded models without the types that generated code adds.

mod known;
mod memory;
mod model;
mod outputs;
mod parts;
mod profile;
mod signature;
mod sizes;
mod state;
mod tasks;
mod warmup;

pub(crate) use known::Known;
pub use memory::{ContextMemory, MemoryUse, Uploaded};
pub use model::Loaded;
pub use outputs::RunOutputs;
pub use parts::{Parts, WeightsSource};
pub use signature::Signature;
pub use sizes::Sizes;
