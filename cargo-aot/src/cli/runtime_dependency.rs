//! Where crates that we write get aot-runtime from.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// The workspace that this executable was built from; a registry's copy when installed from one.
const BUILT_FROM: &str = env!("CARGO_MANIFEST_DIR");

/// A dependency on aot-runtime that resolves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuntimeDependency {
    /// The folder of the crate in the checkout that this executable was built from.
    Path(PathBuf),
    /// The version on crates.io that belongs to this executable.
    Version(&'static str),
}

impl RuntimeDependency {
    /// The checkout's crate when there still is one, else the published version.
    pub fn find() -> Self {
        let in_checkout = Path::new(BUILT_FROM).parent().map(|root| root.join("aot-runtime"));
        match in_checkout {
            Some(path) if path.join("Cargo.toml").is_file() => RuntimeDependency::Path(path),
            _ => RuntimeDependency::Version(env!("CARGO_PKG_VERSION")),
        }
    }

    /// The dependency's TOML value for the Cargo.toml in the absolute folder `dir`. A path is
    /// relative where the folder lies within the checkout, so that such crates can be committed. Features are those
    /// beyond the default ones.
    pub fn to_toml(&self, dir: &Path, features: &BTreeSet<&str>) -> String {
        let (key, value) = match self {
            RuntimeDependency::Version(version) if features.is_empty() => return quote(version),
            RuntimeDependency::Version(version) => ("version", quote(version)),
            RuntimeDependency::Path(path) => {
                ("path", quote(&path_from(dir, path).to_string_lossy()))
            }
        };
        let features: Vec<String> = features.iter().map(|feature| quote(feature)).collect();
        match features.is_empty() {
            true => format!("{{ {key} = {value} }}"),
            false => format!("{{ {key} = {value}, features = [{}] }}", features.join(", ")),
        }
    }
}

fn path_from(dir: &Path, runtime: &Path) -> PathBuf {
    let root = runtime.parent().unwrap_or(runtime);
    let Ok(below) = dir.strip_prefix(root) else { return runtime.to_owned() };
    let mut path = PathBuf::new();
    for component in below.components() {
        if matches!(component, Component::Normal(_)) {
            path.push("..");
        }
    }
    path.join(runtime.file_name().unwrap_or_default())
}

fn quote(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_within_the_checkout() {
        let dependency = RuntimeDependency::Path("/w/aot-runtime".into());
        let none = BTreeSet::new();
        let toml = |dir: &str| dependency.to_toml(Path::new(dir), &none);
        assert_eq!(toml("/w/examples/a/aot/m"), "{ path = \"../../../../aot-runtime\" }");
        assert_eq!(toml("/other/aot/m"), "{ path = \"/w/aot-runtime\" }");
        let published = RuntimeDependency::Version("0.1.0");
        assert_eq!(published.to_toml(Path::new("/a"), &none), "\"0.1.0\"");
    }

    #[test]
    fn features_are_asked_for() {
        let features = BTreeSet::from(["image"]);
        let published = RuntimeDependency::Version("0.1.0").to_toml(Path::new("/a"), &features);
        assert_eq!(published, "{ version = \"0.1.0\", features = [\"image\"] }");
        let here = RuntimeDependency::Path("/w/aot-runtime".into());
        let here = here.to_toml(Path::new("/w/m"), &features);
        assert_eq!(here, "{ path = \"../aot-runtime\", features = [\"image\"] }");
    }

    #[test]
    fn this_build_comes_from_a_checkout() {
        assert!(matches!(RuntimeDependency::find(), RuntimeDependency::Path(_)));
    }
}
