//! The content-addressed store of artifacts.
//!
//! An entry is one file: a header, then the artifact. The header has the magic `AOTC`, a format
//! version (u32, little endian), the artifact's length (u64) and its blake3 digest. Entries are
//! written under a temporary name and renamed; the digest is verified on every read, so an
//! entry is whole and right, or it is as if it were not there.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::atomic;
use super::digest::Digest;
use super::events::{Event, Watch};

const MAGIC: [u8; 4] = *b"AOTC";
const VERSION: u32 = 1;
const HEADER: usize = 4 + 4 + 8 + 32;

/// The caches of one build: the project's own, and one that the user's projects share.
#[derive(Debug, Clone)]
pub struct Cache {
    local: PathBuf,
    shared: Option<PathBuf>,
}

/// An artifact that could not be kept.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct CacheError {
    /// The entry's file.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

/// An entry on disk whose content has been verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    path: PathBuf,
    digest: Digest,
    length: u64,
}

impl Entry {
    /// The digest of the artifact.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The artifact's length in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The artifact.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(usize::try_from(self.length).unwrap_or(0));
        self.open()?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// A reader of the artifact.
    pub fn open(&self) -> io::Result<File> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(HEADER as u64))?;
        Ok(file)
    }
}

/// Where an artifact is written to.
#[derive(Debug)]
pub struct Sink<'a> {
    file: &'a mut File,
    hasher: blake3::Hasher,
    length: u64,
    failure: Option<io::Error>,
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.file.write(bytes) {
            Ok(written) => {
                self.hasher.update(&bytes[..written]);
                self.length += written as u64;
                Ok(written)
            }
            Err(error) => {
                let kind = error.kind();
                if kind != io::ErrorKind::Interrupted {
                    self.failure.get_or_insert(error);
                }
                Err(kind.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink<'_> {
    /// Completes the header.
    fn finish(self) -> io::Result<(Digest, u64)> {
        let digest = Digest::from_bytes(*self.hasher.finalize().as_bytes());
        let mut header = Vec::with_capacity(HEADER);
        header.extend_from_slice(&MAGIC);
        header.extend_from_slice(&VERSION.to_le_bytes());
        header.extend_from_slice(&self.length.to_le_bytes());
        header.extend_from_slice(digest.as_bytes());
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&header)?;
        Ok((digest, self.length))
    }
}

/// Why an entry was not written.
enum Failure<E> {
    Io(io::Error),
    Caller(E),
}

impl<E> From<io::Error> for Failure<E> {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// What a cache has for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookup {
    /// The artifact, verified.
    pub artifact: Option<Entry>,
    /// Entries that were there but damaged, with what is wrong. They are removed.
    pub damaged: Vec<(PathBuf, String)>,
}

/// What a folder of entries holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Number of entries.
    pub entries: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

/// Why an entry is not usable.
enum Unusable {
    Absent,
    Damaged(String),
}

impl Cache {
    /// A cache in the folder `local`, behind it one in `shared`. Folders are made when needed.
    pub fn new(local: PathBuf, shared: Option<PathBuf>) -> Self {
        Self { local, shared }
    }

    /// The artifact of a key: from the project's cache, else from the user's, which also puts
    /// it into the project's.
    pub fn get(&self, key: &Digest) -> Lookup {
        let mut lookup = Lookup { artifact: None, damaged: Vec::new() };
        for root in std::iter::once(&self.local).chain(&self.shared) {
            let path = entry(root, key);
            match verify(&path) {
                Ok(found) => {
                    if root != &self.local {
                        // What is used now is kept with the project; failing that costs a
                        // look-up next time.
                        let _ = link_or_copy(&path, &entry(&self.local, key));
                    }
                    lookup.artifact = Some(found);
                    break;
                }
                Err(Unusable::Absent) => {}
                Err(Unusable::Damaged(reason)) => {
                    let _ = fs::remove_file(&path);
                    lookup.damaged.push((path, reason));
                }
            }
        }
        lookup
    }

    /// [`get`](Self::get), with damaged entries told to `watch`; `artifact` says what it is of.
    pub fn look_up(
        &self,
        key: &Digest,
        artifact: impl std::fmt::Display,
        watch: &dyn Watch,
    ) -> Lookup {
        let lookup = self.get(key);
        for (path, damage) in &lookup.damaged {
            watch.event(Event::CacheRepair {
                path: path.to_string_lossy().into_owned(),
                damage: damage.clone(),
                artifact: artifact.to_string(),
            });
        }
        lookup
    }

    /// Whether there is an entry for a key, unverified.
    pub fn contains(&self, key: &Digest) -> bool {
        std::iter::once(&self.local).chain(&self.shared).any(|root| entry(root, key).is_file())
    }

    /// Keeps an artifact. The user's cache is a convenience: failing to write there is no error.
    pub fn put(&self, key: &Digest, artifact: &[u8]) -> Result<Entry, CacheError> {
        self.put_with(key, |sink| {
            let path = || entry(&self.local, key);
            sink.write_all(artifact).map_err(|source| CacheError { path: path(), source })
        })
    }

    /// Keeps what a function writes, as a whole or, when it fails, not at all.
    pub fn put_with<E: From<CacheError>>(
        &self,
        key: &Digest,
        fill: impl FnOnce(&mut Sink<'_>) -> Result<(), E>,
    ) -> Result<Entry, E> {
        let path = entry(&self.local, key);
        let written = atomic::write_with(&path, |file| -> Result<(Digest, u64), Failure<E>> {
            file.write_all(&[0; HEADER])?;
            let mut sink = Sink { file, hasher: blake3::Hasher::new(), length: 0, failure: None };
            let filled = fill(&mut sink);
            // A failure to write is the cache's, whatever the function made of it.
            if let Some(error) = sink.failure.take() {
                return Err(Failure::Io(error));
            }
            filled.map_err(Failure::Caller)?;
            Ok(sink.finish()?)
        });
        match written {
            Ok((digest, length)) => {
                if let Some(shared) = &self.shared {
                    let _ = link_or_copy(&path, &entry(shared, key));
                }
                Ok(Entry { path, digest, length })
            }
            Err(Failure::Io(source)) => Err(CacheError { path, source }.into()),
            Err(Failure::Caller(error)) => Err(error),
        }
    }

    /// The project's folder.
    pub fn local(&self) -> &Path {
        &self.local
    }

    /// The user's folder.
    pub fn shared(&self) -> Option<&Path> {
        self.shared.as_deref()
    }
}

/// What lies in a folder of entries. A folder that is not there holds nothing.
pub fn usage(root: &Path) -> io::Result<Usage> {
    let mut usage = Usage::default();
    let groups = match fs::read_dir(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(usage),
        other => other?,
    };
    for group in groups {
        let group = group?;
        if !group.file_type()?.is_dir() {
            continue;
        }
        for file in fs::read_dir(group.path())? {
            // An entry may vanish while another process cleans up.
            if let Ok(meta) = file.and_then(|file| file.metadata()) {
                usage.entries += 1;
                usage.bytes += meta.len();
            }
        }
    }
    Ok(usage)
}

/// Empties a folder of entries. A folder that is not there is empty.
pub fn clear(root: &Path) -> io::Result<()> {
    match fs::remove_dir_all(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// `ROOT/ab/cdef…`
fn entry(root: &Path, key: &Digest) -> PathBuf {
    let hex = key.to_string();
    root.join(&hex[..2]).join(&hex[2..])
}

/// Reads an entry through and compares it with its header.
fn verify(path: &Path) -> Result<Entry, Unusable> {
    let damaged = |reason: &str| Unusable::Damaged(reason.to_owned());
    let absent = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Unusable::Absent,
        _ => Unusable::Damaged(error.to_string()),
    };
    let mut file = File::open(path).map_err(absent)?;
    let size = file.metadata().map_err(absent)?.len();
    let mut header = [0_u8; HEADER];
    file.read_exact(&mut header).map_err(|_| damaged("shorter than its header"))?;
    if header[..4] != MAGIC {
        return Err(damaged("not an entry of the cache"));
    }
    if header[4..8] != VERSION.to_le_bytes() {
        // Of another release; it is replaced without a word.
        return Err(Unusable::Absent);
    }
    let mut length = [0_u8; 8];
    length.copy_from_slice(&header[8..16]);
    let length = u64::from_le_bytes(length);
    if size.checked_sub(HEADER as u64) != Some(length) {
        return Err(damaged("not as long as its header says"));
    }
    let digest = Digest::of_reader(file).map_err(|error| Unusable::Damaged(error.to_string()))?;
    if digest.as_bytes()[..] != header[16..] {
        return Err(damaged("its content does not have the checksum in its header"));
    }
    Ok(Entry { path: path.to_owned(), digest, length })
}

/// Gives a file a second name; where that is impossible, copies it.
fn link_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    match fs::hard_link(from, to) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(_) => atomic::copy(from, to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(dir: &Path) -> Cache {
        Cache::new(dir.join("local"), Some(dir.join("shared")))
    }

    fn bytes(lookup: &Lookup) -> Option<Vec<u8>> {
        lookup.artifact.as_ref().map(|entry| entry.read().unwrap())
    }

    fn flip(path: &Path, at: usize) {
        let mut bytes = fs::read(path).unwrap();
        bytes[at] ^= 1;
        // A new file: the hard link in the other cache keeps its bytes.
        fs::remove_file(path).unwrap();
        fs::write(path, bytes).unwrap();
    }

    #[test]
    fn what_was_put_is_there_in_both_caches() {
        let dir = tempfile::tempdir().unwrap();
        let cache = cache(dir.path());
        let key = Digest::of(b"key");
        assert_eq!(cache.get(&key), Lookup { artifact: None, damaged: vec![] });
        cache.put(&key, b"artifact").unwrap();
        assert_eq!(bytes(&cache.get(&key)).as_deref(), Some(&b"artifact"[..]));
        clear(cache.local()).unwrap();
        assert_eq!(bytes(&cache.get(&key)).as_deref(), Some(&b"artifact"[..]));
        assert!(entry(cache.local(), &key).is_file(), "it was brought into the project's cache");
        assert_eq!(usage(cache.local()).unwrap().entries, 1);
        assert_eq!(usage(&dir.path().join("nowhere")).unwrap(), Usage::default());
    }

    #[test]
    fn any_flipped_byte_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::new(dir.path().join("local"), None);
        let key = Digest::of(b"key");
        let path = entry(cache.local(), &key);
        for at in 0..HEADER + 8 {
            cache.put(&key, b"artifact").unwrap();
            flip(&path, at);
            let lookup = cache.get(&key);
            assert_eq!(lookup.artifact, None, "byte {at}");
            let of_other_version = (4..8).contains(&at);
            assert_eq!(lookup.damaged.is_empty(), of_other_version, "byte {at}");
        }
        for length in 0..HEADER + 8 {
            cache.put(&key, b"artifact").unwrap();
            let bytes = fs::read(&path).unwrap();
            fs::write(&path, &bytes[..length]).unwrap();
            assert_eq!(cache.get(&key).damaged.len(), 1, "cut to {length}");
            assert!(!path.exists(), "the damaged entry is removed");
        }
    }

    #[test]
    fn a_damaged_entry_is_replaced_by_the_shared_one() {
        let dir = tempfile::tempdir().unwrap();
        let cache = cache(dir.path());
        let key = Digest::of(b"key");
        cache.put(&key, b"artifact").unwrap();
        flip(&entry(cache.local(), &key), HEADER);
        let lookup = cache.get(&key);
        assert_eq!(bytes(&lookup).as_deref(), Some(&b"artifact"[..]));
        assert_eq!(lookup.damaged.len(), 1);
        assert!(cache.get(&key).damaged.is_empty());
    }

    #[test]
    fn an_unwritable_place_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("local"), "a file").unwrap();
        let error = cache(dir.path()).put(&Digest::of(b"key"), b"x").unwrap_err();
        assert!(error.to_string().contains("local"), "{error}");
    }

    #[test]
    fn a_failure_of_whoever_writes_leaves_nothing() {
        #[derive(Debug, PartialEq)]
        enum Mine {
            Own,
            Cache,
        }
        impl From<CacheError> for Mine {
            fn from(_: CacheError) -> Self {
                Self::Cache
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let cache = cache(dir.path());
        let key = Digest::of(b"key");
        let result = cache.put_with(&key, |sink| {
            sink.write_all(b"half").unwrap();
            Err(Mine::Own)
        });
        assert_eq!(result, Err(Mine::Own));
        assert_eq!(usage(cache.local()).unwrap().entries, 0);
    }
}
