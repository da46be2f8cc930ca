//! The folders that builds share, and what overrides them.

use std::env;
use std::fs;
use std::path::{Component, Path, PathBuf};

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

/// The folder that cargo builds into, for the package whose manifest lies in `package`, found
/// as cargo finds it but without starting it: `CARGO_TARGET_DIR`, `build.target-dir` of
/// `.cargo/config.toml` here or above or in `CARGO_HOME`, else `target` of the workspace's
/// root. `package` is absolute. A `--target-dir` comes before all of these.
pub fn target_dir(package: &Path) -> PathBuf {
    let from_env = ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR"].iter();
    let from_env = from_env.filter_map(env::var_os).find(|dir| !dir.is_empty());
    if let Some(dir) = from_env {
        // Relative to where cargo runs.
        return env::current_dir().unwrap_or_else(|_| package.to_owned()).join(dir);
    }
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    let folders = package.ancestors().map(|folder| folder.join(".cargo")).chain(home);
    let configured = folders.filter_map(|folder| configured_target_dir(&folder)).next();
    configured.unwrap_or_else(|| workspace_root(package).join("target"))
}

/// `build.target-dir` of the `config.toml` (or `config`) in a `.cargo` folder.
fn configured_target_dir(folder: &Path) -> Option<PathBuf> {
    let files = ["config", "config.toml"].map(|name| folder.join(name));
    let text = files.iter().find_map(|file| fs::read_to_string(file).ok())?;
    let table: toml::Table = text.parse().ok()?;
    let dir = table.get("build")?.get("target-dir")?.as_str()?;
    Some(folder.parent().unwrap_or(folder).join(dir))
}

/// The root of the workspace that a package belongs to; the package itself without one.
fn workspace_root(package: &Path) -> PathBuf {
    let own = read_manifest(package);
    if let Some(root) = own.as_ref().and_then(|own| own.get("package")?.get("workspace")?.as_str())
    {
        return package.join(root);
    }
    let is_root = |folder: &&Path| {
        let manifest = if *folder == package { own.clone() } else { read_manifest(folder) };
        let Some(workspace) = manifest.as_ref().and_then(|manifest| manifest.get("workspace"))
        else {
            return false;
        };
        *folder == package || !excludes(folder, workspace, package)
    };
    package.ancestors().find(is_root).unwrap_or(package).to_owned()
}

/// Whether a workspace leaves a package out. A member by name stays in.
fn excludes(root: &Path, workspace: &toml::Value, package: &Path) -> bool {
    let lists = |key: &str, accepts: &dyn Fn(&Path) -> bool| {
        let paths = workspace.get(key).and_then(toml::Value::as_array).into_iter().flatten();
        paths.filter_map(toml::Value::as_str).any(|path| accepts(&normal(&root.join(path))))
    };
    lists("exclude", &|path| package.starts_with(path))
        && !lists("members", &|path| package == path)
}

/// A path without `.` and with `..` taken literally.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

fn read_manifest(folder: &Path) -> Option<toml::Table> {
    fs::read_to_string(folder.join("Cargo.toml")).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_workspace_is_found_as_cargo_finds_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        write(
            root,
            "Cargo.toml",
            "[workspace]\nmembers = [\"app\", \"out/in\"]\nexclude = [\"out\"]",
        );
        for package in ["app", "out/side", "out/in", "far"] {
            write(root, &format!("{package}/Cargo.toml"), "[package]\nname = \"x\"");
        }
        write(root, "alone/Cargo.toml", "[package]\nname = \"x\"\n[workspace]");
        write(root, "names/Cargo.toml", "[package]\nworkspace = \"../alone\"");
        let found = |package: &str| normal(&workspace_root(&root.join(package)));
        assert_eq!(found("app"), root);
        assert_eq!(found("far"), root);
        assert_eq!(found("out/side"), root.join("out/side"));
        assert_eq!(found("out/in"), root);
        assert_eq!(found("alone"), root.join("alone"));
        assert_eq!(found("names"), root.join("alone"));
    }

    #[test]
    fn the_configuration_decides() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), ".cargo/config.toml", "[build]\ntarget-dir = \"elsewhere\"");
        let folder = dir.path().join(".cargo");
        assert_eq!(configured_target_dir(&folder), Some(dir.path().join("elsewhere")));
        write(dir.path(), ".cargo/config.toml", "[build]\njobs = 1");
        assert_eq!(configured_target_dir(&folder), None);
        assert_eq!(configured_target_dir(&dir.path().join("none")), None);
    }
}
