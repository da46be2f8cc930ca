//! The artifact of one model: its program, its graph, and which weights they belong to.

use std::borrow::Cow;

use aot_ir::{Bytes, Graph};
use serde::{Deserialize, Serialize};

use super::container::{Container, FormatError, Kind, Name, Section, decode, name, write};
use super::weights::{WeightsId, WeightsLayout};
use crate::program::Program;
use crate::{Error, Result};

const INFO: Name = name("info");
const PROGRAM: Name = name("program");
const GRAPH: Name = name("graph");

/// What a model's artifact says besides its program and graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// The model's name in the manifest.
    pub model: String,
    /// The weights that the program and the graph speak of.
    pub weights: WeightsId,
    /// Where the graph's constants lie in the weights, by index, in bytes.
    constants: Vec<u64>,
}

/// The bytes of a model's artifact.
///
/// `weights` must be the identity of the file that [`WeightsLayout::write`] made of the same graph.
///
/// # Errors
/// When something can't be encoded, which no program or graph made by cargo-aot is.
pub fn write_model(
    program: &Program,
    graph: &Graph,
    layout: &WeightsLayout,
    weights: &WeightsId,
) -> Result<Vec<u8>> {
    let encode = |bytes: postcard::Result<Vec<u8>>| {
        bytes.map_err(|e| Error::artifact(format!("the artifact of `{}`", program.model), e))
    };
    let info = ModelInfo {
        model: program.model.clone(),
        weights: weights.clone(),
        constants: layout.offsets().to_vec(),
    };
    let section = |name, bytes| Section { name, bytes: Cow::Owned(bytes), compress: true };
    Ok(write(
        Kind::Model,
        vec![
            section(INFO, encode(postcard::to_allocvec(&info))?),
            section(PROGRAM, encode(postcard::to_allocvec(program))?),
            section(GRAPH, encode(postcard::to_allocvec(graph))?),
        ],
    ))
}

/// An opened artifact of a model.
#[derive(Clone, Debug)]
pub struct ModelFile<'a> {
    container: Container<'a>,
    info: ModelInfo,
}

impl<'a> ModelFile<'a> {
    /// Checks the artifact's header.
    ///
    /// # Errors
    /// When these are not the bytes of a model's artifact that this version reads.
    pub fn open(bytes: &'a [u8]) -> Result<Self> {
        let open = || {
            let container = Container::open(bytes, Kind::Model)?;
            let info = decode("info", &container.read(&container.expect(&INFO)?)?)?;
            Ok(Self { container, info })
        };
        open().map_err(|e: FormatError| Error::artifact("the model's artifact", e))
    }

    /// What the artifact says of itself.
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// The program, checked.
    ///
    /// # Errors
    /// When the artifact is damaged.
    pub fn program(&self) -> Result<Program> {
        decode_program(&self.section(&PROGRAM)?).map_err(|e| self.wrong(e))
    }

    /// The graph, without the bytes of its constants, checked.
    ///
    /// # Errors
    /// When the artifact is damaged.
    pub fn graph(&self) -> Result<Graph> {
        decode_graph(&self.section(&GRAPH)?).map_err(|e| self.wrong(e))
    }

    /// The graph with its constants' bytes, which stay in `weights`.
    ///
    /// # Errors
    /// When the artifact is damaged or the weights are too short.
    pub fn graph_with(&self, weights: &Bytes) -> Result<Graph> {
        let mut graph = self.graph()?;
        let mut missing = None;
        let owner: std::sync::Arc<dyn AsRef<[u8]> + Send + Sync> =
            std::sync::Arc::new(Shared(weights.clone()));
        graph.bind_constants(|id, constant| {
            let elements = constant.shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d as u64));
            let bytes = elements.and_then(|n| constant.dtype.bytes_for(n));
            let start = self.info.constants.get(id.index()).copied();
            let part = start.zip(bytes).and_then(|(start, length)| {
                let end = start.checked_add(length)?;
                let range = usize::try_from(start).ok()?..usize::try_from(end).ok()?;
                Bytes::part(owner.clone(), range)
            });
            part.unwrap_or_else(|| {
                missing = Some(constant.name.clone());
                Bytes::default()
            })
        });
        match missing {
            Some(name) => Err(self.wrong(format!("the weights do not hold `{name}`"))),
            None => Ok(graph),
        }
    }

    fn section(&self, name: &Name) -> Result<Cow<'a, [u8]>> {
        let read = || self.container.read(&self.container.expect(name)?);
        read().map_err(|e| self.wrong(e))
    }

    fn wrong(&self, reason: impl ToString) -> Error {
        Error::artifact(format!("the artifact of `{}`", self.info.model), reason)
    }
}

struct Shared(Bytes);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Reads and checks a program in its encoding; total over all bytes.
///
/// # Errors
/// Says what is wrong with the bytes.
pub fn decode_program(bytes: &[u8]) -> Result<Program, String> {
    let program: Program = decode("program", bytes).map_err(|e| e.to_string())?;
    program.check().map_err(|e| format!("the program is inconsistent: {e}"))?;
    Ok(program)
}

/// Reads and checks a graph in its encoding; total over all bytes.
///
/// # Errors
/// Says what is wrong with the bytes.
pub fn decode_graph(bytes: &[u8]) -> Result<Graph, String> {
    let graph: Graph = decode("graph", bytes).map_err(|e| e.to_string())?;
    graph.check().map_err(|e| format!("the graph is inconsistent: {e}"))?;
    Ok(graph)
}
