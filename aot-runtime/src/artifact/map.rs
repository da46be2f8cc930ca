//! Files in memory.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use aot_ir::Bytes;
use memmap2::Mmap;

use crate::{Error, Result};

/// The bytes of a file, mapped.
///
/// # Errors
/// When it can't be read.
pub fn map(path: &Path) -> Result<Bytes> {
    let failed = |source| Error::Io { path: path.display().to_string(), source };
    let file = File::open(path).map_err(failed)?;
    // SAFETY: weights files are replaced by renaming a new file over the old one and never changed
    // in place, so that a mapping keeps its bytes.
    #[allow(unsafe_code)]
    let mapped = unsafe { Mmap::map(&file) }.map_err(failed)?;
    Ok(Bytes::new(Arc::new(mapped)))
}
