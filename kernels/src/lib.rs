//! Kernel families of cargo-aot.
//!
//! [`group`] holds the unit of fusion. A family turns a [`Group`](group::Group) into
//! [`Kernel`]s: CUDA source text and how to launch it. [`code`] writes the text of expressions and
//! index maps for all families.

pub mod attention;
pub mod code;
pub mod contraction;
mod family;
pub mod group;
mod kernel;
mod loop_control;
pub mod map;
pub mod reduce;
pub mod scan;

pub use aot_ir::{Arch, ArchFeatures, KNOWN_CAPABILITIES, ParseArchError};
pub use family::kernels_for;
pub use kernel::{Arg, Kernel, KernelError, Size};
pub use loop_control::loop_control;
