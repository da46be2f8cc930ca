//! What an import is told and what it gives.

use aot_ir::{Constant, DType, Graph};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What a dim name of the model stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DimSpec {
    /// One size.
    Fixed(i64),
    /// The sizes `lo`, `lo + step` … up to `hi`.
    Range {
        /// Least size, at least 0.
        lo: i64,
        /// Greatest size.
        hi: i64,
        /// Distance of sizes, at least 1.
        step: i64,
    },
}

/// What one axis of an input is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AxisSpec {
    /// The dim of this name.
    Named(String),
    /// One size.
    Fixed(i64),
    /// What the model says.
    Keep,
}

/// How to import a model.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The graph's name.
    pub name: String,
    /// Sizes of dim names, of inputs and of what data gives.
    pub dims: BTreeMap<String, DimSpec>,
    /// The greatest size that data gives where neither shapes nor `dims` bound one. Without it, that is an error.
    pub data_most: Option<i64>,
    /// Per input, one entry an axis; overrides what the model says.
    pub inputs: BTreeMap<String, Vec<AxisSpec>>,
    /// Inputs whose value is fixed when the model is built; they are no inputs of the graph.
    pub constants: BTreeMap<String, Constant>,
    /// What is given for inputs that are sequences or optionals.
    ///
    /// The `n` tensors of a sequence `x` are the inputs `x.0` … of the graph, which the fields above
    /// name so. An optional that is not listed has an element.
    pub structures: BTreeMap<String, Structure>,
}

impl ImportOptions {
    /// Options for inputs whose axes are named, as in Aot.toml (a number is a size), and for dims that go from
    /// one size to another in steps.
    pub fn with_axes(
        name: &str,
        inputs: &[(&str, &[&str])],
        dims: &[(&str, i64, i64, i64)],
    ) -> Self {
        let axis = |text: &&str| match text.parse() {
            Ok(size) => AxisSpec::Fixed(size),
            Err(_) => AxisSpec::Named((*text).to_owned()),
        };
        let axes = |&(name, axes): &(&str, &[&str])| {
            (name.to_owned(), axes.iter().map(axis).collect::<Vec<_>>())
        };
        let range = |&(name, lo, hi, step): &(&str, i64, i64, i64)| {
            (name.to_owned(), DimSpec::Range { lo, hi, step })
        };
        Self {
            name: name.to_owned(),
            dims: dims.iter().map(range).collect(),
            inputs: inputs.iter().map(axes).collect(),
            ..Self::default()
        }
    }
}

/// What is given for an input that is no plain tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    /// An optional without element.
    Absent,
    /// A sequence of this many tensors.
    Sequence(usize),
}

/// What an input or output is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Form {
    /// It may have no value.
    pub optional: bool,
    /// It is a sequence of tensors.
    pub sequence: bool,
}

/// An imported model.
#[derive(Debug)]
pub struct Imported {
    /// The graph.
    pub graph: Graph,
    /// What is odd about the model but does not keep it from working.
    pub warnings: Vec<String>,
    /// The input that was added for random numbers to come from, if the model draws any.
    pub seed: Option<String>,
    /// Of every output whose elements are places in a list of texts, its name and the texts.
    pub labels: Vec<(String, Vec<String>)>,
    /// The model's own key-value metadata.
    pub metadata: BTreeMap<String, String>,
    /// Every file that was read, the model itself first.
    pub sources: Vec<PathBuf>,
}

/// An operator that can be imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    /// Its domain; empty for ONNX's own.
    pub domain: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The first versions of the operator set that its rules are for, ascending.
    pub since: Vec<i64>,
    /// The latest version that they are for.
    pub until: i64,
}

/// A dim of an input or output, before sizes are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DimInfo {
    /// One size.
    Fixed(i64),
    /// A name from the model.
    Named(String),
    /// An expression over names.
    Expression {
        /// As the model writes it.
        text: String,
        /// The names in it.
        names: Vec<String>,
    },
    /// Without name in the model; this one is given to it.
    Unnamed(String),
}

impl DimInfo {
    /// The names that need a size.
    pub fn names(&self) -> &[String] {
        match self {
            Self::Fixed(_) => &[],
            Self::Named(name) | Self::Unnamed(name) => std::slice::from_ref(name),
            Self::Expression { names, .. } => names,
        }
    }
}

/// A model's input or output.
#[derive(Clone, Debug)]
pub struct TensorInfo {
    /// Its name.
    pub name: String,
    /// Whether it is a sequence or optional; type and dims are those of the tensors in it.
    pub form: Form,
    /// Its element type; `None` for what is no tensor of a supported type.
    pub dtype: Option<DType>,
    /// Its dims; `None` when the model gives no rank.
    pub dims: Option<Vec<DimInfo>>,
}

/// A model's interface.
#[derive(Clone, Debug)]
pub struct Description {
    /// Inputs, without those that have a default value.
    pub inputs: Vec<TensorInfo>,
    /// Outputs, with the shapes that the model declares.
    pub outputs: Vec<TensorInfo>,
    /// Versions of operator sets by domain (`""` is ONNX's own).
    pub opsets: Vec<(String, i64)>,
    /// Operators of the main graph, each once, in the order in which nodes use them; those of
    /// other domains than ONNX's own as `domain.Name`.
    pub operators: Vec<String>,
    /// What wrote the file.
    pub producer: String,
    /// The model's own key-value metadata.
    pub metadata: BTreeMap<String, String>,
}
