//! Installing a managed toolchain, from pinned wheels or from wheel files.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::download::{DownloadError, download};
use super::find::{Search, find};
use super::layout::{Origin, Toolchain, ToolchainError};
use super::pins::{CudaMajor, pins};
use super::wheel::{Wheel, WheelError};
use crate::build::lock::{self, LockError};
use crate::build::places::TOOLCHAIN_DIR_VAR;

/// Why no toolchain could be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// There is no place for it.
    #[error("no folder for the toolchain: neither HOME nor {TOOLCHAIN_DIR_VAR} is set")]
    NoFolder,
    /// A folder or file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The folder or file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another installation's lock could not be had.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The wheels could not be fetched.
    #[error(transparent)]
    Download(#[from] DownloadError),
    /// A wheel is not usable.
    #[error(transparent)]
    Wheel(#[from] WheelError),
    /// A wheel is missing among the files given.
    #[error(
        "no wheel of {package} was given: the compiler ({compiler}) and its headers ({headers}) \
         are both needed; give both files"
    )]
    MissingWheel {
        /// What is missing.
        package: &'static str,
        /// The compiler's package.
        compiler: &'static str,
        /// The headers' package.
        headers: &'static str,
    },
    /// The wheels did not hold what was expected.
    #[error("the wheels hold no complete toolchain: {0}")]
    Incomplete(#[from] ToolchainError),
    /// Nothing is installed and nothing may be fetched.
    #[error(
        "no CUDA compiler (NVRTC) for CUDA {cuda} was found, and --offline forbids fetching it: run \
         `cargo aot toolchain install` once with a network, or copy the wheels {compiler} and \
         {headers} here and run `cargo aot toolchain install --from FILE --from FILE`, or set \
         `path` in [toolchain] of Aot.toml"
    )]
    Offline {
        /// The CUDA version wanted.
        cuda: CudaMajor,
        /// `NAME==VERSION` of the compiler.
        compiler: String,
        /// `NAME==VERSION` of the headers.
        headers: String,
    },
    /// The manifest names a folder that has none.
    #[error("[toolchain] path is not usable: {0}")]
    ManifestPath(ToolchainError),
}

/// The toolchain that a search finds; else, unless `offline`, the pinned one, installed.
///
/// `say` is told what takes time. An older compiler than the pinned one is replaced by it
/// where that is allowed, and used where it is not.
pub fn ensure(
    search: &Search,
    offline: bool,
    say: &dyn Fn(&str),
) -> Result<Toolchain, InstallError> {
    let found = find(search);
    if search.manifest.is_some() {
        let reason = found.rejected.into_iter().next().map(|rejected| rejected.reason);
        return found.toolchain.ok_or_else(|| {
            InstallError::ManifestPath(reason.unwrap_or(ToolchainError::NoLibrary {
                root: search.manifest.clone().unwrap_or_default(),
                cuda: search.cuda,
            }))
        });
    }
    match found.toolchain {
        Some(toolchain) if offline || toolchain.is_current(search.cuda) => Ok(toolchain),
        _ if offline => {
            let [compiler, headers] =
                pins(search.cuda).map(|pin| format!("{}=={}", pin.package, pin.version));
            Err(InstallError::Offline { cuda: search.cuda, compiler, headers })
        }
        _ => install(search.cuda, search.managed.as_deref().ok_or(InstallError::NoFolder)?, say),
    }
}

/// Installs the pinned wheels below `root`, through pip or uv. Does nothing when they are
/// there already. Several processes may do this at once.
pub fn install(
    cuda: CudaMajor,
    root: &Path,
    say: &dyn Fn(&str),
) -> Result<Toolchain, InstallError> {
    let [compiler, headers] = pins(cuda);
    install_as(root, compiler.version, cuda, say, |stage| {
        say(&format!(
            "installing {} {} and {} {}",
            compiler.package, compiler.version, headers.package, headers.version
        ));
        let wheels = stage.join("wheels");
        make_dir(&wheels)?;
        let files = download(pins(cuda), &wheels)?;
        let wheels: Vec<Wheel> =
            files.iter().map(|file| Wheel::open(file)).collect::<Result<_, _>>()?;
        Ok(wheels)
    })
}

/// Installs wheel files below `root`: one of the compiler, one of the headers. Files of a
/// pinned version must have the pinned hash; other versions are taken as they are.
pub fn install_from_wheels(
    cuda: CudaMajor,
    files: &[PathBuf],
    root: &Path,
    say: &dyn Fn(&str),
) -> Result<Toolchain, InstallError> {
    let wheels: Vec<Wheel> =
        files.iter().map(|file| Wheel::open(file)).collect::<Result<_, _>>()?;
    let [compiler, headers] = pins(cuda);
    for pin in [compiler, headers] {
        let Some(wheel) = wheels.iter().find(|wheel| wheel.package == pin.package) else {
            return Err(InstallError::MissingWheel {
                package: pin.package,
                compiler: compiler.package,
                headers: headers.package,
            });
        };
        if wheel.version == pin.version {
            wheel.check(pin)?;
        } else {
            say(&format!(
                "{} {} is not the version that this release was tested with ({})",
                wheel.package, wheel.version, pin.version
            ));
        }
    }
    let version = wheels
        .iter()
        .find(|wheel| wheel.package == compiler.package)
        .map_or_else(String::new, |wheel| wheel.version.clone());
    install_as(root, &version, cuda, say, |_| Ok(wheels))
}

/// Makes `root/cuda-VERSION` of the wheels that `fetch` gives, as a whole or not at all.
fn install_as(
    root: &Path,
    version: &str,
    cuda: CudaMajor,
    say: &dyn Fn(&str),
    fetch: impl FnOnce(&Path) -> Result<Vec<Wheel>, InstallError>,
) -> Result<Toolchain, InstallError> {
    make_dir(root)?;
    let _lock = lock::acquire(&root.join(".lock"), || {
        say("waiting for another installation of the toolchain");
    })?;
    let target = root.join(format!("cuda-{version}"));
    if let Ok(toolchain) = Toolchain::probe(&target, Origin::Managed, cuda) {
        return Ok(toolchain);
    }
    // The lock is held, so folders that look like unfinished installations belong to nobody.
    for entry in fs::read_dir(root).map_err(|source| write_error(root, source))?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(".new-") {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let stage = root.join(format!(".new-{version}-{}", std::process::id()));
    let result = fill(&stage, &target, version, fetch);
    let _ = fs::remove_dir_all(&stage);
    result?;
    Ok(Toolchain::probe(&target, Origin::Managed, cuda)?)
}

fn fill(
    stage: &Path,
    target: &Path,
    version: &str,
    fetch: impl FnOnce(&Path) -> Result<Vec<Wheel>, InstallError>,
) -> Result<(), InstallError> {
    let tree = stage.join("tree");
    make_dir(&tree)?;
    let wheels = fetch(stage)?;
    let mut record = format!("version {version}\n");
    for wheel in &wheels {
        wheel.unpack(&tree)?;
        record.push_str(&format!("{} {} sha256:{}\n", wheel.package, wheel.version, wheel.sha256));
    }
    let path = tree.join("wheels.txt");
    let mut file = fs::File::create(&path).map_err(|source| write_error(&path, source))?;
    file.write_all(record.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(|source| write_error(&path, source))?;
    if target.exists() {
        // Something is there that is no toolchain, such as one with a file deleted.
        fs::remove_dir_all(target).map_err(|source| write_error(target, source))?;
    }
    fs::rename(&tree, target).map_err(|source| write_error(target, source))
}

fn make_dir(path: &Path) -> Result<(), InstallError> {
    fs::create_dir_all(path).map_err(|source| write_error(path, source))
}

fn write_error(path: &Path, source: io::Error) -> InstallError {
    InstallError::Write { path: path.to_owned(), source }
}
