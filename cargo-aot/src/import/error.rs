//! Why a model can't be imported.

use std::path::PathBuf;

/// A dim without a size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unbound {
    /// Its name.
    pub dim: String,
    /// An input that has it.
    pub input: String,
    /// The axis of that input.
    pub axis: usize,
}

/// A node that can't be imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The node's name, or its first output's when it has none.
    pub node: String,
    /// The operator.
    pub operator: String,
    /// The operator's domain; empty for ONNX's own.
    pub domain: String,
    /// The version of the operator set that the model uses.
    pub opset: i64,
    /// What about it is not supported, and what to do.
    pub reason: String,
}

/// Why a model can't be imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A file can't be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The file is no ONNX model.
    #[error("{} is not a whole ONNX model: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The model is older than what can be read.
    #[error("{} uses operator set {found}; version {least} and later are supported: convert it with onnx.version_converter", path.display())]
    Opset {
        /// The file.
        path: PathBuf,
        /// The version that it uses.
        found: i64,
        /// The least version supported.
        least: i64,
    },
    /// A tensor stored in the model is wrong.
    #[error("{}: tensor `{tensor}`: {reason}", path.display())]
    Tensor {
        /// The model.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// What is wrong.
        reason: String,
    },
    /// Nodes need each other's results.
    #[error("{}: the nodes {} form a cycle", path.display(), list(nodes))]
    Cycle {
        /// The model.
        path: PathBuf,
        /// Some of the nodes on the cycle.
        nodes: Vec<String>,
    },
    /// Nodes or outputs read what nothing makes.
    #[error("{}: {}", path.display(), missing.iter().map(|(reader, value)| format!("{reader} reads `{value}`, which nothing makes")).collect::<Vec<_>>().join("; "))]
    Undefined {
        /// The model.
        path: PathBuf,
        /// Reader and value.
        missing: Vec<(String, String)>,
    },
    /// Dims of inputs have no size.
    #[error("{}", unbound_text(dims))]
    UnboundDims {
        /// All of them.
        dims: Vec<Unbound>,
    },
    /// Sizes were given for dims, or axes for inputs, that the model does not have.
    #[error("{}", unknown_text(what, names, known))]
    Unknown {
        /// `dim` or `input`.
        what: &'static str,
        /// The names that the model does not have.
        names: Vec<String>,
        /// The names that it has.
        known: Vec<String>,
    },
    /// What was said of an input does not fit the model.
    #[error("input `{input}`: {reason}")]
    Input {
        /// The input.
        input: String,
        /// What does not fit.
        reason: String,
    },
    /// Operators, or uses of them, that are not supported.
    #[error("{}: {} not supported:\n{}", path.display(), count(nodes.len()), nodes.iter().map(line).collect::<Vec<_>>().join("\n"))]
    Unsupported {
        /// The model.
        path: PathBuf,
        /// All of them.
        nodes: Vec<Unsupported>,
    },
    /// A node that is wrong.
    #[error("{}: node `{node}` ({operator}): {reason}", path.display())]
    Node {
        /// The model.
        path: PathBuf,
        /// The node.
        node: String,
        /// Its operator.
        operator: String,
        /// What is wrong.
        reason: String,
    },
}

fn list(names: &[String]) -> String {
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}

fn count(n: usize) -> String {
    if n == 1 { "1 node is".to_owned() } else { format!("{n} nodes are") }
}

fn line(node: &Unsupported) -> String {
    let Unsupported { node, operator, domain, opset, reason } = node;
    let domain = if domain.is_empty() { "onnx" } else { domain };
    format!("  node `{node}`: {operator} (domain {domain}, opset {opset}): {reason}")
}

fn unbound_text(dims: &[Unbound]) -> String {
    let each = dims
        .iter()
        .map(|d| format!("`{}` (axis {} of input `{}`)", d.dim, d.axis, d.input))
        .collect::<Vec<_>>();
    format!("no size is given for {}: add a range to `dims`", each.join(", "))
}

fn unknown_text(what: &str, names: &[String], known: &[String]) -> String {
    let known = if known.is_empty() { "none".to_owned() } else { list(known) };
    format!("the model has no {what} {}; it has {known}", list(names))
}
