//! The weights file: one per model, for every device.

use std::borrow::Cow;

use aot_ir::{Bytes, ConstId, Graph};
use serde::{Deserialize, Serialize};

use super::container::{Container, FormatError, Kind, Name, Section, name, write};
use crate::{Error, Result};

const DATA: Name = name("data");

/// Which weights a program belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeightsId {
    /// Bytes of data.
    pub bytes: u64,
    /// XXH3 (64 bits) of the data.
    pub checksum: u64,
}

/// Where a graph's constants lie in its weights file: in the order of their indices, as in the
/// source, each at a multiple of 64 bytes from the beginning of the data.
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
            let start = end.next_multiple_of(64);
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
        let id =
            WeightsId { bytes: data.len() as u64, checksum: xxhash_rust::xxh3::xxh3_64(&data) };
        let section = Section { name: DATA, bytes: Cow::Owned(data), compress: false };
        (write(Kind::Weights, vec![section]), id)
    }
}

/// The data of a weights file, checked against its checksum and against what belongs to the model.
///
/// # Errors
/// When the file is damaged or belongs to another build.
pub fn read_weights(file: &Bytes, expected: &WeightsId, artifact: &str) -> Result<Bytes> {
    let read = || {
        let container = Container::open(file, Kind::Weights)?;
        let entry = container.expect(&DATA)?;
        if (entry.range.len() as u64, entry.checksum) != (expected.bytes, expected.checksum) {
            return Ok(None);
        }
        container.read(&entry)?;
        Ok(Some(entry.range))
    };
    let range = read().map_err(|e: FormatError| Error::artifact(artifact, e))?;
    let other = || Error::artifact(artifact, "these are the weights of another build");
    let range = range.ok_or_else(other)?;
    Bytes::part(std::sync::Arc::new(FileBytes(file.clone())), range).ok_or_else(other)
}

struct FileBytes(Bytes);

impl AsRef<[u8]> for FileBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
