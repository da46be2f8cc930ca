//! Which version of this tool is running.

use super::digest::{Digest, KeyBuilder};

/// Stands for the sources that this tool was compiled from: another version may make other
/// artifacts of the same inputs.
pub fn code_version() -> Digest {
    KeyBuilder::new("cargo-aot")
        .part("package", env!("CARGO_PKG_VERSION"))
        .part("sources", env!("AOT_CODE_VERSION"))
        .finish()
}
