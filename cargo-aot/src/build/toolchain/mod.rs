//! Where the CUDA compiler library comes from.

mod download;
mod find;
mod fingerprint;
mod install;
mod layout;
mod pins;
mod wheel;

pub use download::DownloadError;
pub use find::{Found, Rejected, Search, find};
pub use fingerprint::{Identity, IdentityError};
pub use install::{InstallError, ensure, install, install_from_wheels};
pub use layout::{Origin, Toolchain, ToolchainError};
pub use pins::{CudaMajor, Pin, UnknownCuda, pins};
pub use wheel::WheelError;
