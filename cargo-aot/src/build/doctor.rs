//! The state of this machine, as far as builds and runs depend on it.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::cache::{self, Usage};
use super::places;
use super::toolchain::{self, CudaMajor, Search, Toolchain};

/// What `cargo aot doctor` and `cargo aot toolchain` show.
#[derive(Debug, Clone, Serialize)]
pub struct Health {
    /// The CUDA version asked for.
    pub cuda: CudaMajor,
    /// The compiler that a build would use, if it needs none installed.
    pub toolchain: Option<Toolchain>,
    /// Whether that compiler is as good as the one that would be installed.
    pub current: bool,
    /// Places that were looked at in vain, with the reason.
    pub rejected: Vec<String>,
    /// The folder of managed toolchains.
    pub managed: Option<PathBuf>,
    /// The GPU driver, if this machine has one.
    pub driver: Driver,
    /// The user's cache of artifacts.
    pub cache: CacheHealth,
}

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

/// The user's cache of artifacts.
#[derive(Debug, Clone, Serialize)]
pub struct CacheHealth {
    /// Where it lies; None when it is switched off.
    pub folder: Option<PathBuf>,
    /// Its number of entries.
    pub entries: u64,
    /// Bytes of all entries.
    pub bytes: u64,
    /// Whether files can be written there.
    pub writable: bool,
    /// Bytes free on its disk, where the system tells.
    pub free: Option<u64>,
}

/// Looks at this machine. `manifest` is `[toolchain] path`.
pub fn examine(cuda: CudaMajor, manifest: Option<PathBuf>) -> Health {
    let search = Search::from_env(cuda, manifest);
    let found = toolchain::find(&search);
    let rejected = found.rejected.iter().map(|each| format!("{}: {}", each.origin, each.reason));
    Health {
        cuda,
        current: found.toolchain.as_ref().is_some_and(|toolchain| toolchain.is_current(cuda)),
        rejected: rejected.collect(),
        toolchain: found.toolchain,
        managed: search.managed,
        driver: driver(cuda),
        cache: cache_health(places::user_artifacts()),
    }
}

fn driver(cuda: CudaMajor) -> Driver {
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
    let is_version = |word: &&str| {
        word.contains('.') && word.split('.').all(|part| part.parse::<u32>().is_ok())
    };
    text.lines().next()?.split_whitespace().find(is_version).map(str::to_owned)
}

fn cache_health(folder: Option<PathBuf>) -> CacheHealth {
    let existing = folder.as_deref().and_then(nearest_existing);
    let Usage { entries, bytes } =
        folder.as_deref().and_then(|folder| cache::usage(folder).ok()).unwrap_or_default();
    CacheHealth {
        entries,
        bytes,
        writable: existing.is_some_and(is_writable),
        free: existing.and_then(free_bytes),
        folder,
    }
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
    fn a_cache_that_is_not_there_yet_is_healthy() {
        let dir = tempfile::tempdir().unwrap();
        let health = cache_health(Some(dir.path().join("a/b")));
        assert!(health.writable);
        assert_eq!(health.entries, 0);
        assert!(health.free.is_none_or(|free| free > 0));
        let health = cache_health(None);
        assert!(!health.writable && health.folder.is_none());
    }
}
