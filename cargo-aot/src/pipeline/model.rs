//! All steps of one model that need no compiler.

use std::path::PathBuf;

use aot_ir::Graph;

use super::error::ModelError;
use super::import::import_model;
use super::options::lower_options;
use super::plan::{Planned, assemble_model, lower_model};
use crate::manifest::{Manifest, Model};
use crate::passes;

/// A model's graph, ready for lowering.
#[derive(Debug)]
pub struct Prepared {
    /// As the file has it.
    pub imported: Graph,
    /// After the passes.
    pub graph: Graph,
    /// The input that was added for random numbers to come from, if the model draws any.
    pub seed: Option<String>,
    /// What is odd about the file.
    pub warnings: Vec<String>,
    /// Of outputs whose elements are places in a list of texts, the name and the texts.
    pub labels: Vec<(String, Vec<String>)>,
    /// The file's own key-value metadata.
    pub metadata: Vec<(String, String)>,
    /// Every file that was read, the model itself first.
    pub sources: Vec<PathBuf>,
}

/// Imports `model` and applies the passes.
pub fn prepare(manifest: &Manifest, model: &Model) -> Result<Prepared, ModelError> {
    let imported = import_model(manifest, model)?;
    let graph = passes::run(&imported.graph, &passes::Options::default())?;
    Ok(Prepared {
        imported: imported.graph,
        graph,
        seed: imported.seed,
        warnings: imported.warnings,
        labels: imported.labels,
        metadata: imported.metadata.into_iter().collect(),
        sources: imported.sources,
    })
}

/// Plans a prepared model for all of the manifest's targets and hands the plan to `then`.
pub fn with_plan<T>(
    manifest: &Manifest,
    model: &Model,
    prepared: &Prepared,
    then: impl FnOnce(&Planned<'_>) -> T,
) -> Result<T, ModelError> {
    with_plan_of(manifest, model, &prepared.graph, then)
}

/// The same of a model whose graph is given.
pub fn with_plan_of<T>(
    manifest: &Manifest,
    model: &Model,
    graph: &Graph,
    then: impl FnOnce(&Planned<'_>) -> T,
) -> Result<T, ModelError> {
    let options = lower_options(model);
    let plan = lower_model(graph, &options)?;
    Ok(then(&assemble_model(plan, model, &manifest.target)?))
}
