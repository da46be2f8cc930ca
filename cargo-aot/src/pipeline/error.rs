//! What can go wrong with a model.

use super::import::ManifestProblems;
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
    /// The graph can't be lowered to kernels.
    #[error(transparent)]
    Lower(#[from] LowerError),
}
