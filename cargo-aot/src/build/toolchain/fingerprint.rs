//! What makes two compilers the same.

use std::fs;
use std::io;

use aot_kernels::Arch;
use serde::{Deserialize, Serialize};

use super::layout::Toolchain;
use crate::build::nvrtc::{LoadError, Nvrtc, NvrtcError, Request, Target};

/// The headers that kernels may include, as far as they hold code.
const HEADERS: [&str; 6] =
    ["cuda_bf16.h", "cuda_bf16.hpp", "cuda_fp16.h", "cuda_fp16.hpp", "cuda_fp8.h", "cuda_fp8.hpp"];

/// Identity of a compiler: equal identities make equal images of equal sources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// `13.5.37`, as the compiler signs its output.
    pub version: String,
    /// Digest of that, of the compiler's build number and of the headers, in hexadecimal.
    pub digest: String,
}

/// Why an identity could not be had.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The library could not be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The library does not compile an empty kernel.
    #[error("the compiler {} does not work: {source}", library.display())]
    Compile {
        /// The library.
        library: std::path::PathBuf,
        /// What it said.
        source: NvrtcError,
    },
    /// A header could not be read.
    #[error("cannot read {}: {source}", header.display())]
    Header {
        /// The header.
        header: std::path::PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Identity {
    /// Asks a loaded compiler, by what it writes into the head of an empty kernel's PTX.
    pub fn of(nvrtc: &Nvrtc, toolchain: &Toolchain) -> Result<Self, IdentityError> {
        let request = Request {
            source: "extern \"C\" __global__ void empty() {}\n",
            name: "empty.cu",
            options: &[],
            target: Target::Ptx(Arch::of_capability(80)),
        };
        let output = nvrtc.compile(&request).map_err(|source| IdentityError::Compile {
            library: toolchain.library.clone(),
            source,
        })?;
        let head = String::from_utf8_lossy(&output.image).into_owned();
        let comment: Vec<&str> = head.lines().take_while(|line| line.starts_with("//")).collect();
        let (major, minor) = nvrtc.version();
        let version = version_in(&comment).unwrap_or_else(|| format!("{major}.{minor}"));

        let mut hasher = blake3::Hasher::new();
        hasher.update(std::env::consts::ARCH.as_bytes());
        for line in comment {
            hasher.update(line.as_bytes()).update(b"\n");
        }
        for name in HEADERS {
            let header = toolchain.include.join(name);
            match fs::read(&header) {
                Ok(bytes) => hasher.update(name.as_bytes()).update(blake3::hash(&bytes).as_bytes()),
                // Older versions lack the newer headers; then no kernel can include them.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(source) => return Err(IdentityError::Header { header, source }),
            };
        }
        Ok(Self { version, digest: hasher.finalize().to_hex().to_string() })
    }
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "nvrtc {}", self.version)
    }
}

/// `13.5.37` of `// Cuda compilation tools, release 13.5, V13.5.37`.
fn version_in(comment: &[&str]) -> Option<String> {
    let line = comment.iter().find(|line| line.contains("Cuda compilation tools"))?;
    let (_, version) = line.rsplit_once(", V")?;
    Some(version.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_stands_in_the_head_of_ptx() {
        let head = ["//", "// Cuda compilation tools, release 13.5, V13.5.37", "//"];
        assert_eq!(version_in(&head).as_deref(), Some("13.5.37"));
        assert_eq!(version_in(&["// nothing"]), None);
    }
}
