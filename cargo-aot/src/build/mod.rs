//! Artifacts from sources: the compiler, the cache, and what is stale.

pub mod lock;
pub mod nvrtc;
pub mod places;
pub mod ptx;
pub mod report;
pub mod toolchain;
