//! Where cargo keeps what it builds, found without asking cargo.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The target folder for the workspace rooted at `root`, by cargo's rules: the flag, then
/// `CARGO_TARGET_DIR` and `CARGO_BUILD_TARGET_DIR`, then `build.target-dir` of the configuration
/// files from `cwd` upwards and of cargo's home, else `target` beside the root's Cargo.toml.
pub(super) fn target_dir(flag: Option<&Path>, cwd: &Path, root: &Path) -> PathBuf {
    if let Some(dir) = flag {
        return cwd.join(dir);
    }
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    let home = variable("CARGO_HOME").map(PathBuf::from).or_else(home_default);
    from_environment(variable("CARGO_TARGET_DIR"), variable("CARGO_BUILD_TARGET_DIR"), cwd)
        .or_else(|| from_files(cwd, home.as_deref()))
        .unwrap_or_else(|| root.join("target"))
}

fn home_default() -> Option<PathBuf> {
    env::home_dir().map(|home| home.join(".cargo"))
}

fn from_environment(a: Option<OsString>, b: Option<OsString>, cwd: &Path) -> Option<PathBuf> {
    a.or(b).map(|dir| cwd.join(dir))
}

fn from_files(cwd: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let around = cwd.ancestors().map(|dir| dir.join(".cargo"));
    around.chain(home.map(Path::to_owned)).find_map(|dir| from_folder(&dir))
}

/// A relative `target-dir` starts from the folder that holds `.cargo`.
fn from_folder(dir: &Path) -> Option<PathBuf> {
    let text = ["config", "config.toml"]
        .iter()
        .find_map(|name| std::fs::read_to_string(dir.join(name)).ok())?;
    let config: toml::Table = text.parse().ok()?;
    let target = config.get("build")?.get("target-dir")?.as_str()?;
    Some(dir.parent()?.join(target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_of_the_nearest_folder() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("a/b");
        std::fs::create_dir_all(inner.join(".cargo")).unwrap();
        std::fs::create_dir_all(root.path().join(".cargo")).unwrap();
        std::fs::write(root.path().join(".cargo/config.toml"), "build.target-dir = \"out\"")
            .unwrap();
        assert_eq!(from_files(&inner, None), Some(root.path().join("out")));
        std::fs::write(inner.join(".cargo/config.toml"), "[build]\ntarget-dir = \"/t\"").unwrap();
        assert_eq!(from_files(&inner, None), Some(PathBuf::from("/t")));
        std::fs::write(inner.join(".cargo/config.toml"), "[build]\njobs = 1").unwrap();
        assert_eq!(from_files(&inner, None), Some(root.path().join("out")));
    }

    #[test]
    fn the_environment_is_relative_to_the_current_folder() {
        let cwd = Path::new("/w");
        assert_eq!(from_environment(None, Some("x".into()), cwd), Some("/w/x".into()));
        assert_eq!(from_environment(Some("/y".into()), Some("x".into()), cwd), Some("/y".into()));
        assert_eq!(from_environment(None, None, cwd), None);
    }
}
