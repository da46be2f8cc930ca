//! The folders that builds share, and what overrides them.

use std::env;
use std::path::PathBuf;

/// Overrides the folder of managed toolchains.
pub const TOOLCHAIN_DIR_VAR: &str = "AOT_TOOLCHAIN_DIR";

/// Overrides the user-wide cache of artifacts; empty switches it off.
pub const CACHE_DIR_VAR: &str = "AOT_CACHE_DIR";

/// The user's cache folder of this tool, as the XDG base directory specification has it:
/// `$XDG_CACHE_HOME/cargo-aot`, else `$HOME/.cache/cargo-aot`. None without a home.
pub fn user_cache() -> Option<PathBuf> {
    let xdg = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let base = xdg.or_else(|| {
        env::var_os("HOME")
            .filter(|home| !home.is_empty())
            .map(|home| PathBuf::from(home).join(".cache"))
    })?;
    Some(base.join("cargo-aot"))
}

/// Where managed toolchains lie: `$AOT_TOOLCHAIN_DIR`, else a folder of the user's cache.
pub fn toolchains() -> Option<PathBuf> {
    match env::var_os(TOOLCHAIN_DIR_VAR).filter(|dir| !dir.is_empty()) {
        Some(dir) => Some(PathBuf::from(dir)),
        None => Some(user_cache()?.join("toolchain")),
    }
}

/// Where artifacts that all projects of a user share lie: `$AOT_CACHE_DIR`, else a folder of
/// the user's cache. None when it is switched off or there is no home.
pub fn user_artifacts() -> Option<PathBuf> {
    match env::var_os(CACHE_DIR_VAR) {
        Some(dir) if dir.is_empty() => None,
        Some(dir) => Some(PathBuf::from(dir)),
        None => Some(user_cache()?.join("artifacts")),
    }
}
