//! The weights file: one per model, for every device.

use std::borrow::Cow;

use aot_ir::{Bytes, ConstId, Graph};
use serde::{Deserialize, Serialize};

use super::checksum::{checksum, checksum_of_pieces, checksums};
use super::container::{Container, FormatError, Kind, Name, Section, name, write};
use crate::{Error, Result};

const DATA: Name = name("data");

/// Weights begin at multiples of so many bytes, in files as on GPUs, so that neighbours in the one are neighbours in the
/// other, and one copy takes them there.
pub const WEIGHT_ALIGNMENT: u64 = 256;

/// Which weights a program belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeightsId {
    /// Bytes of data.
    pub bytes: u64,
    /// The checksum of the data.
    pub checksum: u64,
}

/// Where a graph's constants lie in its weights file: in the order of their indices, as in the
/// source, each at a multiple of [`WEIGHT_ALIGNMENT`] bytes from the beginning of the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightsLayout {
    offsets: Vec<u64>,
    bytes: u64,
}

impl WeightsLayout {
    /// The layout of a graph's weights; a function of the sizes of its constants alone.
    pub fn new(graph: &Graph) -> Self {
        let mut offsets = Vec::new();
        let mut end = 0u64;
        for (_, constant) in graph.constants() {
            let start = end.next_multiple_of(WEIGHT_ALIGNMENT);
            offsets.push(start);
            end = start + constant.bytes.len() as u64;
        }
        Self { offsets, bytes: end }
    }

    /// Bytes from the beginning of the data to a constant's.
    pub fn offset(&self, constant: ConstId) -> Option<u64> {
        self.offsets.get(constant.index()).copied()
    }

    /// The same for all constants by index.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// Bytes of all data.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The weights file of the graph that this is the layout of, and its identity.
    pub fn write(&self, graph: &Graph) -> (Vec<u8>, WeightsId) {
        let mut data = Vec::with_capacity(self.bytes as usize);
        for ((_, constant), offset) in graph.constants().zip(&self.offsets) {
            data.resize(*offset as usize, 0);
            data.extend_from_slice(&constant.bytes);
        }
        let id = WeightsId { bytes: data.len() as u64, checksum: checksum(&data) };
        let section = Section { name: DATA, bytes: Cow::Owned(data), compress: false };
        (write(Kind::Weights, vec![section]), id)
    }
}

/// The data of a weights file, checked against its checksum and against what belongs to the model.
///
/// # Errors
/// When the file is damaged or belongs to another build.
pub fn read_weights(file: &Bytes, expected: &WeightsId, artifact: &str) -> Result<Bytes> {
    UncheckedWeights::open(file, expected, artifact)?.read()
}

/// The data of a weights file that says that it belongs to the model; whether the data is what it was is yet to be
/// checked.
#[derive(Debug)]
pub(crate) struct UncheckedWeights {
    data: Bytes,
    checksum: u64,
    artifact: String,
}

impl UncheckedWeights {
    /// Finds the data.
    ///
    /// # Errors
    /// When the file is none, or belongs to another build.
    pub(crate) fn open(file: &Bytes, expected: &WeightsId, artifact: &str) -> Result<Self> {
        let entry = || {
            let entry = Container::open(file, Kind::Weights)?.expect(&DATA)?;
            match entry.is_stored() {
                true => Ok(entry),
                false => Err(FormatError::Compression("data".to_owned())),
            }
        };
        let entry = entry().map_err(|e: FormatError| Error::artifact(artifact, e))?;
        let other = || Error::artifact(artifact, "these are the weights of another build");
        if (entry.range.len() as u64, entry.checksum) != (expected.bytes, expected.checksum) {
            return Err(other());
        }
        let owner = std::sync::Arc::new(FileBytes(file.clone()));
        let data = Bytes::part(owner, entry.range).ok_or_else(other)?;
        Ok(Self { data, checksum: entry.checksum, artifact: artifact.to_owned() })
    }

    /// The data.
    #[cfg(feature = "cuda")]
    pub(crate) fn data(&self) -> &[u8] {
        &self.data
    }

    /// Checks the data whose pieces, of [`PIECE`](super::PIECE) bytes each but the last one, have these checksums.
    ///
    /// # Errors
    /// When it is damaged.
    pub(crate) fn check(&self, pieces: &[u64]) -> Result<()> {
        match checksum_of_pieces(pieces) == self.checksum {
            true => Ok(()),
            false => {
                let damaged = FormatError::Checksum("data".to_owned());
                Err(Error::artifact(self.artifact.as_str(), damaged))
            }
        }
    }

    /// The data, checked.
    ///
    /// # Errors
    /// When it is damaged.
    pub(crate) fn read(self) -> Result<Bytes> {
        self.check(&checksums(&self.data))?;
        Ok(self.data)
    }
}

struct FileBytes(Bytes);

impl AsRef<[u8]> for FileBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::checksum::PIECE;
    use super::*;

    fn file(data: &[u8]) -> (Bytes, WeightsId) {
        let id = WeightsId { bytes: data.len() as u64, checksum: checksum(data) };
        let section = Section { name: DATA, bytes: Cow::Borrowed(data), compress: false };
        (write(Kind::Weights, vec![section]).into(), id)
    }

    #[test]
    fn damage_is_found_wherever_it_is_and_whoever_looks() {
        let data: Vec<u8> = (0..PIECE * 2 + 999).map(|i| (i * 7 + i / 251) as u8).collect();
        let (intact, id) = file(&data);
        assert_eq!(&*read_weights(&intact, &id, "m.weights").unwrap(), &data);
        let start = intact.len() - data.len();
        for at in [0, PIECE - 1, PIECE, data.len() - 1] {
            let mut damaged = intact.to_vec();
            damaged[start + at] ^= 1;
            let damaged = Bytes::from(damaged);
            let error = read_weights(&damaged, &id, "m.weights").unwrap_err();
            let text = "m.weights: is damaged: section `data` does not match its checksum; run `cargo aot build`";
            assert_eq!(error.to_string(), text);
            let unchecked = UncheckedWeights::open(&damaged, &id, "m.weights").unwrap();
            assert!(unchecked.check(&checksums(&damaged[start..])).is_err());
        }
    }

    #[test]
    fn weights_of_another_build_are_refused() {
        let (intact, _) = file(&[1; 100]);
        let (_, other) = file(&[2; 100]);
        let error = read_weights(&intact, &other, "m.weights").unwrap_err();
        let text = "m.weights: these are the weights of another build; run `cargo aot build`";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn compressed_weights_are_refused() {
        let data = [3; 1000];
        let section = Section { name: DATA, bytes: Cow::Borrowed(&data), compress: true };
        let bytes = Bytes::from(write(Kind::Weights, vec![section]));
        let entry = Container::open(&bytes, Kind::Weights).unwrap().expect(&DATA).unwrap();
        let id = WeightsId { bytes: entry.range.len() as u64, checksum: entry.checksum };
        let error = read_weights(&bytes, &id, "m.weights").unwrap_err();
        assert!(error.to_string().contains("section `data` that can't be decompressed"), "{error}");
    }
}
