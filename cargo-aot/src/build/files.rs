//! Content of files, remembered by their size and times.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::digest::Digest;

/// A file system's clock advances in steps of up to 10 ms; within a step, two writes of equal
/// length look the same.
const TICK: Duration = Duration::from_millis(50);

/// Where times are whole seconds the steps are up to 2 s long.
const COARSE_TICK: Duration = Duration::from_secs(2);

/// What tells, without reading it, that a file may have changed. Times are nanoseconds since
/// 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    length: u64,
    modified: i64,
    /// When the content or anything else about the file changed; on Unix nobody can set that
    /// time. Elsewhere it is the time of modification.
    changed: i64,
    inode: u64,
}

impl Stamp {
    #[cfg(unix)]
    fn of(meta: &fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        let nanos =
            |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
        Self {
            length: meta.len(),
            modified: nanos(meta.mtime(), meta.mtime_nsec()),
            changed: nanos(meta.ctime(), meta.ctime_nsec()),
            inode: meta.ino(),
        }
    }

    #[cfg(not(unix))]
    fn of(meta: &fs::Metadata) -> Self {
        let modified = meta.modified().map_or(i64::MAX, nanos_since_1970);
        Self { length: meta.len(), modified, changed: modified, inode: 0 }
    }

    /// Whether a write after `read` would have given another stamp.
    fn is_settled_at(&self, read: i64) -> bool {
        let newest = self.changed;
        let tick = if newest % 1_000_000_000 == 0 { COARSE_TICK } else { TICK };
        let tick = i64::try_from(tick.as_nanos()).unwrap_or(i64::MAX);
        newest.saturating_add(tick) <= read
    }
}

fn nanos_since_1970(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// A file's content at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    stamp: Stamp,
    /// When reading it began.
    read: i64,
    digest: Digest,
}

/// Remembers the content of files. A file whose stamp is unchanged is not read again, unless
/// it had been written so shortly before it was read that another write could have the same
/// stamp.
#[derive(Debug, Default)]
pub struct Files {
    known: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<PathBuf, Known>,
    reads: usize,
}

/// What [`Files`] remembers, to be stored.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Remembered(BTreeMap<PathBuf, Known>);

impl Files {
    /// Continues with what was remembered earlier.
    pub fn new(remembered: Remembered) -> Self {
        Self { known: Mutex::new(State { files: remembered.0, reads: 0 }) }
    }

    /// The digest of a file's content; None when there is no such file.
    pub fn digest(&self, path: &Path) -> io::Result<Option<Digest>> {
        let absent = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
            _ => Err(error),
        };
        loop {
            let meta = match fs::metadata(path) {
                Ok(meta) => meta,
                Err(error) => return absent(error),
            };
            if !meta.is_file() {
                let error = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
                return Err(error);
            }
            let stamp = Stamp::of(&meta);
            let known = self.lock().files.get(path).copied();
            if let Some(known) = known
                && known.stamp == stamp
                && stamp.is_settled_at(known.read)
            {
                return Ok(Some(known.digest));
            }
            let read = nanos_since_1970(SystemTime::now());
            let digest = match Digest::of_file(path) {
                Ok(digest) => digest,
                Err(error) => return absent(error),
            };
            self.lock().reads += 1;
            // Written while it was read: what was read may be neither the old nor the new.
            if fs::metadata(path).is_ok_and(|meta| Stamp::of(&meta) == stamp) {
                self.lock().files.insert(path.to_owned(), Known { stamp, read, digest });
                return Ok(Some(digest));
            }
        }
    }

    /// What is remembered of those files.
    pub fn remembered<'a>(&self, paths: impl IntoIterator<Item = &'a Path>) -> Remembered {
        let state = self.lock();
        let found = paths.into_iter();
        let found = found.filter_map(|path| Some((path.to_owned(), *state.files.get(path)?)));
        Remembered(found.collect())
    }

    /// How many times a file was read.
    pub fn reads(&self) -> usize {
        self.lock().reads
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;

    fn again(files: &Files, path: &Path) -> Files {
        Files::new(files.remembered([path]))
    }

    #[test]
    fn a_settled_file_is_read_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "one").unwrap();
        sleep(2 * TICK);
        let files = Files::default();
        let digest = files.digest(&path).unwrap();
        assert_eq!(digest, Some(Digest::of(b"one")));
        let files = again(&files, &path);
        assert_eq!(files.digest(&path).unwrap(), digest);
        assert_eq!(files.reads(), 0);
    }

    #[test]
    fn a_rewrite_within_a_tick_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        for round in 0..200_u32 {
            let old = format!("{round:04}");
            fs::write(&path, &old).unwrap();
            let files = Files::default();
            assert_eq!(files.digest(&path).unwrap(), Some(Digest::of(old.as_bytes())));
            let new = format!("{:04}", round + 1);
            fs::write(&path, &new).unwrap();
            let files = again(&files, &path);
            assert_eq!(files.digest(&path).unwrap(), Some(Digest::of(new.as_bytes())));
        }
    }

    #[test]
    fn a_rewrite_that_keeps_the_modification_time_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "one").unwrap();
        let time = fs::metadata(&path).unwrap().modified().unwrap();
        sleep(2 * TICK);
        let files = Files::default();
        files.digest(&path).unwrap();
        fs::write(&path, "two").unwrap();
        fs::File::options().append(true).open(&path).unwrap().set_modified(time).unwrap();
        assert_eq!(again(&files, &path).digest(&path).unwrap(), Some(Digest::of(b"two")));
    }

    #[test]
    fn what_is_not_there_is_none_and_what_is_no_file_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let files = Files::default();
        assert_eq!(files.digest(&dir.path().join("no/file")).unwrap(), None);
        assert!(files.digest(dir.path()).is_err());
    }
}
