//! What came of verifying a model.

use std::collections::BTreeMap;

use serde::Serialize;

/// What is compared with the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    /// The graph of the artifact, run in binary64: passes and stored weights.
    Graph,
    /// The CPU device.
    Cpu,
    /// The groups of the plan, interpreted through the planned arena, with the roundings of kernels.
    Groups,
    /// The kernels on a GPU.
    Kernels,
}

impl Subject {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Graph => "graph",
            Self::Cpu => "cpu",
            Self::Groups => "groups",
            Self::Kernels => "kernels",
        }
    }
}

/// A verified model.
#[derive(Clone, Debug, Serialize)]
pub struct ModelReport {
    /// The name in the manifest.
    pub name: String,
    /// What matrix units compute in.
    pub precision: &'static str,
    /// Where it was run: `CPU`, or the GPU's name.
    pub device: String,
    /// Whether everything is within its tolerance.
    pub ok: bool,
    /// All comparisons, in order of sizes.
    pub runs: Vec<RunReport>,
    /// Values within the model, the greatest errors first.
    pub layers: Vec<LayerReport>,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

/// One comparison with the reference.
#[derive(Clone, Debug, Serialize)]
pub struct RunReport {
    /// What was compared.
    pub subject: Subject,
    /// Sizes of dims.
    pub sizes: BTreeMap<String, i64>,
    /// Whether all outputs are within the tolerance.
    pub ok: bool,
    /// Outputs in the order of the model; none where the run failed.
    pub outputs: Vec<OutputReport>,
    /// Why the run failed.
    pub failure: Option<String>,
}

/// An output beside its reference.
#[derive(Clone, Debug, Serialize)]
pub struct OutputReport {
    /// Its name in the model.
    pub name: String,
    /// `‖Δ‖ / ‖reference‖`; for integers and booleans the share of elements that differ.
    pub error: f64,
    /// The greatest error of a row along the last axis, against the larger of its own and the mean
    /// row's norm.
    pub row_error: f64,
    /// The greatest `error` that passes; `row_error` may be eight times as large.
    pub tolerance: f64,
    /// Whether it passes.
    pub ok: bool,
}

/// A value within the model beside its reference.
#[derive(Clone, Debug, Serialize)]
pub struct LayerReport {
    /// What it was computed by.
    pub subject: Subject,
    /// The source model's node that it is a result of.
    pub node: String,
    /// The operator of the compiled graph that made it.
    pub op: &'static str,
    /// Its name in the model.
    pub value: String,
    /// The type that it was kept in.
    pub stored: String,
    /// The sizes at which the error was greatest.
    pub sizes: BTreeMap<String, i64>,
    /// Extents at these sizes.
    pub shape: Vec<usize>,
    /// `‖Δ‖ / ‖reference‖` there; for integers and booleans the share of elements that differ.
    pub error: f64,
}
