//! The model's files: mapped, and kept inside the model's folder.

use prost::bytes::Bytes;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

/// Files up to this size are read instead of mapped.
const READ_BELOW: u64 = 1 << 16;

/// The model file's folder and the files of it that were opened.
#[derive(Debug, Default)]
pub(super) struct Files {
    folder: PathBuf,
    open: HashMap<PathBuf, Bytes>,
    /// In the order of opening.
    pub(super) paths: Vec<PathBuf>,
}

impl Files {
    /// Files beside `model`.
    pub(super) fn beside(model: &Path) -> Self {
        let folder = model.parent().map(Path::to_owned).unwrap_or_default();
        Self { folder, open: HashMap::new(), paths: Vec::new() }
    }

    /// Opens a file by its path.
    pub(super) fn open(&mut self, path: &Path) -> io::Result<Bytes> {
        if let Some(bytes) = self.open.get(path) {
            return Ok(bytes.clone());
        }
        let bytes = contents(path)?;
        self.open.insert(path.to_owned(), bytes.clone());
        self.paths.push(path.to_owned());
        Ok(bytes)
    }

    /// Opens a file that the model names relative to its folder.
    ///
    /// # Errors
    /// A text for users: the file can't be read, or its path leaves the folder.
    pub(super) fn open_external(&mut self, location: &str) -> Result<Bytes, String> {
        let relative = Path::new(location);
        let inside =
            relative.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
        if location.is_empty() || !inside {
            return Err(format!("external data `{location}` is not inside the model's folder"));
        }
        let path = self.folder.join(relative);
        self.open(&path).map_err(|e| format!("external data {}: {e}", path.display()))
    }
}

fn contents(path: &Path) -> io::Result<Bytes> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file"));
    }
    if metadata.len() <= READ_BELOW {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        return Ok(bytes.into());
    }
    map(&file)
}

#[allow(unsafe_code)]
fn map(file: &File) -> io::Result<Bytes> {
    // SAFETY: the mapping is private and read-only. What remains is another process that shortens
    // or rewrites the model while it is imported; `cargo aot` asks users not to, as any build tool
    // does of its sources, and hashes them, so that a change between two reads is seen.
    let map = unsafe { memmap2::Mmap::map(file)? };
    Ok(Bytes::from_owner(map))
}
