//! Files in memory.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use aot_ir::Bytes;
use memmap2::Mmap;

use crate::{Error, Result};

/// The bytes of a file, mapped: read-only and shared, so that processes which use the same file have it in memory once.
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

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;
    use std::io::{Seek, Write};

    /// What the kernel says of the mapping that begins at an address.
    fn permissions(address: usize) -> String {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let begins = format!("{address:x}-");
        let line = maps.lines().find(|line| line.trim_start_matches('0').starts_with(&begins));
        line.unwrap().split_whitespace().nth(1).unwrap().to_owned()
    }

    #[test]
    fn mappings_are_read_only_and_share_memory() {
        let path = std::env::temp_dir().join(format!("aot-map-{}", std::process::id()));
        std::fs::write(&path, [7; 5000]).unwrap();
        let mapped = [map(&path).unwrap(), map(&path).unwrap()];
        for bytes in &mapped {
            assert_eq!(permissions(bytes.as_ptr().addr()), "r--s");
        }
        assert_ne!(mapped[0].as_ptr(), mapped[1].as_ptr());
        // Memory of their own, which pages of private mappings may be, would not see this.
        let mut file = File::options().write(true).open(&path).unwrap();
        file.seek(std::io::SeekFrom::Start(4999)).unwrap();
        file.write_all(&[8]).unwrap();
        std::fs::remove_file(&path).unwrap();
        let last = |bytes: &Bytes| std::hint::black_box(bytes).last().copied();
        assert_eq!([last(&mapped[0]), last(&mapped[1])], [Some(8), Some(8)]);
    }
}
