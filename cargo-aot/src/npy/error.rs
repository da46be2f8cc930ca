//! Why a file of arrays can't be read or written.

use std::io;
use std::path::PathBuf;

/// Why a file of arrays can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum NpyError {
    /// The system refused.
    #[error("failed to {action} `{}`", path.display())]
    Io {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file is no archive.
    #[error("`{}` is no .npz file: {reason}", path.display())]
    Archive {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// An array is not as the format has it, or of a kind that models don't have.
    #[error("array `{name}`: {reason}")]
    Array {
        /// Its name in the archive.
        name: String,
        /// What is wrong.
        reason: String,
    },
}
