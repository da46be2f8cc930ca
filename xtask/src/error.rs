//! What a chore can fail with.

use std::io;
use std::path::{Path, PathBuf};

/// Why a chore stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The root of the project could not be found.
    #[error("no folder with xtask/Cargo.toml at or above {}: run this inside a checkout", .0.display())]
    NoCheckout(PathBuf),
    /// A file operation failed.
    #[error("failed to {what} {}: {source}", .path.display())]
    Io {
        /// What was being done, e.g. `read`.
        what: &'static str,
        /// The file or folder it was done to.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A program could not be started.
    #[error("failed to start `{program}`: {source}{}", help(.hint))]
    Start {
        /// The program's name.
        program: String,
        /// The cause.
        source: io::Error,
        /// What would fix it, if known.
        hint: &'static str,
    },
    /// A program ended with a status other than success.
    #[error("`{command}` ended with {status}{}", help(.hint))]
    Failed {
        /// The command line, shortened.
        command: String,
        /// How it ended.
        status: String,
        /// What would fix it, if known.
        hint: &'static str,
    },
    /// A requirements file has no pin for a package of the catalogue.
    #[error("{} has no `{package}==…` with hashes", .file.display())]
    NoPin {
        /// The requirements file.
        file: PathBuf,
        /// The package looked for.
        package: String,
    },
    /// pip reported success but the wheel is not there.
    #[error("pip left no wheel of `{package}` in {}", .folder.display())]
    NoWheel {
        /// The package looked for.
        package: String,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// A wheel cannot be read or lacks a file of the catalogue.
    #[error("wheel {}: {message}", .path.display())]
    Wheel {
        /// The wheel.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// No Python of a version that the pinned packages support.
    #[error(
        "`{program}` is Python {found}, and the pinned packages need CPython 3.11 to 3.14: \
         name another with the variable PYTHON"
    )]
    PythonVersion {
        /// The interpreter asked.
        program: String,
        /// Its version, as it says.
        found: String,
    },
    /// A check of the chore itself failed.
    #[error("{0}")]
    Other(String),
}

fn help(hint: &str) -> String {
    if hint.is_empty() { String::new() } else { format!("\n  help: {hint}") }
}

impl Error {
    /// Wraps an I/O error with what was done to which path.
    pub fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}

/// The result of a chore.
pub type Result<T, E = Error> = std::result::Result<T, E>;
