//! Artifacts from sources: the compiler, the cache, and what is stale.

pub mod atomic;
pub mod cache;
pub mod compiler;
pub mod cubin;
pub mod digest;
pub mod doctor;
pub mod events;
pub mod files;
pub mod guard;
pub mod jobs;
pub mod kernels;
pub mod lock;
pub mod lockfile;
mod merged;
pub mod nvrtc;
pub mod outputs;
pub mod places;
pub mod progress;
pub mod ptx;
pub mod report;
pub mod session;
pub mod toolchain;
pub mod units;
mod version;

pub use version::code_version;
