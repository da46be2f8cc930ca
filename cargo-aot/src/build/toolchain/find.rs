//! The search for a toolchain.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::layout::{Origin, Toolchain, ToolchainError};
use super::pins::CudaMajor;
use crate::build::places;

/// Where to look, in order.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// The CUDA version wanted.
    pub cuda: CudaMajor,
    /// `[toolchain] path`: when given, nothing else is looked at.
    pub manifest: Option<PathBuf>,
    /// The folder of managed toolchains.
    pub managed: Option<PathBuf>,
    /// The roots of toolkits that variables name.
    pub cuda_homes: Vec<PathBuf>,
    /// The folders that the dynamic loader searches.
    pub loader: Vec<PathBuf>,
    /// Site-packages folders that variables name.
    pub site_packages: Vec<PathBuf>,
    /// Whether python3 may be asked for its site-packages when all else fails.
    pub ask_python: bool,
}

/// A place that was looked at in vain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// Who would have provided it.
    pub origin: Origin,
    /// What is wrong with it.
    pub reason: ToolchainError,
}

/// What a search found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// The toolchain to use, if there is any.
    pub toolchain: Option<Toolchain>,
    /// What was looked at before.
    pub rejected: Vec<Rejected>,
}

impl Search {
    /// The search that this process's environment asks for.
    pub fn from_env(cuda: CudaMajor, manifest: Option<PathBuf>) -> Self {
        Self {
            cuda,
            manifest,
            managed: places::toolchains(),
            cuda_homes: ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(path_var).collect(),
            loader: loader_folders(),
            site_packages: environment_site_packages(),
            ask_python: true,
        }
    }
}

/// Looks for a toolchain in the order of [`Origin`]. The first that is current wins; one with
/// an older compiler is taken only when there is no other.
pub fn find(search: &Search) -> Found {
    let mut found = Found::default();
    let mut older = None;
    let mut consider = |root: &Path, origin| -> Option<Toolchain> {
        match Toolchain::probe(root, origin, search.cuda) {
            Ok(toolchain) if origin == Origin::Manifest || toolchain.is_current(search.cuda) => {
                Some(toolchain)
            }
            Ok(toolchain) => {
                older.get_or_insert(toolchain);
                None
            }
            Err(reason) => {
                found.rejected.push(Rejected { origin, reason });
                None
            }
        }
    };
    let toolchain = match &search.manifest {
        Some(path) => consider(path, Origin::Manifest),
        None => roots(search).find_map(|(root, origin)| consider(&root, origin)),
    };
    found.toolchain = toolchain.or(older);
    found
}

fn roots(search: &Search) -> impl Iterator<Item = (PathBuf, Origin)> {
    let managed = search.managed.iter().flat_map(|root| managed_folders(root));
    let asked =
        std::iter::once_with(
            || if search.ask_python { python_site_packages() } else { Vec::new() },
        );
    let tagged = |origin| move |path: &PathBuf| (path.clone(), origin);
    managed
        .map(|root| (root, Origin::Managed))
        .chain(search.cuda_homes.iter().map(tagged(Origin::CudaHome)))
        .chain(search.loader.iter().map(tagged(Origin::Loader)))
        .chain(search.site_packages.iter().map(tagged(Origin::Pip)))
        .chain(asked.flatten().map(|root| (root, Origin::Pip)))
}

/// The managed toolchains, newest version first.
pub(super) fn managed_folders(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let mut folders: Vec<(Vec<u32>, PathBuf)> = entries
        .filter_map(|entry| {
            let name = entry.file_name();
            let version = name.to_str()?.strip_prefix("cuda-")?;
            let parts: Option<Vec<u32>> =
                version.split('.').map(|part| part.parse().ok()).collect();
            Some((parts?, entry.path()))
        })
        .collect();
    folders.sort();
    folders.into_iter().rev().map(|(_, path)| path).collect()
}

fn path_var(name: &&str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// `LD_LIBRARY_PATH`, what `/etc/ld.so.conf.d` lists, and the loader's own folders.
fn loader_folders() -> Vec<PathBuf> {
    let listed = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> =
        env::split_paths(&listed).filter(|path| path.is_absolute()).collect();
    let configured = fs::read_dir("/etc/ld.so.conf.d").into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = configured.map(|entry| entry.path()).collect();
    files.sort();
    for file in files {
        let text = fs::read_to_string(file).unwrap_or_default();
        folders.extend(
            text.lines().map(str::trim).filter(|line| line.starts_with('/')).map(PathBuf::from),
        );
    }
    let usual = [
        "/usr/local/cuda",
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
    ];
    folders.extend(usual.map(PathBuf::from));
    folders.retain(|folder| folder.is_dir());
    folders
}

/// The site-packages of the active virtual environment and of the user.
fn environment_site_packages() -> Vec<PathBuf> {
    let roots = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(path_var);
    let local = path_var(&"HOME").map(|home| home.join(".local"));
    roots.chain(local).flat_map(|root| site_packages_below(&root)).collect()
}

/// `lib/python3.*/site-packages` of a prefix.
fn site_packages_below(prefix: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten();
    let is_python = |name: OsString| name.to_str().is_some_and(|name| name.starts_with("python3"));
    entries
        .filter(|entry| is_python(entry.file_name()))
        .map(|entry| entry.path().join("site-packages"))
        .filter(|path| path.is_dir())
        .collect()
}

/// What the python3 of the path says its site-packages are; nothing when there is none.
fn python_site_packages() -> Vec<PathBuf> {
    let script = "import site, sysconfig\n\
                  print(sysconfig.get_path('purelib'))\n\
                  print('\\n'.join(site.getsitepackages()))";
    let output = Command::new("python3").args(["-c", script]).stdin(Stdio::null()).output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    let mut paths: Vec<PathBuf> =
        String::from_utf8_lossy(&text).lines().map(PathBuf::from).collect();
    paths.dedup();
    paths.retain(|path| path.is_dir());
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes empty files that look like a toolchain.
    fn fake(root: &Path, library_folder: &str, version: &str, headers: &str) {
        let library_folder = root.join(library_folder);
        fs::create_dir_all(&library_folder).unwrap();
        let major = version.split('.').next().unwrap();
        fs::write(library_folder.join(format!("libnvrtc.so.{major}")), "").unwrap();
        fs::write(library_folder.join(format!("libnvrtc-builtins.so.{version}")), "").unwrap();
        let headers = root.join(headers);
        fs::create_dir_all(&headers).unwrap();
        fs::write(headers.join("cuda_fp16.h"), "").unwrap();
    }

    #[test]
    fn the_order_is_managed_home_loader_pip() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fake(&at("managed/cuda-13.5.37"), "lib", "13.5", "include");
        fake(&at("managed/cuda-13.10.1"), "lib", "13.10", "include");
        fake(&at("home"), "targets/x86_64-linux/lib", "13.4", "targets/x86_64-linux/include");
        fake(&at("usr"), "lib64", "13.3", "include");
        fake(&at("site"), "nvidia/cu13/lib", "13.6", "nvidia/cu13/include");
        let mut search = Search {
            managed: Some(at("managed")),
            cuda_homes: vec![at("home")],
            loader: vec![at("usr/lib64")],
            site_packages: vec![at("site")],
            ..Search::default()
        };
        let mut next = || {
            let found = find(&search).toolchain;
            match found.as_ref().map(|toolchain| toolchain.origin) {
                Some(Origin::Managed) => search.managed = None,
                Some(Origin::CudaHome) => search.cuda_homes.clear(),
                Some(Origin::Loader) => search.loader.clear(),
                _ => search.site_packages.clear(),
            }
            found.map(|toolchain| toolchain.version)
        };
        assert_eq!(next(), Some((13, 10)));
        assert_eq!(next(), Some((13, 4)));
        assert_eq!(next(), Some((13, 3)));
        assert_eq!(next(), Some((13, 6)));
        assert_eq!(next(), None);
    }

    #[test]
    fn an_older_compiler_is_the_last_resort() {
        let dir = tempfile::tempdir().unwrap();
        fake(&dir.path().join("home"), "lib64", "13.0", "include");
        fake(&dir.path().join("site"), "nvidia/cu13/lib", "13.5", "nvidia/cu13/include");
        let mut search = Search {
            cuda_homes: vec![dir.path().join("home")],
            site_packages: vec![dir.path().join("site")],
            ..Search::default()
        };
        assert_eq!(find(&search).toolchain.unwrap().version, (13, 5));
        search.site_packages.clear();
        let toolchain = find(&search).toolchain.unwrap();
        assert_eq!(toolchain.version, (13, 0));
        assert!(!toolchain.register_wgmma_is_safe());
    }

    #[test]
    fn the_manifest_path_is_taken_or_refused_alone() {
        let dir = tempfile::tempdir().unwrap();
        fake(&dir.path().join("home"), "lib64", "13.5", "include");
        fake(&dir.path().join("own"), "lib", "13.0", "include");
        let mut search = Search {
            manifest: Some(dir.path().join("own/lib/libnvrtc.so.13")),
            cuda_homes: vec![dir.path().join("home")],
            ..Search::default()
        };
        assert_eq!(find(&search).toolchain.unwrap().version, (13, 0));
        search.manifest = Some(dir.path().join("nowhere"));
        let found = find(&search);
        assert_eq!(found.toolchain, None);
        assert_eq!(found.rejected.len(), 1);
        assert!(found.rejected[0].reason.to_string().contains("nowhere"));
    }

    #[test]
    fn what_is_missing_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let probe = || Toolchain::probe(dir.path(), Origin::Pip, CudaMajor::Cuda12).unwrap_err();
        assert!(matches!(probe(), ToolchainError::NoLibrary { .. }));
        let lib = dir.path().join("nvidia/cuda_nvrtc/lib");
        fs::create_dir_all(&lib).unwrap();
        fs::write(lib.join("libnvrtc.so.12"), "").unwrap();
        assert!(matches!(probe(), ToolchainError::NoBuiltins { .. }));
        fs::write(lib.join("libnvrtc-builtins.so.12.9"), "").unwrap();
        assert!(matches!(probe(), ToolchainError::NoHeaders { .. }));
        let include = dir.path().join("nvidia/cuda_runtime/include");
        fs::create_dir_all(&include).unwrap();
        fs::write(include.join("cuda_fp16.h"), "").unwrap();
        let toolchain = Toolchain::probe(dir.path(), Origin::Pip, CudaMajor::Cuda12).unwrap();
        assert_eq!(toolchain.version, (12, 9));
    }
}
