//! What a GPU pack holds: written by `cargo xtask gpu-pack`, read by the executables in it.

use crate::decoder::{Extents, Kept, decoder};
use crate::net::{Random, bounded_inputs, round_to};
use crate::picture::digits;
use aot_ir::exec::{ExecError, Tensor};
use aot_ir::{Bytes, DType, Graph};
use aot_runtime::artifact::WeightsLayout;
use serde::{Deserialize, Serialize};

/// Name of the pack's own description.
pub const FILE: &str = "pack.json";

/// Everything in a pack.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Pack {
    /// Files of kernel images, relative to the pack.
    pub images: Vec<String>,
    /// What is run.
    pub entries: Vec<Entry>,
    /// What could not be compiled, with the reason: counts as failed.
    pub failures: Vec<(String, String)>,
}

/// A compiled network with the sizes that it is tried at.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// `f32`, `tf32`, `f16` or `bf16`.
    pub precision: String,
    /// File of the program and the graph.
    pub model: String,
    /// File of the weights; none of what is made.
    pub weights: String,
    /// Its weights are not in the pack, but those of this network, made anew. It is timed, not tried.
    pub made: Option<Made>,
    /// Sizes by name, one list a trial.
    pub sizes: Vec<Vec<(String, i64)>>,
    /// Greatest relative distance from the reference.
    pub tolerance: f64,
    /// Bounds of integer inputs by name: values are in `0..bound`.
    pub bounds: Vec<(String, i64)>,
    /// Its float inputs of rank 4 are pictures of text, not noise.
    pub pictures: bool,
    /// Whether there are images of it for every target of the pack, not the first alone.
    pub everywhere: bool,
    /// Time it as well.
    pub bench: bool,
    /// Time it at sizes that differ from call to call, too.
    pub varied: Option<Varied>,
    /// Time so many steps of a session instead, one token each.
    pub steps: Option<usize>,
    /// File of a [`Recorded`], instead of `sizes`, `tolerance` and `bounds`.
    pub recorded: Option<String>,
}

/// Networks whose random weights take less time to make than room in a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Made {
    /// As large as GPT-2's smallest, but for its vocabulary.
    Decoder,
}

impl Made {
    /// The network.
    pub fn graph(self) -> Graph {
        match self {
            Self::Decoder => {
                let extents = Extents {
                    layers: 12,
                    width: 768,
                    heads: 12,
                    hidden: 3072,
                    vocabulary: 256,
                    batch: 1,
                    past: 1024,
                    new: 128,
                    joined: true,
                    sum: false,
                };
                decoder(Kept::ByHead, extents).graph
            }
        }
    }

    /// Its weights file, the same one every time.
    pub fn weights(self) -> Bytes {
        let graph = self.graph();
        WeightsLayout::new(&graph).write(&graph).0.into()
    }
}

/// Sizes of which one differs from call to call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Varied {
    /// Sizes that stay, by name.
    pub fixed: Vec<(String, i64)>,
    /// The dim that differs.
    pub dim: String,
    /// Its least and greatest size.
    pub least: i64,
    /// See `least`.
    pub most: i64,
}

/// Inputs and the outputs that they must give, to the precision of ONNX's own tests.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Recorded {
    /// In the order of the network's inputs.
    pub inputs: Vec<Value>,
    /// In the order of the network's outputs.
    pub outputs: Vec<Value>,
}

/// A tensor in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Value {
    /// Element type.
    pub dtype: DType,
    /// Extents, outermost first.
    pub shape: Vec<usize>,
    /// Elements as models lay them out.
    pub bytes: Vec<u8>,
}

impl Value {
    /// The tensor.
    ///
    /// # Errors
    /// When the bytes do not fit the shape.
    pub fn tensor(&self) -> Result<Tensor, ExecError> {
        Tensor::from_bytes(self.dtype, self.shape.clone(), &self.bytes)
    }
}

impl Entry {
    /// Random inputs of its graph at one of its sizes.
    pub fn inputs(&self, graph: &Graph, sizes: &[(String, i64)], seed: u64) -> Vec<Tensor> {
        let noise = bounded_inputs(graph, sizes, seed, &self.bounds, &self.precision);
        if !self.pictures {
            return noise;
        }
        let mut random = Random::new(seed);
        let pictures = noise.into_iter().map(|tensor| match *tensor.shape() {
            [n, c, h, w] if tensor.dtype().is_float() => {
                let pixels = digits([n, c, h, w], &mut random);
                let pixels: Vec<f64> =
                    pixels.iter().map(|x| round_to(*x, tensor.dtype(), &self.precision)).collect();
                Tensor::from_f64(tensor.dtype(), vec![n, c, h, w], &pixels).expect("as many")
            }
            _ => tensor,
        });
        pictures.collect()
    }
}
