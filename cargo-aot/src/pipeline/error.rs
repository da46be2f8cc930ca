//! What can go wrong with a model.

use super::import::ManifestProblems;
use crate::build::session::SessionError;
use crate::build::units::UnitError;
use crate::emit::EmitError;
use crate::import::ImportError;
use crate::lower::LowerError;

/// Why a model can't be built.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The manifest doesn't fit the model's file.
    #[error("the manifest doesn't fit the model's file")]
    Manifest(ManifestProblems),
    /// The file can't be imported.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// A pass made a graph that is none.
    #[error("failed to simplify the graph; this is a bug in cargo-aot")]
    Pass(#[from] aot_ir::GraphError),
    /// A file of the model can't be read.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// An artifact can't be kept or read back.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// An artifact can't be kept or read back.
    #[error("failed to use the cache")]
    Io(#[from] std::io::Error),
    /// An artifact of the run time can't be written or read.
    #[error(transparent)]
    Artifact(Box<aot_runtime::Error>),
    /// The cached weights are not those of the graph.
    #[error("the cached weights don't hold `{0}`; `cargo aot clean` removes them")]
    Weights(String),
    /// The model can't have a Rust type.
    #[error(transparent)]
    Emit(#[from] EmitError),
    /// The graph can't be lowered to kernels.
    #[error(transparent)]
    Lower(#[from] LowerError),
}

impl From<aot_runtime::Error> for ModelError {
    fn from(error: aot_runtime::Error) -> Self {
        Self::Artifact(Box::new(error))
    }
}
