//! `cargo aot run`

use std::path::Path;

use aot_runtime::loaded::{Loaded, Parts, WeightsSource};
use aot_runtime::{Device, InputRef, OutputRef};

use super::args::{DeviceChoice, RunArgs};
use super::error::CliError;
use super::models::select;
use super::project::Project;
use super::shell::Shell;
use crate::npy::{Array, read_npz, write_npz};

/// Runs a model that was built, once, with arrays of a file.
pub(super) fn run(args: &RunArgs, project: &Project, shell: &Shell) -> Result<(), CliError> {
    let manifest = project.manifest()?;
    let model = select(&manifest, std::slice::from_ref(&args.model))?[0];
    let artifacts = manifest.crate_dir().join("artifacts");
    let module = &model.rust.module;
    let package = &manifest.package.name.get_ref().package;
    let read =
        |path: &Path| std::fs::read(path).map_err(|_| CliError::NotBuilt(args.model.clone()));
    let file = read(&artifacts.join(format!("{module}.model")))?;
    let weights = read(&artifacts.join(format!("{package}-{module}.weights")))?;
    let weights = aot_ir::Bytes::from(weights);
    let targets = crate::pipeline::targets(&manifest.target);
    let images = targets
        .iter()
        .map(|(arch, ptx)| if *ptx { "ptx".to_owned() } else { arch.to_string() })
        .map(|feature| read(&artifacts.join(format!("{module}.{feature}"))))
        .collect::<Result<Vec<_>, _>>()?;
    let images: Vec<&[u8]> = images.iter().map(Vec::as_slice).collect();
    let device = match args.device {
        DeviceChoice::Best => Device::best()?,
        DeviceChoice::Cuda => Device::cuda(0)?,
        DeviceChoice::Cpu => Device::cpu()?,
    };
    let parts = Parts {
        model: &file,
        images: &images,
        weights: WeightsSource::Bytes(&weights),
        lines: &[],
    };
    let loaded = Loaded::load(&device, &parts)?;
    let arrays = read_npz(&args.input)?;
    let outputs = outputs(&loaded, &arrays)?;
    shell.status("Ran", format_args!("{} on {}", args.model, device.name()));
    for (name, array) in &outputs {
        shell.print(&format!("{name}: {}{:?}\n", array.dtype, array.shape));
    }
    if let Some(path) = &args.output {
        write_npz(path, &outputs)?;
        shell.status("Saved", path.display());
    }
    Ok(())
}

fn outputs(loaded: &Loaded, arrays: &[(String, Array)]) -> Result<Vec<(String, Array)>, CliError> {
    let signature = loaded.signature();
    let mut inputs = Vec::new();
    for port in &signature.inputs {
        let found = arrays.iter().find(|(name, _)| *name == port.name);
        let (_, array) = found.ok_or_else(|| CliError::NoArray(port.name.clone()))?;
        inputs.push(InputRef::host(array.dtype, &array.shape, &array.bytes)?);
    }
    let sizes = loaded.bind(&inputs)?;
    let mut bytes = vec![Vec::new(); signature.outputs.len()];
    let ports = || signature.outputs.iter().zip(sizes.outputs());
    let mut buffers: Vec<OutputRef<'_>> = ports()
        .zip(&mut bytes)
        .map(|((port, shape), bytes)| OutputRef::bytes(port.dtype, shape, bytes))
        .collect();
    loaded.run(&sizes, None, &inputs, &mut buffers)?;
    drop(buffers);
    Ok(ports()
        .zip(bytes)
        .map(|((port, shape), bytes)| {
            let array = Array { dtype: port.dtype, shape: shape.clone(), bytes };
            (port.name.clone(), array)
        })
        .collect())
}
