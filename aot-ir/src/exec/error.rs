//! Errors of execution.

use crate::dim::BindError;
use crate::op::ShapeError;
use crate::{DType, DimError, GuardError, HostError};

/// Why a graph or an operator could not be executed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecError {
    /// The wrong number of inputs was given.
    #[error("the model takes {expected} inputs, found {found}")]
    InputCount {
        /// How many the graph has.
        expected: usize,
        /// How many were given.
        found: usize,
    },
    /// An input has the wrong type.
    #[error("input `{input}` is {found}, expected {expected}")]
    InputType {
        /// Name of the input.
        input: String,
        /// Type that was given.
        found: DType,
        /// Type of the graph's input.
        expected: DType,
    },
    /// Shapes of inputs do not fit.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// An equality that the model needs does not hold.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// A number of bytes or elements does not match type and shape.
    #[error("{found} {unit} do not make a tensor of {dtype} {shape:?}")]
    Size {
        /// How many there are.
        found: usize,
        /// Of what: bytes or elements.
        unit: &'static str,
        /// Element type.
        dtype: DType,
        /// Extents.
        shape: Vec<usize>,
    },
    /// A tensor has another element type than asked for.
    #[error("the tensor holds {found}, not {expected}")]
    Element {
        /// Type of the tensor.
        found: DType,
        /// Type that was asked for.
        expected: DType,
    },
    /// A tensor would be larger than memory can hold.
    #[error("a tensor of shape {0:?} is too large")]
    TooLarge(Vec<i64>),
    /// Operands do not fit the operator.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// A size expression has no value.
    #[error(transparent)]
    Dim(#[from] DimError),
    /// The host can't do what an operator asks of it.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The values of operands do not fit the operator.
    #[error("{0}")]
    Value(String),
    /// A node failed.
    #[error("node `{node}` ({op}): {error}")]
    Node {
        /// Name of the node.
        node: String,
        /// Name of the operator.
        op: &'static str,
        /// Why.
        error: Box<ExecError>,
    },
}

impl ExecError {
    pub(super) fn value(text: impl Into<String>) -> Self {
        Self::Value(text.into())
    }
}
