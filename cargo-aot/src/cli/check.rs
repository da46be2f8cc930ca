//! `cargo aot check`

use std::time::Instant;

use super::args::{CheckArgs, Global};
use super::clean::human_bytes;
use super::error::CliError;
use super::models::{for_each, select};
use super::project::Project;
use super::shell::{MessageFormat, Shell};
use crate::manifest::{Manifest, Model};
use crate::pipeline::{ModelError, ModelSummary, prepare, with_plan};

/// Imports and plans models, and compiles nothing.
pub(super) fn run(
    args: &CheckArgs,
    project: &Project,
    global: &Global,
    shell: &Shell,
) -> Result<(), CliError> {
    let started = Instant::now();
    let manifest = project.manifest()?;
    let models = select(&manifest, &args.models)?;
    let summaries = for_each(&manifest, &models, global.jobs, |model| summarize(&manifest, model))?;
    for summary in &summaries {
        for warning in &summary.warnings {
            shell.warn(format_args!("model `{}`: {warning}", summary.name));
        }
        if shell.format() == MessageFormat::Json {
            shell.message(&serde_json::json!({ "reason": "model", "model": summary }));
        } else {
            shell.status(
                "Checked",
                format_args!(
                    "{}: {} launches of {} kernels, {} of memory{}",
                    summary.name,
                    summary.launches,
                    summary.targets.iter().map(|t| t.distinct_kernels).max().unwrap_or(0),
                    human_bytes(summary.memory.total()),
                    from_data(summary),
                ),
            );
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    shell.status("Finished", format_args!("{} models in {seconds:.2}s", summaries.len()));
    Ok(())
}

/// The sizes that data gives, to be put behind what else is said of a model.
fn from_data(summary: &ModelSummary) -> String {
    let sizes = summary.dims.iter().filter(|dim| dim.from_data);
    let sizes = sizes.map(|dim| format!("{} in {}..={}", dim.name, dim.min, dim.max));
    let sizes: Vec<String> = sizes.collect();
    if sizes.is_empty() { String::new() } else { format!("; data gives {}", sizes.join(", ")) }
}

/// What is planned for `model`.
pub(super) fn summarize(manifest: &Manifest, model: &Model) -> Result<ModelSummary, ModelError> {
    let prepared = prepare(manifest, model)?;
    with_plan(manifest, model, &prepared, |planned| {
        ModelSummary::new(manifest, model, planned, prepared.warnings.clone())
    })
}
