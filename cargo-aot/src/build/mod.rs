//! Artifacts from sources: the compiler, the cache, and what is stale.

pub mod atomic;
pub mod cache;
pub mod compiler;
pub mod digest;
pub mod events;
pub mod jobs;
pub mod kernels;
pub mod lock;
pub mod nvrtc;
pub mod places;
pub mod ptx;
pub mod report;
pub mod toolchain;
