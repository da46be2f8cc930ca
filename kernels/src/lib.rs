//! Kernel families of cargo-aot.
//!
//! [`group`] holds the unit of fusion. A family turns a [`Group`](group::Group) into
//! [`Kernel`]s: CUDA source text and how to launch it.

pub mod code;
pub mod group;
mod kernel;

pub use aot_ir::{Arch, ArchFeatures, KNOWN_CAPABILITIES, ParseArchError};
pub use kernel::{Arg, Kernel, KernelError};
