//! The state of this machine, as far as builds and runs depend on it.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::toolchain::CudaMajor;

/// The GPU driver of this machine. A build needs none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Driver {
    /// Whether the library that applications load is there.
    pub library: Option<PathBuf>,
    /// `580.95.05`, as the kernel module says.
    pub version: Option<String>,
    /// Whether it is recent enough for what the compiler makes; None without a driver.
    pub recent_enough: Option<bool>,
}

/// The disk below a folder, which need not be there yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Disk {
    /// Whether files can be written there.
    pub writable: bool,
    /// Bytes free, where the system tells.
    pub free: Option<u64>,
}

/// The GPU driver of this machine, compared with what code of that CUDA version needs.
pub fn driver(cuda: CudaMajor) -> Driver {
    let module = fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
    let version = driver_version(&module);
    let recent_enough = version
        .as_deref()
        .and_then(|version| version.split('.').next()?.parse::<u32>().ok())
        .map(|major| major >= cuda.oldest_driver());
    Driver { library: driver_library(), version, recent_enough }
}

/// `libcuda.so.1` in the folders where drivers and container runtimes put it.
fn driver_library() -> Option<PathBuf> {
    let listed = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let usual = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
        "/usr/lib/wsl/lib",
    ];
    std::env::split_paths(&listed)
        .chain(usual.map(PathBuf::from))
        .map(|folder| folder.join("libcuda.so.1"))
        .find(|path| path.is_file())
}

/// The version in the first line of `/proc/driver/nvidia/version`: the first word made of
/// numbers and dots.
fn driver_version(text: &str) -> Option<String> {
    let is_version =
        |word: &&str| word.contains('.') && word.split('.').all(|part| part.parse::<u32>().is_ok());
    text.lines().next()?.split_whitespace().find(is_version).map(str::to_owned)
}

/// The disk below a folder.
pub fn disk(folder: &Path) -> Disk {
    let existing = nearest_existing(folder);
    Disk { writable: existing.is_some_and(is_writable), free: existing.and_then(free_bytes) }
}

fn nearest_existing(path: &Path) -> Option<&Path> {
    path.ancestors().find(|path| path.is_dir())
}

fn is_writable(folder: &Path) -> bool {
    let probe = folder.join(format!("{}doctor-{}", super::atomic::TEMPORARY, std::process::id()));
    let written = fs::write(&probe, "").is_ok();
    let _ = fs::remove_file(probe);
    written
}

#[cfg(unix)]
fn free_bytes(folder: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(folder).ok()?;
    Some(stat.f_bavail * stat.f_frsize)
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_tells_its_version() {
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release \
                    Build  (dvs-builder@U22)\nGCC version: gcc 13.3.0";
        assert_eq!(driver_version(open).as_deref(), Some("580.95.05"));
        let old = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  525.60.13  Wed Nov 30";
        assert_eq!(driver_version(old).as_deref(), Some("525.60.13"));
        assert_eq!(driver_version(""), None);
    }

    #[test]
    fn a_folder_that_is_not_there_yet_is_on_a_disk() {
        let dir = tempfile::tempdir().unwrap();
        let there = disk(&dir.path().join("a/b"));
        assert!(there.writable);
        assert!(there.free.is_none_or(|free| free > 0));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "it left nothing");
    }
}
