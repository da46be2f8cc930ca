//! Files that appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

/// How names of unfinished files begin.
pub const TEMPORARY: &str = ".tmp-";

static COUNTER: AtomicU64 = AtomicU64::new(0);

/// A name in the same folder that nobody else uses.
fn temporary_beside(path: &Path) -> PathBuf {
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    path.with_file_name(format!("{TEMPORARY}{}-{number}", process::id()))
}

/// Writes a file under a temporary name and renames it, so that a process that is killed, or a
/// full disk, leaves the old file or none. Makes the folder.
pub fn write(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    write_with(path, |file| parts.iter().try_for_each(|part| file.write_all(part)))
}

/// The same, with a function that writes the content.
pub fn write_with<T, E: From<io::Error>>(
    path: &Path,
    fill: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<T, E> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let temporary = temporary_beside(path);
    let written = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&temporary)
        .map_err(E::from)
        .and_then(|mut file| fill(&mut file))
        .and_then(|value| {
            fs::rename(&temporary, path)?;
            Ok(value)
        });
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Writes a file unless it has these bytes already, so that its time stays. Says whether it
/// was written.
pub fn write_if_changed(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let same = fs::metadata(path)
        .is_ok_and(|meta| meta.is_file() && meta.len() == bytes.len() as u64)
        && fs::read(path)? == bytes;
    if !same {
        write(path, &[bytes])?;
    }
    Ok(!same)
}

/// Puts a copy of a file at `to` as a whole.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    write_with(to, |file| io::copy(&mut File::open(from)?, file).map(|_| ()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().flatten();
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/file");
        write(&path, &[b"old"]).unwrap();
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let result: io::Result<()> = write_with(&path, |file| {
            file.write_all(b"half")?;
            Err(full)
        });
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(&dir.path().join("a")), ["file"]);
    }

    #[test]
    fn equal_bytes_are_not_written_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        assert!(write_if_changed(&path, b"one").unwrap());
        assert!(!write_if_changed(&path, b"one").unwrap());
        assert!(write_if_changed(&path, b"two").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"two");
    }
}
