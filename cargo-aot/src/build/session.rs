//! One run of a build: its lock, its cache, what it reads and writes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::atomic;
use super::cache::Cache;
use super::digest::Digest;
use super::events::{Event, Watch};
use super::files::Files;
use super::guard::{self, Guard, Touched, Verdict};
use super::lock::{self, Lock, LockError};
use super::outputs::{self, OutputError, OutputFile, Written};
use super::places;
use super::units::Units;

/// What a session could not do.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The build's lock could not be had.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A source could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Source {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// An output could not be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The note of what was built could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Note {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A build that has something to do. While it lives, other builds in the same folder wait.
pub struct Session<'a> {
    folder: PathBuf,
    key: Digest,
    watch: &'a dyn Watch,
    cache: Cache,
    files: Files,
    touched: Mutex<Touched>,
    _lock: Lock,
}

/// What comes of opening a session.
#[derive(Debug)]
pub enum Opened<'a> {
    /// There is nothing to do; with the warnings of the build that made the artifacts.
    Fresh(Vec<String>),
    /// There is something to do, for these reasons.
    Stale(Box<Session<'a>>, Vec<String>),
}

/// Files written below a root by the last build, so that they can be removed when they are no
/// longer made.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Trees(std::collections::BTreeMap<PathBuf, Vec<PathBuf>>);

impl std::fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("folder", &self.folder).finish_non_exhaustive()
    }
}

fn guard_file(folder: &Path) -> PathBuf {
    folder.join("guard.json")
}

/// Whether a build in `folder` (`target/aot`) has anything to do, without its lock and without
/// starting a process. `key` stands for everything that decides about the build and is no file.
pub fn check(folder: &Path, key: Digest) -> Verdict {
    guard::check(&guard_file(folder), key)
}

impl<'a> Session<'a> {
    /// Opens a build in `folder`: waits for its lock, and looks whether whoever held it has done
    /// the work.
    pub fn open(
        folder: &Path,
        key: Digest,
        watch: &'a dyn Watch,
    ) -> Result<Opened<'a>, SessionError> {
        let lock = lock::acquire(&folder.join(".lock"), || {
            watch.event(Event::Status {
                verb: "Blocking".to_owned(),
                text: format!("waiting for another build in {}", folder.display()),
            });
        })?;
        let guard = Guard::load(&guard_file(folder));
        let why = match guard.as_ref().map(|guard| guard.check(key, &guard_file(folder))) {
            Some(Verdict::Fresh(warnings)) => return Ok(Opened::Fresh(warnings)),
            Some(Verdict::Stale(why)) => why,
            None => vec!["never built here".to_owned()],
        };
        let remembered = guard.map(|guard| guard.remembered()).unwrap_or_default();
        let session = Self {
            folder: folder.to_owned(),
            key,
            watch,
            cache: Cache::new(folder.join("cache"), places::user_artifacts()),
            files: Files::new(remembered),
            touched: Mutex::default(),
            _lock: lock,
        };
        Ok(Opened::Stale(Box::new(session), why))
    }

    /// The cache of kernels: the project's, and behind it the user's.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The project's cache alone, for artifacts that no other project can use.
    pub fn own_cache(&self) -> Cache {
        Cache::new(self.folder.join("cache"), None)
    }

    /// The units of this build, with their artifacts in `cache`.
    pub fn units<'s>(&'s self, cache: &'s Cache) -> Units<'s> {
        Units::new(cache, self, self.folder.join("units.json"))
    }

    /// The digest of a file that the build reads.
    pub fn source(&self, path: &Path) -> Result<Digest, SessionError> {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        self.optional(path)?
            .ok_or_else(|| SessionError::Source { path: path.to_owned(), source: missing() })
    }

    /// The digest of a file that the build reads if it is there.
    pub fn optional(&self, path: &Path) -> Result<Option<Digest>, SessionError> {
        self.touched().inputs.push(path.to_owned());
        self.files
            .digest(path)
            .map_err(|source| SessionError::Source { path: path.to_owned(), source })
    }

    /// Writes the files of a tree, such as the generated crate, and removes those that the last
    /// build wrote there and this one does not.
    pub fn write(&self, root: &Path, files: &[OutputFile]) -> Result<Written, SessionError> {
        let note = self.folder.join("trees.json");
        let mut trees: Trees = std::fs::read(&note)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        let earlier = trees.0.get(root).cloned().unwrap_or_default();
        let now: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
        if earlier != now {
            // Noted first, so that after a kill no file is forgotten.
            let mut all = earlier.clone();
            all.extend(now.iter().filter(|path| !earlier.contains(path)).cloned());
            trees.0.insert(root.to_owned(), all);
            self.note(&note, &trees)?;
        }
        let written = outputs::write(root, files, &earlier, &self.files)?;
        if earlier != now {
            trees.0.insert(root.to_owned(), now);
            self.note(&note, &trees)?;
        }
        self.wrote(files.iter().map(|file| root.join(&file.path)));
        Ok(written)
    }

    /// Adds files that were written otherwise, such as Aot.lock.
    pub fn wrote(&self, paths: impl IntoIterator<Item = PathBuf>) {
        self.touched().outputs.extend(paths);
    }

    /// Leaves the note that everything is up to date. A build that failed does not call this.
    pub fn finish(self) -> Result<(), SessionError> {
        let path = guard_file(&self.folder);
        let touched = std::mem::take(&mut *self.touched());
        let guard = Guard::take(self.key, touched, &self.files);
        guard
            .and_then(|guard| guard.save(&path))
            .map_err(|source| SessionError::Note { path, source })
    }

    fn note(&self, path: &Path, trees: &Trees) -> Result<(), SessionError> {
        let written = serde_json::to_vec(trees)
            .map_err(io::Error::other)
            .and_then(|bytes| atomic::write(path, &[&bytes]));
        written.map_err(|source| SessionError::Note { path: path.to_owned(), source })
    }

    fn touched(&self) -> MutexGuard<'_, Touched> {
        self.touched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Passes events on, and keeps warnings for builds that have nothing to do.
impl Watch for Session<'_> {
    fn event(&self, event: Event) {
        if let Event::Warning { message } = &event {
            self.touched().warnings.push(message.clone());
        }
        self.watch.event(event);
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
