//! What can go wrong with a command, and the exit code of each.

use std::io;
use std::path::{Path, PathBuf};

use super::exit::Exit;
use crate::build::jobs::KernelErrors;
use crate::build::lockfile::LockFileError;
use crate::build::places::CACHE_DIR_VAR;
use crate::build::session::SessionError;
use crate::build::toolchain::{IdentityError, InstallError};
use crate::manifest::{ManifestError, NameError, SourceFile};
use crate::npy::NpyError;
use crate::pipeline::ModelError;
use crate::verify::VerifyError;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// No Cargo.toml in the folder or any around it.
    #[error("there is no Cargo.toml in `{}` or any folder around it; `cargo init` makes one", .0.display())]
    NoCargoManifest(PathBuf),
    /// No Aot.toml beside any Cargo.toml that was looked at.
    #[error("there is no Aot.toml in `{}` or any folder around it; `cargo aot init` makes one", .0.display())]
    NoManifest(PathBuf),
    /// Several packages of the workspace have an Aot.toml.
    #[error("several packages have an Aot.toml: name one with `-p` ({})", .0.join(", "))]
    Ambiguous(Vec<String>),
    /// `-p` names no package of the workspace.
    #[error("the workspace has no package `{name}`{}", suggestion(.near))]
    NoPackage {
        /// The name given.
        name: String,
        /// A name that is like it.
        near: Option<String>,
    },
    /// The package has no Aot.toml.
    #[error("package `{0}` has no Aot.toml; `cargo aot init -p {0}` makes one")]
    NoManifestIn(String),
    /// Cargo.toml of a workspace without a package, where a package is needed.
    #[error("`{}` has no package: name one of the workspace with `-p`", .0.display())]
    NoPackageHere(PathBuf),
    /// A Cargo.toml that is not TOML or misses what is needed.
    #[error("failed to read `{}`: {reason}", path.display())]
    CargoManifest {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Something that `init` would overwrite.
    #[error("`{}` exists already; `cargo aot init` overwrites nothing", .0.display())]
    Exists(PathBuf),
    /// A folder for the generated crate with something else in it.
    #[error("`{}` holds files that cargo-aot did not write", .0.display())]
    NotOurs(PathBuf),
    /// A dependency that `init` would overwrite.
    #[error("`{}` has a dependency `{name}` already; choose another name with `--name`", path.display())]
    DependencyExists {
        /// The Cargo.toml.
        path: PathBuf,
        /// The dependency.
        name: String,
    },
    /// A name for the generated crate that is none.
    #[error("`{name}` can't be the name of a package: {reason}")]
    Name {
        /// The name given.
        name: String,
        /// What is wrong with it.
        reason: NameError,
    },
    /// A GPU that isn't in the table.
    #[error(
        "unknown GPU `{0}`: a GPU is named like `h200` or `rtx4090`, an architecture like `sm_90`"
    )]
    UnknownGpu(String),
    /// A model file that isn't there.
    #[error("there is no model file `{}`", .0.display())]
    NoModelFile(PathBuf),
    /// The manifest can't be read or is wrong.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A model that the manifest doesn't have.
    #[error("there is no model `{name}`{}", suggestion(.near))]
    NoModel {
        /// The name given.
        name: String,
        /// A name that is like it.
        near: Option<String>,
    },
    /// There is no CUDA compiler, and none could be installed.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// There is no folder for the cache that projects share.
    #[error("there is no shared cache: {CACHE_DIR_VAR} is empty, or neither it nor HOME is set")]
    NoCache,
    /// A template of ours is wrong.
    #[error("failed to write from a template")]
    Template(#[from] minijinja::Error),
    /// Models that can't be built.
    #[error("{} can't be built", model_list(.failed))]
    Models {
        /// The manifest, for diagnostics.
        file: SourceFile,
        /// Each model with its error.
        failed: Vec<(String, ModelError)>,
    },
    /// A step that concerns a single model or no particular one.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Kernels that don't compile.
    #[error(transparent)]
    Kernels(#[from] KernelErrors),
    /// A compiler that doesn't work.
    #[error(transparent)]
    Compiler(#[from] IdentityError),
    /// Aot.lock can't be read, or would change.
    #[error(transparent)]
    LockFile(#[from] LockFileError),
    /// A file of the build can't be read or written.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The compiler gave no image of a kernel that it compiled.
    #[error("kernel `{0}` has no image; this is a bug in cargo-aot")]
    NoImage(String),
    /// A model without artifacts.
    #[error("model `{0}` is not built: run `cargo aot build`")]
    NotBuilt(String),
    /// An input that the file of arrays doesn't have.
    #[error("the input file has no array `{0}`, which the model reads")]
    NoArray(String),
    /// A file of arrays can't be read or written.
    #[error(transparent)]
    Arrays(#[from] NpyError),
    /// A model can't be loaded or run.
    #[error(transparent)]
    Device(Box<aot_runtime::Error>),
    /// Inputs for several models.
    #[error("`--input` is of one model: name it")]
    OneModel,
    /// A model can't be verified.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// Models whose results are not those of their references.
    #[error("{} more from the reference than the tolerance allows", differ(.0))]
    Different(Vec<String>),
    /// A kernel that no model has.
    #[error("there is no kernel `{name}`{}", suggestion(.near))]
    NoKernel {
        /// The name given.
        name: String,
        /// A name that is like it.
        near: Option<String>,
    },
    /// Threads could not be started.
    #[error("failed to start threads: {0}")]
    Threads(String),
    /// The file system refused.
    #[error("failed to {action} `{}`", path.display())]
    Io {
        /// What was tried: `write`, `remove` …
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl CliError {
    /// The code to exit with.
    pub fn exit(&self) -> Exit {
        match self {
            CliError::NoCargoManifest(_)
            | CliError::NoManifest(_)
            | CliError::NoManifestIn(_)
            | CliError::NoPackageHere(_)
            | CliError::CargoManifest { .. }
            | CliError::Manifest(_) => Exit::Manifest,
            CliError::Ambiguous(_)
            | CliError::NoPackage { .. }
            | CliError::NoModel { .. }
            | CliError::NoKernel { .. }
            | CliError::Name { .. }
            | CliError::UnknownGpu(_)
            | CliError::OneModel
            | CliError::NoModelFile(_) => Exit::Usage,
            CliError::Models { failed, .. } => {
                let of_manifest = |error: &ModelError| matches!(error, ModelError::Manifest(_));
                if failed.iter().all(|(_, error)| of_manifest(error)) {
                    Exit::Manifest
                } else {
                    Exit::Model
                }
            }
            CliError::Different(_) => Exit::Different,
            CliError::Verify(error) => match error {
                VerifyError::NoDim { .. } | VerifyError::Size(_) => Exit::Usage,
                VerifyError::NoArray(_) | VerifyError::Expected { .. } => Exit::Failure,
                VerifyError::Device(_) => Exit::Device,
                _ => Exit::Model,
            },
            CliError::Device(_) => Exit::Device,
            CliError::Model(_) => Exit::Model,
            CliError::Kernels(_) | CliError::NoImage(_) => Exit::Kernel,
            CliError::LockFile(LockFileError::Locked { .. }) => Exit::Locked,
            CliError::Install(_) | CliError::Compiler(_) => Exit::Toolchain,
            CliError::Exists(_)
            | CliError::NoCache
            | CliError::NotBuilt(_)
            | CliError::NoArray(_)
            | CliError::Arrays(_)
            | CliError::LockFile(_)
            | CliError::Session(_)
            | CliError::Threads(_)
            | CliError::NotOurs(_)
            | CliError::Template(_)
            | CliError::DependencyExists { .. }
            | CliError::Io { .. } => Exit::Failure,
        }
    }

    /// For `map_err` of file system calls.
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CliError {
        let path = path.to_owned();
        move |source| CliError::Io { action, path, source }
    }
}

impl From<aot_runtime::Error> for CliError {
    fn from(error: aot_runtime::Error) -> Self {
        Self::Device(Box::new(error))
    }
}

fn suggestion(near: &Option<String>) -> String {
    near.as_ref().map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

fn differ(names: &[String]) -> String {
    let list: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    let what = if list.len() == 1 { "model" } else { "models" };
    let verb = if list.len() == 1 { "differs" } else { "differ" };
    format!("{what} {} {verb}", list.join(", "))
}

fn model_list(failed: &[(String, ModelError)]) -> String {
    let names: Vec<_> = failed.iter().map(|(name, _)| format!("`{name}`")).collect();
    let what = if names.len() == 1 { "model" } else { "models" };
    format!("{what} {}", names.join(", "))
}
