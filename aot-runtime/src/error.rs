//! What can go wrong.

use std::sync::Arc;

use aot_ir::DType;
use aot_ir::dim::{BindError, DimError};

use crate::Fault;

/// The result of everything fallible here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a model could not be loaded or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An input's shape does not fit the model, or a size that the run computes is outside its range.
    #[error("{source}{}", at_line(*.line))]
    Shape {
        /// What does not fit.
        source: BindError,
        /// The line of Aot.toml that gives the dim its range.
        line: Option<u32>,
    },
    /// Sizes for which the model has no meaning: two shapes that a node needs to be equal are not.
    #[error("node `{node}` needs {lhs} to equal {rhs}, but they are {left} and {right}")]
    Guard {
        /// The node of the source model.
        node: String,
        /// One side, as an expression of dims.
        lhs: String,
        /// The other side.
        rhs: String,
        /// What the one is.
        left: i64,
        /// What the other is.
        right: i64,
    },
    /// A number of elements that a shape does not have.
    #[error("{found} elements do not fill shape {shape:?}")]
    Elements {
        /// How many were given.
        found: usize,
        /// The shape.
        shape: Vec<usize>,
    },
    /// A buffer for an output has another shape.
    #[error(
        "the buffer for output `{output}` has shape {found:?}, where the run gives {expected:?}"
    )]
    OutputShape {
        /// The output.
        output: String,
        /// The buffer's shape.
        found: Vec<usize>,
        /// The result's shape.
        expected: Vec<usize>,
    },
    /// A tensor has another element type.
    #[error("`{name}` is {found}, where the model has {expected}")]
    DType {
        /// The tensor.
        name: String,
        /// What was given.
        found: DType,
        /// What the model says.
        expected: DType,
    },
    /// Another number of inputs or outputs.
    #[error("{found} {what} given, where the model has {expected}")]
    Count {
        /// `inputs` or `outputs`.
        what: &'static str,
        /// How many were given.
        found: usize,
        /// How many the model has.
        expected: usize,
    },
    /// A session of a model that keeps nothing between runs.
    #[error("`{model}` keeps no state: its table in Aot.toml has no `state`")]
    NoState {
        /// The model.
        model: String,
    },
    /// A run's sizes were found for other inputs, or by another model.
    #[error("the inputs of a run of `{model}` are not those that its sizes were bound for")]
    OtherSizes {
        /// The model's name in the manifest.
        model: String,
    },
    /// The state of a session was changed between the two halves of a run.
    #[error("another run or a reset changed the session's state meanwhile")]
    StateChanged,
    /// Bytes that a session can't be restored from.
    #[error("the state can't be restored: {reason}")]
    SavedState {
        /// What is wrong with them.
        reason: String,
    },
    /// A tensor or stream belongs to another device.
    #[error("`{name}` is on {found}, but the model runs on {expected}")]
    OtherDevice {
        /// The tensor or stream.
        name: String,
        /// Its device.
        found: String,
        /// The model's device.
        expected: String,
    },
    /// A size that can't be computed.
    #[error(transparent)]
    Size(#[from] DimError),
    /// An artifact can't be read.
    #[error("{artifact}: {reason}; run `cargo aot build`")]
    Artifact {
        /// Which one.
        artifact: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The weights file is not where it is looked for.
    #[error("no weights file `{name}` in {}; copy it next to the executable or set AOT_WEIGHTS_DIR", .tried.join(", "))]
    WeightsMissing {
        /// Its name.
        name: String,
        /// The folders that were searched.
        tried: Vec<String>,
    },
    /// A file can't be read.
    #[error("can't read {path}")]
    Io {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// There is no NVIDIA driver on this machine, or it is unusable.
    #[error("no CUDA device: {0}")]
    NoCuda(String),
    /// This device asks for a cargo feature of aot-runtime that is off.
    #[error("aot-runtime was built without its feature `{0}`")]
    FeatureOff(&'static str),
    /// The driver is older than what the artifact's kernels need.
    #[error(
        "`{model}` needs a driver for CUDA {needed}, but this machine's is for CUDA {found}; update the NVIDIA driver, or build with `cuda = \"12\"` in [toolchain]"
    )]
    OldDriver {
        /// The model.
        model: String,
        /// `13.0`
        needed: String,
        /// `12.4`
        found: String,
    },
    /// No kernel image serves this GPU.
    #[error(
        "`{model}` has kernels for {has}, but this GPU, {gpu}, is {capability}; add it to `gpus` in Aot.toml and run `cargo aot build`"
    )]
    NoImage {
        /// The model.
        model: String,
        /// The artifact's architectures.
        has: String,
        /// The GPU's name.
        gpu: String,
        /// `sm_90`
        capability: String,
    },
    /// An environment variable that overrides something has a value that means nothing.
    #[error("{variable} is `{value}`; it takes {takes}")]
    Environment {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// The values that it takes.
        takes: &'static str,
    },
    /// The GPU has too little memory free.
    #[error(
        "out of GPU memory: {what} needs {needed} bytes, and {free} of {total} bytes are free on {gpu}"
    )]
    OutOfMemory {
        /// What it was for.
        what: String,
        /// Bytes asked for.
        needed: u64,
        /// Bytes free.
        free: u64,
        /// Bytes of the GPU.
        total: u64,
        /// The GPU.
        gpu: String,
    },
    /// The host has too little memory.
    #[error("out of memory: the host has no {needed} bytes for tensors")]
    OutOfHostMemory {
        /// Bytes asked for.
        needed: u64,
    },
    /// The GPU had a fault, and everything on it is lost.
    #[error("{0}")]
    Fault(Arc<Fault>),
    /// A call of the driver failed.
    #[error("{call} failed with {name}{}", during(.doing))]
    Driver {
        /// The function.
        call: &'static str,
        /// The driver's name of the error.
        name: String,
        /// What it was for; may be empty.
        doing: String,
    },
    /// The reference executor failed, or a step that the host does in a run on a GPU; a size or a launch is
    /// beyond what a GPU takes; or a trace of runs can't be written.
    #[error("{0}")]
    Execution(String),
    /// Another thread panicked in the middle of a change.
    #[error("a thread panicked while it used {0}")]
    Poisoned(&'static str),
}

fn at_line(line: Option<u32>) -> String {
    line.map_or_else(String::new, |line| format!(" (Aot.toml line {line})"))
}

fn during(doing: &str) -> String {
    if doing.is_empty() { String::new() } else { format!(" while {doing}") }
}

impl Error {
    /// An artifact that can't be read.
    pub(crate) fn artifact(artifact: impl Into<String>, reason: impl ToString) -> Self {
        Self::Artifact { artifact: artifact.into(), reason: reason.to_string() }
    }
}
