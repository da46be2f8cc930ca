//! `cargo aot run`

use aot_runtime::InputRef;
use aot_runtime::loaded::Loaded;

use super::args::RunArgs;
use super::error::CliError;
use super::models::select;
use super::project::Project;
use super::shell::Shell;
use super::write::write_if_changed;
use crate::npy::{Array, read_npz, write_npz};
use crate::pipeline::{Artifacts, run_once};

/// Runs a model that was built, once, with arrays of a file.
pub(super) fn run(args: &RunArgs, project: &Project, shell: &Shell) -> Result<(), CliError> {
    let manifest = project.manifest()?;
    let model = select(&manifest, std::slice::from_ref(&args.model))?[0];
    let artifacts =
        Artifacts::read(&manifest, model).map_err(|_| CliError::NotBuilt(args.model.clone()))?;
    let images = artifacts.image_bytes();
    let device = args.device.open()?;
    let loaded = Loaded::load(&device, &artifacts.parts(&artifacts.model, &images))?;
    let arrays = read_npz(&args.input)?;
    let inputs = inputs(&loaded, &arrays)?;
    let names = loaded.signature().outputs.iter().map(|port| port.name.clone());
    let outputs: Vec<(String, Array)> = names.zip(run_once(&loaded, &inputs)?).collect();
    shell.status("Ran", format_args!("{} on {}", args.model, device.name()));
    for (name, array) in &outputs {
        shell.print(&format!("{name}: {}{:?}\n", array.dtype, array.shape));
    }
    if let Some(path) = &args.output {
        write_npz(path, &outputs)?;
        shell.status("Saved", path.display());
    }
    if let Some(path) = &args.profile {
        let profile = loaded.profile(&inputs)?;
        shell.print(&profile.to_string());
        write_if_changed(path, &profile.trace())?;
        shell.status("Saved", path.display());
    }
    Ok(())
}

/// The model's inputs, from arrays by name.
fn inputs<'a>(
    loaded: &Loaded,
    arrays: &'a [(String, Array)],
) -> Result<Vec<InputRef<'a>>, CliError> {
    let signature = loaded.signature();
    let mut inputs = Vec::new();
    for port in &signature.inputs {
        let found = arrays.iter().find(|(name, _)| *name == port.name);
        let (_, array) = found.ok_or_else(|| CliError::NoArray(port.name.clone()))?;
        inputs.push(InputRef::host(array.dtype, &array.shape, &array.bytes)?);
    }
    Ok(inputs)
}
