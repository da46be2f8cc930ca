//! Why a model could not be verified; results that differ are no error of this kind.

use aot_ir::dim::BindError;
use aot_ir::exec::ExecError;
use aot_ir::{DimError, GuardError};

use crate::pipeline::ModelError;

/// Why a model could not be verified.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// A name that no dim of the model has.
    #[error("the model has no dim `{name}`{}", near.as_ref().map(|n| format!("; did you mean `{n}`?")).unwrap_or_default())]
    NoDim {
        /// The name given.
        name: String,
        /// A name that is like it.
        near: Option<String>,
    },
    /// A size that a dim can't have.
    #[error(transparent)]
    Size(#[from] BindError),
    /// Sizes for which the model has no meaning.
    #[error("the model has no meaning at the sizes tried: {0}; choose others with `--dims`")]
    Guard(#[from] GuardError),
    /// A size expression has no value.
    #[error(transparent)]
    Dim(#[from] DimError),
    /// An input or output that a file of arrays doesn't have.
    #[error("the file has no array `{0}`")]
    NoArray(String),
    /// An output that is expected with another type or shape.
    #[error("the expected `{name}` is {found}, where the model gives {given}")]
    Expected {
        /// The output.
        name: String,
        /// Type and shape in the file.
        found: String,
        /// Type and shape of the model's output.
        given: String,
    },
    /// The reference can't be run.
    #[error("failed to run the imported graph: {0}")]
    Reference(#[from] ExecError),
    /// The model can't be imported or planned.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The artifacts can't be loaded.
    #[error(transparent)]
    Device(Box<aot_runtime::Error>),
}

impl From<aot_runtime::Error> for VerifyError {
    fn from(error: aot_runtime::Error) -> Self {
        Self::Device(Box::new(error))
    }
}
