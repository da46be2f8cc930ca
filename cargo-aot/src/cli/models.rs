//! Work on several models at once.

use rayon::prelude::*;

use super::error::CliError;
use crate::manifest::{Manifest, Model, nearest};
use crate::pipeline::ModelError;

/// Bytes of stack of a thread: models nest deeply.
const STACK: usize = 32 << 20;

/// The models called `names`; all of them when there are no names.
pub(super) fn select<'m>(
    manifest: &'m Manifest,
    names: &[String],
) -> Result<Vec<&'m Model>, CliError> {
    if names.is_empty() {
        return Ok(manifest.models.iter().collect());
    }
    let find = |name: &String| {
        let found = manifest.models.iter().find(|model| model.name.get_ref() == name);
        found.ok_or_else(|| {
            let all = manifest.models.iter().map(|model| model.name.get_ref().as_str());
            CliError::NoModel { name: name.clone(), near: nearest(name, all).map(str::to_owned) }
        })
    };
    names.iter().map(find).collect()
}

/// Models that failed, and why.
pub(super) type Failed = Vec<(String, ModelError)>;

/// Does `work` for each model, in parallel. The results are in order; all errors are reported.
pub(super) fn for_each<'m, T: Send>(
    manifest: &Manifest,
    models: &[&'m Model],
    jobs: Option<usize>,
    work: impl Fn(&'m Model) -> Result<T, ModelError> + Sync,
) -> Result<Vec<T>, CliError> {
    let (done, failed) = try_each(models, jobs, work)?;
    if failed.is_empty() {
        Ok(done)
    } else {
        Err(CliError::Models { file: manifest.file.clone(), failed })
    }
}

/// The same, with the models that failed beside the results of the others.
pub(super) fn try_each<'m, T: Send>(
    models: &[&'m Model],
    jobs: Option<usize>,
    work: impl Fn(&'m Model) -> Result<T, ModelError> + Sync,
) -> Result<(Vec<T>, Failed), CliError> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs.unwrap_or(0))
        .stack_size(STACK)
        .thread_name(|index| format!("model-{index}"))
        .build()
        .map_err(|error| CliError::Threads(error.to_string()))?;
    let results: Vec<_> = pool.install(|| {
        models.par_iter().map(|model| (model.name.get_ref().clone(), work(model))).collect()
    });
    let mut done = Vec::new();
    let mut failed = Vec::new();
    for (name, result) in results {
        match result {
            Ok(value) => done.push(value),
            Err(error) => failed.push((name, error)),
        }
    }
    Ok((done, failed))
}
