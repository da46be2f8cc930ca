//! Devices, their memory and their streams.

mod choose;
mod memory;
mod stream;

pub use choose::Device;
pub(crate) use choose::Kind;
pub(crate) use memory::Memory;
pub use stream::Stream;
pub(crate) use stream::StreamKind;
