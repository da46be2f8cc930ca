//! Fusion groups, CUDA kernel families and their schedules for cargo-aot.

mod arch;

pub use arch::{Arch, ArchFeatures, KNOWN_CAPABILITIES, ParseArchError};
