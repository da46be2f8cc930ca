//! Checksums that several threads can make, each of some pieces.
//!
//! The checksum of at most [`PIECE`] bytes is their XXH3 (64 bits). That of more is the XXH3 of the little-endian XXH3s
//! of their pieces, which are [`PIECE`] bytes each but the last one.

use xxhash_rust::xxh3::xxh3_64;

/// Bytes of a piece.
pub(crate) const PIECE: usize = 1 << 20;

/// The checksum of a piece.
pub(crate) fn checksum_of_piece(piece: &[u8]) -> u64 {
    xxh3_64(piece)
}

/// The checksums of all pieces.
pub(super) fn checksums(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks(PIECE).map(checksum_of_piece).collect()
}

/// The checksum of what has pieces with these.
pub(super) fn checksum_of_pieces(pieces: &[u64]) -> u64 {
    match pieces {
        [] => xxh3_64(&[]),
        [one] => *one,
        all => {
            let bytes: Vec<u8> = all.iter().flat_map(|piece| piece.to_le_bytes()).collect();
            xxh3_64(&bytes)
        }
    }
}

/// The checksum of bytes.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    checksum_of_pieces(&checksums(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_bytes_are_one_piece_and_long_ones_several() {
        assert_eq!(checksum(b""), xxh3_64(b""));
        let bytes = vec![5; PIECE + 1];
        assert_eq!(checksum(&bytes[1..]), xxh3_64(&bytes[1..]));
        let pieces = [xxh3_64(&bytes[1..]).to_le_bytes(), xxh3_64(&[5]).to_le_bytes()];
        assert_eq!(checksum(&bytes), xxh3_64(&pieces.concat()));
    }
}
