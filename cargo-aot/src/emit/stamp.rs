//! The stamp of a file's content, computed the same by the generated build script.

include!("../../../templates/crate/stamp.rs");

/// The text of the function for the build script.
pub(super) const TEXT: &str = include_str!("../../../templates/crate/stamp.rs");

/// The stamp of a file with these bytes.
pub fn content_stamp(bytes: &[u8]) -> u64 {
    stamp(bytes)
}

#[cfg(test)]
mod tests {
    use super::content_stamp;

    #[test]
    fn every_byte_and_the_length_count() {
        let base = vec![7_u8; 37];
        for at in 0..base.len() {
            let mut other = base.clone();
            other[at] ^= 0x80;
            assert_ne!(content_stamp(&base), content_stamp(&other), "byte {at}");
        }
        assert_ne!(content_stamp(&base), content_stamp(&base[..36]));
        assert_ne!(content_stamp(b""), content_stamp(b"\0"));
    }
}
