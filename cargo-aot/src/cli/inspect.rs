//! `cargo aot inspect`

use super::args::{Global, InspectArgs};
use super::check::summarize;
use super::error::CliError;
use super::models::{for_each, select};
use super::project::Project;
use super::shell::{MessageFormat, Shell};
use crate::build::cubin::Usage;
use crate::lower::program::KernelUnit;
use crate::manifest::{Manifest, Model};
use crate::pipeline::{Artifacts, ModelError, kernel_usage, prepare, with_plan};

/// Prints what is planned for models, or the text of one kernel.
pub(super) fn run(
    args: &InspectArgs,
    project: &Project,
    global: &Global,
    shell: &Shell,
) -> Result<(), CliError> {
    let manifest = project.manifest()?;
    let models = select(&manifest, &args.models)?;
    if let Some(name) = &args.kernel {
        return kernel(name, &manifest, &models, global, shell);
    }
    let summaries = for_each(&manifest, &models, global.jobs, |model| {
        let mut summary = summarize(&manifest, model)?;
        // Before the first build there is nothing to add.
        summary.add_resources(&Artifacts::read_images(&manifest, model).unwrap_or_default());
        Ok(summary)
    })?;
    if args.json || shell.format() == MessageFormat::Json {
        shell.message(&serde_json::json!({ "models": summaries }));
    } else {
        let texts: Vec<_> = summaries.iter().map(ToString::to_string).collect();
        shell.print(&texts.join("\n"));
    }
    Ok(())
}

/// Prints the kernels called `name`, or whose key begins with it.
fn kernel(
    name: &str,
    manifest: &Manifest,
    models: &[&Model],
    global: &Global,
    shell: &Shell,
) -> Result<(), CliError> {
    let units: Vec<(KernelUnit, Option<Usage>)> =
        for_each(manifest, models, global.jobs, |model| units(manifest, model))?
            .into_iter()
            .flatten()
            .collect();
    let mut shown: Vec<[u8; 32]> = Vec::new();
    for (unit, _) in &units {
        let key: String = unit.key.iter().map(|byte| format!("{byte:02x}")).collect();
        let is_it = unit.kernel.entry == name || (name.len() >= 8 && key.starts_with(name));
        if !is_it || shown.contains(&unit.key) {
            continue;
        }
        shown.push(unit.key);
        let mut archs: Vec<String> = Vec::new();
        for (other, usage) in units.iter().filter(|(other, _)| other.key == unit.key) {
            let line = target_line(other, usage.as_ref());
            if !archs.contains(&line) {
                archs.push(line);
            }
        }
        shell.print(&format!(
            "// kernel {} ({})\n{}// schedule: {}\n// computes: {}\n{}\n",
            unit.kernel.entry,
            &key[..16],
            archs.concat(),
            unit.kernel.schedule,
            unit.nodes.join(", "),
            unit.kernel.source,
        ));
    }
    if shown.is_empty() {
        let names = units.iter().map(|(unit, _)| unit.kernel.entry.as_str());
        let near = crate::manifest::nearest(name, names).map(str::to_owned);
        return Err(CliError::NoKernel { name: name.to_owned(), near });
    }
    Ok(())
}

/// A kernel's architecture and, where it is built, what it takes there.
fn target_line(unit: &KernelUnit, usage: Option<&Usage>) -> String {
    let usage = usage.map(|usage| {
        format!(
            ": {} registers, {} B of stack, {} B of shared memory",
            usage.registers,
            usage.stack,
            usage.static_shared + unit.kernel.shared
        )
    });
    let ptx = if unit.ptx { " (PTX)" } else { "" };
    format!("// for {}{ptx}{}\n", unit.arch, usage.unwrap_or_default())
}

/// The kernels of a model, and what machine code says of those that are built.
fn units(
    manifest: &Manifest,
    model: &Model,
) -> Result<Vec<(KernelUnit, Option<Usage>)>, ModelError> {
    let prepared = prepare(manifest, model)?;
    let images = Artifacts::read_images(manifest, model).unwrap_or_default();
    with_plan(manifest, model, &prepared, |planned| {
        let with_usage = |unit: &KernelUnit| {
            let file = images.iter().find(|(target, _)| *target == (unit.arch, unit.ptx));
            let usage = file.and_then(|(_, b)| kernel_usage(b, &unit.key, &unit.kernel.entry));
            (unit.clone(), usage)
        };
        planned.assembled.kernels.iter().map(with_usage).collect()
    })
}
