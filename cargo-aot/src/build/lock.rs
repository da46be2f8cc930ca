//! Files that make concurrent processes take turns.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// Why a lock could not be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot lock {}: {source}", path.display())]
pub struct LockError {
    /// The lock's file.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// An exclusive lock, held until this is dropped or the process ends, however it ends.
#[derive(Debug)]
#[must_use]
pub struct Lock {
    _file: File,
}

/// Takes the lock of a file, which is created; its folder too. `waiting` is called once when
/// another process holds it.
pub fn acquire(path: &Path, waiting: impl FnOnce()) -> Result<Lock, LockError> {
    let error = |source| LockError { path: path.to_owned(), source };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(error)?;
    }
    let file =
        File::options().create(true).truncate(false).write(true).open(path).map_err(error)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            waiting();
            file.lock().map_err(error)?;
        }
        // Some network file systems have no locks; builds there must not run at once.
        Err(TryLockError::Error(source)) if source.kind() == io::ErrorKind::Unsupported => {}
        Err(TryLockError::Error(source)) => return Err(error(source)),
    }
    Ok(Lock { _file: file })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn the_second_waits_for_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/lock");
        let first = acquire(&path, || panic!("nobody holds it")).unwrap();
        let (sender, receiver) = mpsc::channel();
        let other = thread::spawn({
            let path = path.clone();
            move || {
                let lock = acquire(&path, || sender.send("waiting").unwrap()).unwrap();
                sender.send("got it").unwrap();
                drop(lock);
            }
        });
        assert_eq!(receiver.recv().unwrap(), "waiting");
        assert!(receiver.try_recv().is_err());
        drop(first);
        assert_eq!(receiver.recv().unwrap(), "got it");
        other.join().unwrap();
    }
}
