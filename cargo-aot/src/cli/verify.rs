//! `cargo aot verify`

use std::path::Path;

use super::args::VerifyArgs;
use super::build::key;
use super::error::CliError;
use super::exit::Exit;
use super::models::select;
use super::project::Project;
use super::runtime_dependency::RuntimeDependency;
use super::shell::{MessageFormat, Shell};
use crate::build::guard::Verdict;
use crate::build::session::check;
use crate::manifest::{Manifest, Model};
use crate::npy::{Array, read_npz};
use crate::pipeline::Artifacts;
use crate::verify::{ModelReport, Request, verify};

/// Compares built models with their references; fails if one differs.
pub(super) fn run(args: &VerifyArgs, project: &Project, shell: &Shell) -> Result<Exit, CliError> {
    let manifest = project.manifest()?;
    let models = select(&manifest, &args.models)?;
    if let (Some(_), [_, _, ..]) = (&args.input, models.as_slice()) {
        return Err(CliError::OneModel);
    }
    if let Verdict::Stale(_) = check(&project.artifacts(), key(project, &RuntimeDependency::find()))
    {
        shell.warn("something has changed since the models were built: run `cargo aot build`");
    }
    let read = |path: &Option<_>| path.as_deref().map(|path: &Path| read_npz(path)).transpose();
    let (input, expected) = (read(&args.input)?, read(&args.expect)?);
    let arrays = Arrays { input: input.as_deref(), expected: expected.as_deref() };
    let mut reports = Vec::new();
    let mut failed = None;
    for model in models {
        match one(args, &manifest, model, &arrays, shell) {
            Ok(report) => reports.push(report),
            Err(error) => {
                shell.error_in(&format!("model `{}`", model.name.get_ref()), &error);
                failed.get_or_insert(error.exit());
            }
        }
    }
    if args.json || shell.format() == MessageFormat::Json {
        shell.message(&serde_json::json!({ "models": reports }));
    } else {
        let texts: Vec<_> = reports.iter().map(ToString::to_string).collect();
        shell.print(&texts.join("\n"));
    }
    let wrong: Vec<_> = reports.iter().filter(|r| !r.ok).map(|r| r.name.clone()).collect();
    match (failed, wrong.is_empty()) {
        (Some(exit), _) => Ok(exit),
        (None, true) => Ok(Exit::Success),
        (None, false) => Err(CliError::Different(wrong)),
    }
}

/// Arrays of the user.
struct Arrays<'a> {
    input: Option<&'a [(String, Array)]>,
    expected: Option<&'a [(String, Array)]>,
}

fn one(
    args: &VerifyArgs,
    manifest: &Manifest,
    model: &Model,
    arrays: &Arrays<'_>,
    shell: &Shell,
) -> Result<ModelReport, CliError> {
    let name = model.name.get_ref();
    let artifacts =
        Artifacts::read(manifest, model).map_err(|_| CliError::NotBuilt(name.clone()))?;
    let device = args.device.open()?;
    let sizes: Vec<_> = args.dims.iter().map(|sizes| sizes.0.clone()).collect();
    let request = Request {
        artifacts: &artifacts,
        device: &device,
        input: arrays.input,
        expected: arrays.expected,
        sizes: &sizes,
        tolerance: args.tolerance,
        layers: args.layers,
    };
    let say = |what: &str| shell.status("Verifying", format_args!("{name} at {what}"));
    Ok(verify(manifest, model, &request, &say)?)
}
