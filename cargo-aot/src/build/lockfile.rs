//! Aot.lock: from what, and with what compiler, the artifacts were made.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::atomic;
use super::digest::Digest;
use super::toolchain::CudaMajor;

const HEAD: &str = "# Written by `cargo aot build`; keep it under version control.\n";
const VERSION: u32 = 1;

/// The content of Aot.lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockFile {
    version: u32,
    /// The compiler.
    pub toolchain: LockedToolchain,
    /// Digests of the source files, by their paths relative to the manifest's folder.
    pub sources: BTreeMap<String, Digest>,
}

/// The compiler that Aot.lock records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedToolchain {
    /// The CUDA version that the manifest asks for.
    pub cuda: CudaMajor,
    /// `13.5.37`.
    pub nvrtc: String,
}

/// Why Aot.lock is not as it should be.
#[derive(Debug, thiserror::Error)]
pub enum LockFileError {
    /// It could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is not a lock file.
    #[error(
        "cannot read {}: {reason}; remove it and run `cargo aot build` to write it anew",
        path.display()
    )]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// It would change, and `--locked` forbids that.
    #[error(
        "{} needs to be updated, but --locked was given:{}\nrun `cargo aot build` without --locked \
         and commit the file",
        path.display(),
        changes.iter().map(|change| format!("\n  {change}")).collect::<String>()
    )]
    Locked {
        /// The file.
        path: PathBuf,
        /// What would change.
        changes: Vec<String>,
    },
}

impl LockFile {
    /// What a build used.
    pub fn new(cuda: CudaMajor, nvrtc: String, sources: BTreeMap<String, Digest>) -> Self {
        Self { version: VERSION, toolchain: LockedToolchain { cuda, nvrtc }, sources }
    }

    /// Reads a lock file; None when there is none.
    pub fn read(path: &Path) -> Result<Option<Self>, LockFileError> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(LockFileError::Read { path: path.to_owned(), source }),
        };
        let parse = |reason: String| LockFileError::Parse { path: path.to_owned(), reason };
        let file: Self = toml::from_str(&text).map_err(|error| parse(error.to_string()))?;
        if file.version != VERSION {
            return Err(parse(format!(
                "its version is {}, this tool knows {VERSION}",
                file.version
            )));
        }
        Ok(Some(file))
    }

    /// Makes the file in `path` say the same as this. Fails if it does not and `locked` is set.
    /// Says whether it was written.
    pub fn update(&self, path: &Path, locked: bool) -> Result<bool, LockFileError> {
        let changes = match Self::read(path)? {
            Some(before) if before == *self => return Ok(false),
            Some(before) => self.changes_since(&before),
            None => vec!["the file does not exist".to_owned()],
        };
        if locked {
            return Err(LockFileError::Locked { path: path.to_owned(), changes });
        }
        let error = |source| LockFileError::Write { path: path.to_owned(), source };
        let text = toml::to_string_pretty(self).map_err(|e| error(io::Error::other(e)))?;
        atomic::write(path, &[HEAD.as_bytes(), text.as_bytes()]).map_err(error)?;
        Ok(true)
    }

    fn changes_since(&self, before: &Self) -> Vec<String> {
        let mut changes = Vec::new();
        if self.toolchain != before.toolchain {
            changes.push(format!(
                "the compiler is NVRTC {} (CUDA {}), was {} (CUDA {})",
                self.toolchain.nvrtc,
                self.toolchain.cuda,
                before.toolchain.nvrtc,
                before.toolchain.cuda
            ));
        }
        for (source, digest) in &self.sources {
            match before.sources.get(source) {
                None => changes.push(format!("`{source}` is not in it")),
                Some(old) if old != digest => changes.push(format!("`{source}` changed")),
                Some(_) => {}
            }
        }
        let gone = before.sources.keys().filter(|source| !self.sources.contains_key(*source));
        changes.extend(gone.map(|source| format!("`{source}` is no longer used")));
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(sources: &[(&str, &str)], nvrtc: &str) -> LockFile {
        let digests =
            sources.iter().map(|(path, text)| ((*path).to_owned(), Digest::of(text.as_bytes())));
        LockFile::new(CudaMajor::Cuda13, nvrtc.to_owned(), digests.collect())
    }

    #[test]
    fn it_is_written_once_and_kept_when_locked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("Aot.lock");
        let first = lock(&[("a.onnx", "1"), ("models/b.onnx", "2")], "13.5.37");
        assert!(matches!(first.update(&path, true), Err(LockFileError::Locked { .. })));
        assert!(first.update(&path, false).unwrap());
        assert!(!first.update(&path, true).unwrap());
        assert_eq!(LockFile::read(&path).unwrap(), Some(first));

        let second = lock(&[("a.onnx", "other"), ("c.onnx", "3")], "13.6.1");
        let error = second.update(&path, true).unwrap_err().to_string();
        for part in ["NVRTC 13.6.1", "`a.onnx` changed", "`c.onnx` is not", "`models/b.onnx` is no"]
        {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert!(second.update(&path, false).unwrap());
    }

    #[test]
    fn what_is_no_lock_file_is_refused_with_the_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("Aot.lock");
        for text in [
            "x",
            "version = 1",
            "version = 2\n[toolchain]\ncuda = \"13\"\nnvrtc = \"1\"\n[sources]\n",
        ] {
            fs::write(&path, text).unwrap();
            let error = LockFile::read(&path).unwrap_err().to_string();
            assert!(error.contains("remove it"), "{error}");
        }
    }
}
