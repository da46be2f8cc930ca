//! Writing what a build gives to the user: the generated crate and what lies beside it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};

use super::atomic;
use super::cache::Entry;
use super::digest::Digest;
use super::files::Files;

/// A file to write.
#[derive(Debug, Clone)]
pub struct OutputFile {
    /// Where, relative to the folder of all of them; it does not leave that folder.
    pub path: PathBuf,
    /// What.
    pub content: Content,
}

/// The content of a file to write.
#[derive(Debug, Clone)]
pub enum Content {
    /// These bytes.
    Bytes(Vec<u8>),
    /// An artifact of the cache.
    Cached(Entry),
}

/// What was done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Files whose content is new.
    pub changed: Vec<PathBuf>,
    /// Files that an earlier build had written and this one did not.
    pub removed: Vec<PathBuf>,
}

/// A file that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The system refused.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The path leads out of the folder.
    #[error("`{}` is not a path inside the generated crate", path.display())]
    Outside {
        /// The path.
        path: PathBuf,
    },
}

/// Writes files below `root`, in order, each as a whole, those whose content is there already
/// not at all (so that cargo does not compile them again). Files of `earlier` (paths relative
/// to `root`) that are not among them are removed; no others are.
pub fn write(
    root: &Path,
    outputs: &[OutputFile],
    earlier: &[PathBuf],
    files: &Files,
) -> Result<Written, OutputError> {
    let mut written = Written::default();
    if let Some(bad) =
        outputs.iter().map(|each| &each.path).chain(earlier).find(|path| !inside(path))
    {
        return Err(OutputError::Outside { path: bad.clone() });
    }
    for output in outputs {
        let path = root.join(&output.path);
        let error = |source| OutputError::Write { path: path.clone(), source };
        let changed = match &output.content {
            Content::Bytes(bytes) => atomic::write_if_changed(&path, bytes).map_err(error)?,
            Content::Cached(entry) => {
                let same =
                    matches!(files.digest(&path), Ok(Some(digest)) if digest == entry.digest());
                if !same {
                    copy(entry, &path).map_err(error)?;
                }
                !same
            }
        };
        if changed {
            written.changed.push(path);
        }
    }
    let kept: BTreeSet<&Path> = outputs.iter().map(|output| output.path.as_path()).collect();
    for path in earlier.iter().filter(|path| !kept.contains(path.as_path())) {
        let path = root.join(path);
        match fs::remove_file(&path) {
            Ok(()) => written.removed.push(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(OutputError::Write { path, source }),
        }
    }
    Ok(written)
}

/// The digest that a file of that content has.
pub fn digest(content: &Content) -> Digest {
    match content {
        Content::Bytes(bytes) => Digest::of(bytes),
        Content::Cached(entry) => entry.digest(),
    }
}

fn copy(entry: &Entry, path: &Path) -> io::Result<()> {
    let mut source = entry.open()?;
    atomic::write_with(path, |file: &mut File| io::copy(&mut source, file).map(|_| ()))
}

fn inside(path: &Path) -> bool {
    path.components().next().is_some()
        && path.components().all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::cache::Cache;

    fn bytes(path: &str, content: &str) -> OutputFile {
        OutputFile { path: path.into(), content: Content::Bytes(content.as_bytes().to_vec()) }
    }

    #[test]
    fn only_changes_are_written() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("crate");
        let cache = Cache::new(dir.path().join("cache"), None);
        let entry = cache.put(&Digest::of(b"key"), b"weights").unwrap();
        let weights = OutputFile { path: "w.bin".into(), content: Content::Cached(entry) };
        let files = Files::default();
        let first = [bytes("src/lib.rs", "lib"), bytes("old.rs", "old"), weights.clone()];
        let written = write(&root, &first, &[], &files).unwrap();
        assert_eq!(written.changed.len(), 3);
        assert_eq!(fs::read(root.join("w.bin")).unwrap(), b"weights");
        assert_eq!(write(&root, &first, &[], &files).unwrap(), Written::default());

        fs::write(root.join("own.txt"), "not ours").unwrap();
        fs::write(root.join("w.bin"), "damaged").unwrap();
        let second = [bytes("src/lib.rs", "lib 2"), weights];
        let earlier = ["src/lib.rs", "old.rs", "w.bin", "gone.rs"].map(PathBuf::from);
        let written = write(&root, &second, &earlier, &files).unwrap();
        assert_eq!(written.changed, [root.join("src/lib.rs"), root.join("w.bin")]);
        assert_eq!(written.removed, [root.join("old.rs")]);
        assert_eq!(fs::read(root.join("w.bin")).unwrap(), b"weights");
        assert!(root.join("own.txt").exists());
    }

    #[test]
    fn paths_stay_inside() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["../x", "/x", "a/../../x", ""] {
            let result = write(dir.path(), &[bytes(path, "")], &[], &Files::default());
            assert!(matches!(result, Err(OutputError::Outside { .. })), "{path}");
        }
    }
}
