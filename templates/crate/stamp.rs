/// Tells contents of files apart.
fn stamp(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, word: u64| {
        let hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^ (hash >> 29)
    };
    let mut hash = mix(0, bytes.len() as u64);
    let mut words = bytes.chunks_exact(8);
    for word in words.by_ref() {
        let mut eight = [0; 8];
        eight.copy_from_slice(word);
        hash = mix(hash, u64::from_le_bytes(eight));
    }
    for byte in words.remainder() {
        hash = mix(hash, u64::from(*byte));
    }
    hash
}
