//! Digests of content, and keys made of named parts.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A blake3 digest. Text and serialised form are 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Digest([u8; 32]);

/// A text that is no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a digest of 64 hexadecimal digits")]
pub struct ParseDigestError(String);

impl Digest {
    /// The digest of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// The digest of a file's content.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        Self::of_reader(File::open(path)?)
    }

    /// The digest of everything that a reader gives.
    pub fn of_reader(reader: impl Read) -> io::Result<Self> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(reader)?;
        Ok(Self(*hasher.finalize().as_bytes()))
    }

    /// Its 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The digest with these bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The first 8 digits, for people.
    pub fn short(&self) -> String {
        self.to_string()[..8].to_owned()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({})", self.short())
    }
}

impl FromStr for Digest {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, ParseDigestError> {
        match blake3::Hash::from_hex(text) {
            Ok(hash) => Ok(Self(*hash.as_bytes())),
            Err(_) => Err(ParseDigestError(text.to_owned())),
        }
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl TryFrom<String> for Digest {
    type Error = ParseDigestError;

    fn try_from(text: String) -> Result<Self, ParseDigestError> {
        text.parse()
    }
}

/// Makes a digest of named parts. Parts are delimited, so that no two different lists of
/// parts are the same bytes.
#[derive(Debug)]
pub struct KeyBuilder(blake3::Hasher);

impl KeyBuilder {
    /// A key of some domain, such as `kernel`; keys of different domains never meet.
    pub fn new(domain: &str) -> Self {
        let mut builder = Self(blake3::Hasher::new());
        builder.delimited(domain.as_bytes());
        builder
    }

    /// Adds a part.
    #[must_use]
    pub fn part(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.delimited(name.as_bytes());
        self.delimited(value.as_ref());
        self
    }

    /// The key.
    pub fn finish(self) -> Digest {
        Digest(*self.0.finalize().as_bytes())
    }

    fn delimited(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        let digest = Digest::of(b"x");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert!("12".parse::<Digest>().is_err());
    }

    #[test]
    fn parts_do_not_run_together() {
        let key = |a: &str, b: &str| KeyBuilder::new("k").part("a", a).part("b", b).finish();
        assert_ne!(key("xy", "z"), key("x", "yz"));
        assert_eq!(key("x", "y"), key("x", "y"));
        assert_ne!(KeyBuilder::new("k").finish(), KeyBuilder::new("l").finish());
    }

    #[test]
    fn files_and_bytes_agree() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![7; 200_000]).unwrap();
        assert_eq!(Digest::of_file(file.path()).unwrap(), Digest::of(&vec![7; 200_000]));
    }
}
