//! The little of Cargo.toml files that finding a package needs.

use std::path::{Path, PathBuf};

use super::error::CliError;
use crate::manifest::Glob;

/// A package and where it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PackageManifest {
    /// `package.name`
    pub(super) name: String,
    /// The folder.
    pub(super) dir: PathBuf,
}

impl PackageManifest {
    /// The package of the Cargo.toml in `dir`; none for a workspace without a package.
    pub(super) fn read(dir: &Path) -> Result<Option<Self>, CliError> {
        let table = read(dir)?;
        let name = table.get("package").and_then(|package| package.get("name"));
        Ok(name
            .and_then(toml::Value::as_str)
            .map(|name| Self { name: name.to_owned(), dir: dir.to_owned() }))
    }
}

/// A workspace, or a package that stands alone.
#[derive(Clone, Debug)]
pub(super) struct Workspace {
    /// The folder of the root's Cargo.toml.
    pub(super) root: PathBuf,
    members: Vec<String>,
    exclude: Vec<String>,
}

impl Workspace {
    /// The workspace of the package in `dir`, whose Cargo.toml exists.
    pub(super) fn around(dir: &Path) -> Result<Self, CliError> {
        let own = read(dir)?;
        let named = own.get("package").and_then(|package| package.get("workspace"));
        if let Some(root) = named.and_then(toml::Value::as_str) {
            let root = dir.join(root);
            let table = read(&root)?;
            return Ok(Self::of(&root, &table));
        }
        if own.contains_key("workspace") {
            return Ok(Self::of(dir, &own));
        }
        for root in dir.ancestors().skip(1) {
            if !root.join("Cargo.toml").is_file() {
                continue;
            }
            let table = read(root)?;
            if table.contains_key("workspace") {
                let workspace = Self::of(root, &table);
                if !workspace.excludes(dir) {
                    return Ok(workspace);
                }
            }
        }
        Ok(Self::of(dir, &own))
    }

    fn of(root: &Path, table: &toml::Table) -> Self {
        let list = |key: &str| {
            let values = table.get("workspace").and_then(|w| w.get(key)).and_then(|v| v.as_array());
            values.into_iter().flatten().filter_map(|v| v.as_str()).map(str::to_owned).collect()
        };
        Self { root: root.to_owned(), members: list("members"), exclude: list("exclude") }
    }

    fn excludes(&self, dir: &Path) -> bool {
        self.exclude.iter().any(|path| dir.starts_with(self.root.join(path)))
    }

    /// The root package and the members, by name. Members that can't be read are left to cargo
    /// to complain about.
    pub(super) fn packages(&self) -> Result<Vec<PackageManifest>, CliError> {
        let mut packages: Vec<_> = PackageManifest::read(&self.root)?.into_iter().collect();
        for pattern in &self.members {
            for dir in expand(&self.root, pattern) {
                if dir != self.root
                    && !self.excludes(&dir)
                    && let Ok(Some(package)) = PackageManifest::read(&dir)
                {
                    packages.push(package);
                }
            }
        }
        packages.sort_by(|a, b| a.name.cmp(&b.name));
        packages.dedup();
        Ok(packages)
    }
}

/// The folders below `root` that `pattern` means; `*` and `?` stand for part of a folder's name.
fn expand(root: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut dirs = vec![root.to_owned()];
    for piece in pattern.split('/').filter(|piece| !piece.is_empty() && *piece != ".") {
        if !piece.contains(['*', '?']) {
            dirs.iter_mut().for_each(|dir| dir.push(piece));
            continue;
        }
        let glob = Glob::new(piece);
        dirs = dirs
            .iter()
            .filter_map(|dir| std::fs::read_dir(dir).ok())
            .flat_map(|entries| entries.flatten())
            .filter(|entry| glob.matches(&entry.file_name().to_string_lossy()))
            .map(|entry| entry.path())
            .collect();
    }
    dirs.retain(|dir| dir.join("Cargo.toml").is_file());
    dirs
}

fn read(dir: &Path) -> Result<toml::Table, CliError> {
    let path = dir.join("Cargo.toml");
    let text = std::fs::read_to_string(&path).map_err(CliError::io("read", &path))?;
    text.parse().map_err(|error: toml::de::Error| CliError::CargoManifest {
        path,
        reason: error.message().to_owned(),
    })
}
