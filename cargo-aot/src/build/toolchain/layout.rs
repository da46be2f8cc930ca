//! One toolchain: its files, and how they are found below a folder.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::pins::CudaMajor;

/// A header that every kernel may include, and by which an include folder is recognised.
const HEADER: &str = "cuda_fp16.h";

/// Folders that hold the library, below the root of a toolkit, a distribution's prefix,
/// a managed toolchain or a site-packages folder.
const LIBRARY_FOLDERS: [&str; 9] = [
    "",
    "lib",
    "lib64",
    "targets/x86_64-linux/lib",
    "targets/sbsa-linux/lib",
    "lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
    "nvidia/cu13/lib",
    "nvidia/cuda_nvrtc/lib",
];

/// Folders that hold the headers, below such a root or below the library's folder.
const HEADER_FOLDERS: [&str; 9] = [
    "include",
    "../include",
    "targets/x86_64-linux/include",
    "targets/sbsa-linux/include",
    "nvidia/cu13/include",
    "nvidia/cuda_runtime/include",
    "../../cuda_runtime/include",
    "../../include",
    "../../../include",
];

/// Who provided a toolchain; the order is that of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// `[toolchain] path` of the manifest.
    Manifest,
    /// Installed by `cargo aot`.
    Managed,
    /// `CUDA_HOME` or `CUDA_PATH`.
    CudaHome,
    /// A folder that the dynamic loader searches.
    Loader,
    /// A Python environment.
    Pip,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Manifest => "[toolchain] path",
            Self::Managed => "managed",
            Self::CudaHome => "CUDA_HOME",
            Self::Loader => "loader path",
            Self::Pip => "site-packages",
        })
    }
}

/// A CUDA compiler library with the headers that kernels include.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Toolchain {
    /// Who provided it.
    pub origin: Origin,
    /// `libnvrtc.so.13`.
    pub library: PathBuf,
    /// `libnvrtc-builtins.so.13.5`, which the library needs and may not find by itself.
    pub builtins: Option<PathBuf>,
    /// The folder with `cuda_fp16.h`.
    pub include: PathBuf,
    /// The CUDA version, `(13, 5)`.
    pub version: (u32, u32),
}

/// Why a folder holds no usable toolchain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolchainError {
    /// There is no compiler library.
    #[error("no libnvrtc.so.{cuda} in {}", root.display())]
    NoLibrary {
        /// Where it was looked for.
        root: PathBuf,
        /// The CUDA version wanted.
        cuda: CudaMajor,
    },
    /// The library's companion is missing.
    #[error("no libnvrtc-builtins.so.{cuda}.* beside {}", library.display())]
    NoBuiltins {
        /// The compiler library.
        library: PathBuf,
        /// The CUDA version wanted.
        cuda: CudaMajor,
    },
    /// The headers are missing.
    #[error("no {HEADER} for {}: the headers of nvidia-cuda-runtime are needed too", library.display())]
    NoHeaders {
        /// The compiler library.
        library: PathBuf,
    },
}

impl Toolchain {
    /// Looks for a toolchain at `root`: a toolkit, a prefix such as `/usr`, a folder of
    /// libraries, a site-packages folder, or the library itself.
    pub fn probe(root: &Path, origin: Origin, cuda: CudaMajor) -> Result<Self, ToolchainError> {
        let root = if root.is_file() { root.parent().unwrap_or(root) } else { root };
        let name = format!("libnvrtc.so.{cuda}");
        let library = LIBRARY_FOLDERS
            .iter()
            .map(|folder| root.join(folder).join(&name))
            .find(|library| library.is_file())
            .ok_or_else(|| ToolchainError::NoLibrary { root: root.to_owned(), cuda })?;
        let folder = library.parent().unwrap_or(root);
        let (version, builtins) = newest_builtins(folder, cuda)
            .ok_or_else(|| ToolchainError::NoBuiltins { library: library.clone(), cuda })?;
        let include = [root, folder]
            .iter()
            .flat_map(|base| HEADER_FOLDERS.iter().map(move |sub| base.join(sub)))
            .find(|include| include.join(HEADER).is_file())
            .ok_or_else(|| ToolchainError::NoHeaders { library: library.clone() })?;
        Ok(Self { origin, library, builtins: Some(builtins), include, version })
    }

    /// Whether its compiler keeps the A operands of `wgmma` in registers until they are read.
    /// Before 13.3 it could reuse them too early, so such schedules are off.
    pub fn register_wgmma_is_safe(&self) -> bool {
        self.version >= (13, 3)
    }

    /// Whether its compiler is as good as the one that would be installed.
    pub fn is_current(&self, cuda: CudaMajor) -> bool {
        match cuda {
            CudaMajor::Cuda12 => self.version >= (12, 8),
            CudaMajor::Cuda13 => self.register_wgmma_is_safe(),
        }
    }
}

/// The library of built-in functions with the highest version of that major one.
fn newest_builtins(folder: &Path, cuda: CudaMajor) -> Option<((u32, u32), PathBuf)> {
    let entries = fs::read_dir(folder).ok()?;
    entries
        .flatten()
        .filter_map(|entry| {
            let version = builtins_version(entry.file_name().to_str()?)?;
            (version.0 == cuda.number()).then(|| (version, entry.path()))
        })
        .max()
}

/// `(13, 5)` of `libnvrtc-builtins.so.13.5` and `libnvrtc-builtins.so.13.5.37`.
fn builtins_version(file: &str) -> Option<(u32, u32)> {
    let mut parts = file.strip_prefix("libnvrtc-builtins.so.")?.split('.');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?.parse().ok()?;
    Some((major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builtins_tell_the_version() {
        assert_eq!(builtins_version("libnvrtc-builtins.so.13.5"), Some((13, 5)));
        assert_eq!(builtins_version("libnvrtc-builtins.so.12.8.93"), Some((12, 8)));
        for name in ["libnvrtc-builtins.so", "libnvrtc-builtins.alt.so.13.0", "libnvrtc.so.13"] {
            assert_eq!(builtins_version(name), None, "{name}");
        }
    }
}
