//! Files of a GPU pack that are compressed as a whole: kernels have most of their text in common.

use aot_ir::Bytes;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

const BUFFER: usize = 1 << 16;
/// Beyond it, packing takes minutes for little.
const QUALITY: u32 = 9;
/// Bits of the window, the most that every decoder takes: what is within 16 MiB is found again.
const WINDOW: u32 = 24;

/// Bytes that [`read`] gives back, in Brotli's format.
///
/// # Errors
/// Never, as nothing but memory is written.
pub fn compress(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut out = brotli::CompressorWriter::new(Vec::new(), BUFFER, QUALITY, WINDOW);
    out.write_all(bytes)?;
    out.flush()?;
    Ok(out.into_inner())
}

/// What a file holds.
///
/// # Errors
/// When it can't be read or is damaged.
pub fn read(path: &Path) -> std::io::Result<Bytes> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path)?;
    brotli::Decompressor::new(file, BUFFER).read_to_end(&mut bytes)?;
    Ok(Bytes::new(Arc::new(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_comes_back() {
        let text = b"extern \"C\" __global__ void kernel() {}\n".repeat(1000);
        let packed = compress(&text).unwrap();
        assert!(packed.len() < text.len() / 50);
        let path = std::env::temp_dir().join(format!("packed-{}", std::process::id()));
        std::fs::write(&path, &packed).unwrap();
        assert_eq!(read(&path).unwrap()[..], text[..]);
        std::fs::write(&path, &packed[..packed.len() / 2]).unwrap();
        assert!(read(&path).is_err());
        std::fs::remove_file(path).unwrap();
    }
}
