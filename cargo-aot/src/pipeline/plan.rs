//! Lowering of a model of the manifest.

use aot_ir::Graph;

use super::error::ModelError;
use super::options::{bucket_bounds, targets};
use crate::lower::plan::Plan;
use crate::lower::program::{Assembled, assemble};
use crate::lower::{LowerOptions, lower};
use crate::manifest::{Model, Target};

/// A plan, and the program and kernels made of it.
#[derive(Debug)]
pub struct Planned<'g> {
    /// Groups and buffers.
    pub plan: Plan<'g>,
    /// The program with its kernels.
    pub assembled: Assembled,
}

/// The groups of `graph`.
pub fn lower_model<'g>(
    graph: &'g Graph,
    options: &'g LowerOptions,
) -> Result<Plan<'g>, ModelError> {
    Ok(lower(graph, options)?)
}

/// The program of `plan`, with kernels for all of `target`.
pub fn assemble_model<'g>(
    plan: Plan<'g>,
    model: &Model,
    target: &Target,
) -> Result<Planned<'g>, ModelError> {
    let bounds = bucket_bounds(model, &plan.graph.symbols);
    let assembled = assemble(
        &plan,
        model.name.get_ref(),
        &targets(target),
        &bounds,
        &aot_kernels::kernels_for,
    )?;
    Ok(Planned { plan, assembled })
}
