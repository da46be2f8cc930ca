//! Which crate a command is about.
//!
//! Cargo is never asked: it refuses to answer while the generated crate is missing, and starting
//! it would take longer than a build in which nothing is stale.

use std::path::{Path, PathBuf};

use super::args::Global;
use super::cargo_config::target_dir;
use super::error::CliError;
use super::workspace::{PackageManifest, Workspace};
use crate::manifest::Manifest;

/// The name of the manifest beside Cargo.toml.
pub(super) const AOT_TOML: &str = "Aot.toml";

/// How the user says which package is meant.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// `--manifest-path`
    pub manifest_path: Option<PathBuf>,
    /// `--package`
    pub package: Option<String>,
    /// `--target-dir`
    pub target_dir: Option<PathBuf>,
}

impl From<&Global> for Selection {
    fn from(global: &Global) -> Self {
        Self {
            manifest_path: global.manifest_path.clone(),
            package: global.package.clone(),
            target_dir: global.target_dir.clone(),
        }
    }
}

/// A package that has, or shall have, an Aot.toml. All paths are absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// The package's folder.
    pub dir: PathBuf,
    /// The folder of its workspace's root; its own without a workspace.
    pub workspace: PathBuf,
    /// Cargo's target folder.
    pub target_dir: PathBuf,
    /// The folder the command was started in.
    pub cwd: PathBuf,
}

impl Project {
    /// The package with an Aot.toml that `selection` means: the one named, else the nearest
    /// around `cwd`, else the only one of the workspace around `cwd`.
    pub fn find(selection: &Selection, cwd: &Path) -> Result<Self, CliError> {
        let start = start(selection, cwd);
        if let Some(name) = &selection.package {
            let package = named(&start, name)?;
            if !package.dir.join(AOT_TOML).is_file() {
                return Err(CliError::NoManifestIn(name.clone()));
            }
            return Self::new(selection, cwd, package.dir);
        }
        let nearest = match &selection.manifest_path {
            Some(_) => start.join(AOT_TOML).is_file().then(|| start.clone()),
            None => ancestor_with(&start, AOT_TOML),
        };
        if let Some(dir) = nearest {
            return Self::new(selection, cwd, dir);
        }
        let with_manifest: Vec<PackageManifest> = match ancestor_with(&start, "Cargo.toml") {
            Some(dir) => Workspace::around(&dir)?
                .packages()?
                .into_iter()
                .filter(|package| package.dir.join(AOT_TOML).is_file())
                .collect(),
            None => Vec::new(),
        };
        match with_manifest.as_slice() {
            [] => Err(CliError::NoManifest(start)),
            [package] => Self::new(selection, cwd, package.dir.clone()),
            packages => Err(CliError::Ambiguous(packages.iter().map(|p| p.name.clone()).collect())),
        }
    }

    /// The package that `init` is to write an Aot.toml for.
    pub fn find_for_init(selection: &Selection, cwd: &Path) -> Result<Self, CliError> {
        let start = start(selection, cwd);
        let dir = match &selection.package {
            Some(name) => named(&start, name)?.dir,
            None => {
                let dir = ancestor_with(&start, "Cargo.toml")
                    .ok_or_else(|| CliError::NoCargoManifest(start.clone()))?;
                if PackageManifest::read(&dir)?.is_none() {
                    return Err(CliError::NoPackageHere(dir.join("Cargo.toml")));
                }
                dir
            }
        };
        Self::new(selection, cwd, dir)
    }

    fn new(selection: &Selection, cwd: &Path, dir: PathBuf) -> Result<Self, CliError> {
        let workspace = if dir.join("Cargo.toml").is_file() {
            Workspace::around(&dir)?.root
        } else {
            dir.clone()
        };
        let target_dir = target_dir(selection.target_dir.as_deref(), cwd, &workspace);
        Ok(Self { dir, workspace, target_dir, cwd: cwd.to_owned() })
    }

    /// The manifest's path.
    pub fn manifest_path(&self) -> PathBuf {
        self.dir.join(AOT_TOML)
    }

    /// Reads the manifest.
    pub fn manifest(&self) -> Result<Manifest, CliError> {
        let path = self.manifest_path();
        Ok(Manifest::load(&path, self.shown(&path))?)
    }

    /// Our folder within the target folder.
    pub fn artifacts(&self) -> PathBuf {
        self.target_dir.join("aot")
    }

    /// `path` as the user would write it: relative where it lies below the current folder.
    pub fn shown<'p>(&self, path: &'p Path) -> &'p Path {
        path.strip_prefix(&self.cwd).unwrap_or(path)
    }
}

/// The folder to look from.
fn start(selection: &Selection, cwd: &Path) -> PathBuf {
    match &selection.manifest_path {
        Some(path) => {
            let path = cwd.join(path);
            if path.is_dir() { path } else { path.parent().unwrap_or(cwd).to_owned() }
        }
        None => cwd.to_owned(),
    }
}

fn named(start: &Path, name: &str) -> Result<PackageManifest, CliError> {
    let dir = ancestor_with(start, "Cargo.toml")
        .ok_or_else(|| CliError::NoCargoManifest(start.to_owned()))?;
    let mut packages = Workspace::around(&dir)?.packages()?;
    match packages.iter().position(|package| package.name == name) {
        Some(index) => Ok(packages.swap_remove(index)),
        None => {
            let names = packages.iter().map(|package| package.name.as_str());
            let near = crate::manifest::nearest(name, names).map(str::to_owned);
            Err(CliError::NoPackage { name: name.to_owned(), near })
        }
    }
}

fn ancestor_with(start: &Path, file: &str) -> Option<PathBuf> {
    start.ancestors().find(|dir| dir.join(file).is_file()).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn workspace() -> tempfile::TempDir {
        tree(&[
            ("Cargo.toml", "[workspace]\nmembers = [\"crates/*\", \"tool\"]\nexclude = [\"out\"]"),
            ("crates/a/Cargo.toml", "[package]\nname = \"alpha\""),
            ("crates/a/Aot.toml", ""),
            ("crates/b/Cargo.toml", "[package]\nname = \"beta\""),
            ("crates/a/src/x/y.rs", ""),
            ("tool/Cargo.toml", "[package]\nname = \"tool\""),
            ("out/Cargo.toml", "[package]\nname = \"out\""),
            ("out/Aot.toml", ""),
        ])
    }

    fn select(package: &str) -> Selection {
        Selection { package: Some(package.to_owned()), ..Selection::default() }
    }

    #[test]
    fn from_a_folder_within_the_package() {
        let root = workspace();
        let cwd = root.path().join("crates/a/src/x");
        let project = Project::find(&Selection::default(), &cwd).unwrap();
        assert_eq!(project.dir, root.path().join("crates/a"));
        assert_eq!(project.workspace, root.path());
    }

    #[test]
    fn the_only_one_of_a_workspace() {
        let root = workspace();
        for cwd in ["", "tool"] {
            let project = Project::find(&Selection::default(), &root.path().join(cwd)).unwrap();
            assert_eq!(project.dir, root.path().join("crates/a"));
        }
        fs::write(root.path().join("tool/Aot.toml"), "").unwrap();
        let error = Project::find(&Selection::default(), root.path()).unwrap_err();
        assert!(matches!(error, CliError::Ambiguous(names) if names == ["alpha", "tool"]));
    }

    #[test]
    fn by_name() {
        let root = workspace();
        assert!(Project::find(&select("alpha"), root.path()).is_ok());
        let error = Project::find(&select("alpah"), root.path()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the workspace has no package `alpah`; did you mean `alpha`?"
        );
        let error = Project::find(&select("beta"), root.path()).unwrap_err();
        assert!(matches!(error, CliError::NoManifestIn(_)));
        assert!(Project::find_for_init(&select("beta"), root.path()).is_ok());
    }

    #[test]
    fn excluded_packages_stand_alone() {
        let root = workspace();
        let project = Project::find(&Selection::default(), &root.path().join("out")).unwrap();
        assert_eq!(project.workspace, root.path().join("out"));
    }

    #[test]
    fn by_manifest_path() {
        let root = workspace();
        for path in ["crates/a/Cargo.toml", "crates/a/Aot.toml", "crates/a"] {
            let selection = Selection { manifest_path: Some(path.into()), ..Selection::default() };
            let project = Project::find(&selection, root.path()).unwrap();
            assert_eq!(project.dir, root.path().join("crates/a"));
        }
    }

    #[test]
    fn nothing_to_find() {
        let root = tree(&[("a/b.txt", "")]);
        let find = |dir: &Path| Project::find(&Selection::default(), dir);
        assert!(matches!(find(root.path()), Err(CliError::NoManifest(_))));
        let init = Project::find_for_init(&Selection::default(), root.path());
        assert!(matches!(init, Err(CliError::NoCargoManifest(_))));
        fs::write(root.path().join("Cargo.toml"), "[workspace").unwrap();
        assert!(matches!(find(root.path()), Err(CliError::CargoManifest { .. })));
        fs::write(root.path().join("Cargo.toml"), "[workspace]").unwrap();
        let init = Project::find_for_init(&Selection::default(), root.path());
        assert!(matches!(init, Err(CliError::NoPackageHere(_))));
    }
}
