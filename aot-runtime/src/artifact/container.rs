//! The file format that all artifacts share.
//!
//! All numbers are little-endian.
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | `89 41 4f 54 0d 0a 1a 0a` |
//! | 8..12 | version of the format |
//! | 12..16 | kind of artifact |
//! | 16..20 | number of sections |
//! | 20..24 | zero |
//! | 24..32 | XXH3 (64 bits) of bytes 0..24 and the table |
//! | 32.. | the table: 72 bytes per section, ascending by name |
//!
//! An entry of the table is a name (32 bytes, padded with zeros), codec (u32: 0 stored, 1 an LZ4
//! block), zero (u32), offset from the file's beginning (u64, a multiple of 64), length in the file
//! (u64), length when decoded (u64), and the [checksum](super::checksum) of the bytes in the file (u64).

use std::borrow::Cow;

use xxhash_rust::xxh3::Xxh3;

use super::checksum::checksum;

const MAGIC: [u8; 8] = *b"\x89AOT\r\n\x1a\n";
const VERSION: u32 = 8;
const HEADER: usize = 32;
const ENTRY: usize = 72;
const ALIGNMENT: usize = 64;
const STORED: u32 = 0;
const LZ4: u32 = 1;

/// Name of a section.
pub(crate) type Name = [u8; 32];

/// A section's name from text of at most 32 bytes.
pub(crate) const fn name(text: &str) -> Name {
    let bytes = text.as_bytes();
    let mut name = [0; 32];
    let mut i = 0;
    while i < bytes.len() {
        name[i] = bytes[i];
        i += 1;
    }
    name
}

/// What an artifact holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    /// A program and a graph.
    Model = 1,
    /// Kernel images of one architecture.
    Images = 2,
    /// Weights.
    Weights = 3,
    /// What a session kept.
    State = 4,
}

/// Why bytes are no artifact of the expected kind.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FormatError {
    #[error("not an artifact of cargo aot")]
    Magic,
    #[error("has format version {0}, but this aot-runtime reads {VERSION}")]
    Version(u32),
    #[error("is another kind of artifact")]
    Kind,
    #[error("ends too early")]
    Truncated,
    #[error("is damaged: its table does not match its checksum")]
    Table,
    #[error("has a malformed table")]
    Malformed,
    #[error("lacks section `{0}`")]
    Missing(String),
    #[error("is damaged: section `{0}` does not match its checksum")]
    Checksum(String),
    #[error("has a section `{0}` that can't be decompressed")]
    Compression(String),
    #[error("has a section `{0}` that can't be decoded: {1}")]
    Decode(&'static str, String),
}

/// A section to be written.
#[derive(Debug)]
pub(crate) struct Section<'a> {
    pub(crate) name: Name,
    pub(crate) bytes: Cow<'a, [u8]>,
    pub(crate) compress: bool,
}

/// The bytes of an artifact; the same sections in any order give the same bytes.
pub(crate) fn write(kind: Kind, mut sections: Vec<Section<'_>>) -> Vec<u8> {
    sections.sort_by_key(|s| s.name);
    let mut table = Vec::with_capacity(sections.len() * ENTRY);
    let mut bodies = Vec::with_capacity(sections.len());
    let mut offset = (HEADER + sections.len() * ENTRY).next_multiple_of(ALIGNMENT);
    for section in sections {
        let decoded = section.bytes.len();
        let (codec, body) = match section.compress {
            true => (LZ4, Cow::Owned(lz4_flex::block::compress(&section.bytes))),
            false => (STORED, section.bytes),
        };
        table.extend(section.name);
        table.extend(codec.to_le_bytes());
        table.extend(0u32.to_le_bytes());
        for number in [offset as u64, body.len() as u64, decoded as u64, checksum(&body)] {
            table.extend(number.to_le_bytes());
        }
        let end = offset + body.len();
        bodies.push((offset, body));
        offset = end.next_multiple_of(ALIGNMENT);
    }
    let mut out = Vec::with_capacity(offset);
    out.extend(MAGIC);
    for number in [VERSION, kind as u32, bodies.len() as u32, 0] {
        out.extend(number.to_le_bytes());
    }
    out.extend(table_checksum(&out, &table).to_le_bytes());
    out.extend(table);
    for (offset, body) in bodies {
        out.resize(offset, 0);
        out.extend_from_slice(&body);
    }
    out
}

fn table_checksum(head: &[u8], table: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(head);
    hash.update(table);
    hash.digest()
}

/// An artifact whose table has been checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Container<'a> {
    bytes: &'a [u8],
    table: &'a [u8],
}

/// Where a section lies.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: Name,
    codec: u32,
    pub(crate) range: std::ops::Range<usize>,
    decoded: usize,
    pub(crate) checksum: u64,
}

impl Entry {
    /// Whether the bytes in the file are the section's own.
    pub(crate) fn is_stored(&self) -> bool {
        self.codec == STORED
    }
}

impl<'a> Container<'a> {
    pub(crate) fn open(bytes: &'a [u8], kind: Kind) -> Result<Self, FormatError> {
        let header = bytes.get(..HEADER).ok_or(match bytes.starts_with(&MAGIC) {
            true => FormatError::Truncated,
            false => FormatError::Magic,
        })?;
        if header[..8] != MAGIC {
            return Err(FormatError::Magic);
        }
        let version = u32_at(header, 8)?;
        if version != VERSION {
            return Err(FormatError::Version(version));
        }
        let count = u32_at(header, 16)? as usize;
        let end = count.checked_mul(ENTRY).and_then(|n| n.checked_add(HEADER));
        let table = end.and_then(|end| bytes.get(HEADER..end)).ok_or(FormatError::Truncated)?;
        if table_checksum(&header[..24], table) != u64_at(header, 24)? {
            return Err(FormatError::Table);
        }
        if u32_at(header, 12)? != kind as u32 {
            return Err(FormatError::Kind);
        }
        let container = Self { bytes, table };
        for entry in container.entries() {
            let entry = entry?;
            if entry.range.end > bytes.len() {
                return Err(FormatError::Truncated);
            }
        }
        Ok(container)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = Result<Entry, FormatError>> + use<'a> {
        self.table.chunks_exact(ENTRY).map(parse_entry)
    }

    pub(crate) fn find(&self, name: &Name) -> Result<Option<Entry>, FormatError> {
        for entry in self.table.chunks_exact(ENTRY) {
            if entry[..32] == name[..] {
                return parse_entry(entry).map(Some);
            }
        }
        Ok(None)
    }

    /// The entry of a section that must be there.
    pub(crate) fn expect(&self, name: &Name) -> Result<Entry, FormatError> {
        self.find(name)?.ok_or_else(|| FormatError::Missing(show(name)))
    }

    /// A section's bytes, checked and decompressed.
    pub(crate) fn read(&self, entry: &Entry) -> Result<Cow<'a, [u8]>, FormatError> {
        let stored = self.bytes.get(entry.range.clone()).ok_or(FormatError::Truncated)?;
        if checksum(stored) != entry.checksum {
            return Err(FormatError::Checksum(show(&entry.name)));
        }
        let wrong = || FormatError::Compression(show(&entry.name));
        match entry.codec {
            STORED => Ok(Cow::Borrowed(stored)),
            LZ4 => {
                // A byte of an LZ4 block stands for at most 255 bytes.
                if entry.decoded > stored.len().saturating_mul(255).saturating_add(64) {
                    return Err(wrong());
                }
                let bytes =
                    lz4_flex::block::decompress(stored, entry.decoded).map_err(|_| wrong())?;
                if bytes.len() != entry.decoded {
                    return Err(wrong());
                }
                Ok(Cow::Owned(bytes))
            }
            _ => Err(wrong()),
        }
    }
}

fn parse_entry(entry: &[u8]) -> Result<Entry, FormatError> {
    let name = entry.get(..32).and_then(|n| n.try_into().ok()).ok_or(FormatError::Malformed)?;
    let size = |at| usize::try_from(u64_at(entry, at)?).map_err(|_| FormatError::Malformed);
    let (start, length) = (size(40)?, size(48)?);
    let end = start.checked_add(length).ok_or(FormatError::Malformed)?;
    Ok(Entry {
        name,
        codec: u32_at(entry, 32)?,
        range: start..end,
        decoded: size(56)?,
        checksum: u64_at(entry, 64)?,
    })
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, FormatError> {
    let part = bytes.get(at..at + 4).and_then(|b| b.try_into().ok());
    part.map(u32::from_le_bytes).ok_or(FormatError::Truncated)
}

fn u64_at(bytes: &[u8], at: usize) -> Result<u64, FormatError> {
    let part = bytes.get(at..at + 8).and_then(|b| b.try_into().ok());
    part.map(u64::from_le_bytes).ok_or(FormatError::Truncated)
}

/// A section's name for people: its text, or hexadecimal digits where it is none.
fn show(name: &Name) -> String {
    let text = name.split(|b| *b == 0).next().unwrap_or_default();
    match std::str::from_utf8(text) {
        Ok(text) if text.bytes().all(|b| b.is_ascii_graphic()) => text.to_owned(),
        _ => name.iter().take(8).map(|b| format!("{b:02x}")).collect(),
    }
}

/// A value in postcard's encoding, nothing after it.
pub(crate) fn decode<T: serde::de::DeserializeOwned>(
    section: &'static str,
    bytes: &[u8],
) -> Result<T, FormatError> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok(_) => Err(FormatError::Decode(section, "bytes are left over".to_owned())),
        Err(error) => Err(FormatError::Decode(section, error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let section = |text, bytes: &[u8], compress| Section {
            name: name(text),
            bytes: Cow::Owned(bytes.to_vec()),
            compress,
        };
        write(Kind::Model, vec![section("b", &[7; 1000], true), section("a", b"plain", false)])
    }

    fn read_all(bytes: &[u8]) -> Result<Vec<Vec<u8>>, FormatError> {
        let container = Container::open(bytes, Kind::Model)?;
        container.entries().map(|e| Ok(container.read(&e?)?.into_owned())).collect()
    }

    #[test]
    fn sections_come_back_sorted_and_aligned() {
        let bytes = sample();
        assert_eq!(read_all(&bytes).unwrap(), [b"plain".to_vec(), vec![7; 1000]]);
        let container = Container::open(&bytes, Kind::Model).unwrap();
        assert!(container.entries().all(|e| e.unwrap().range.start % ALIGNMENT == 0));
        assert!(bytes.len() < 400, "compressed");
    }

    #[test]
    fn every_flipped_bit_and_every_truncation_is_noticed() {
        let bytes = sample();
        let container = Container::open(&bytes, Kind::Model).unwrap();
        let padding = |at: usize| {
            at >= HEADER + 2 * ENTRY && !container.entries().any(|e| e.unwrap().range.contains(&at))
        };
        for at in (0..bytes.len()).filter(|at| !padding(*at)) {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                assert!(read_all(&damaged).is_err(), "byte {at} bit {bit}");
            }
        }
        for length in 0..bytes.len() {
            assert!(read_all(&bytes[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn messages_say_what_is_wrong() {
        let bytes = sample();
        assert_eq!(read_all(b"MZ").unwrap_err(), FormatError::Magic);
        assert_eq!(read_all(&bytes[..40]).unwrap_err(), FormatError::Truncated);
        assert!(matches!(Container::open(&bytes, Kind::Images), Err(FormatError::Kind)));
        let mut newer = bytes.clone();
        newer[8] = 9;
        assert_eq!(
            read_all(&newer).unwrap_err().to_string(),
            "has format version 9, but this aot-runtime reads 8"
        );
    }

    #[test]
    fn a_false_size_is_no_reason_to_allocate() {
        let mut bytes = sample();
        let at = HEADER + ENTRY + 56;
        bytes[at..at + 8].copy_from_slice(&(1u64 << 40).to_le_bytes());
        let table = bytes[HEADER..HEADER + 2 * ENTRY].to_vec();
        let checksum = table_checksum(&bytes[..24], &table);
        bytes[24..32].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(read_all(&bytes).unwrap_err(), FormatError::Compression("b".into()));
    }
}
