//! What a GPU pack holds: written by `cargo xtask gpu-pack`, read by the executables in it.

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
}

/// A compiled network with the sizes that it is tried at.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// `f32`, `tf32`, `f16` or `bf16`.
    pub precision: String,
    /// File of the program and the graph.
    pub model: String,
    /// File of the weights.
    pub weights: String,
    /// Sizes by name, one list a trial.
    pub sizes: Vec<Vec<(String, i64)>>,
    /// Greatest relative distance from the reference.
    pub tolerance: f64,
    /// Bounds of integer inputs by name: values are in `0..bound`.
    pub bounds: Vec<(String, i64)>,
    /// Whether there are images of it for every target of the pack, not the first alone.
    pub everywhere: bool,
    /// Time it as well.
    pub bench: bool,
}
