//! `cargo aot inspect`

use super::args::{Global, InspectArgs};
use super::check::summarize;
use super::error::CliError;
use super::models::{for_each, select};
use super::project::Project;
use super::shell::{MessageFormat, Shell};
use crate::lower::program::KernelUnit;
use crate::manifest::{Manifest, Model};
use crate::pipeline::{ModelError, prepare, with_plan};

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
    let summaries = for_each(&manifest, &models, global.jobs, |model| summarize(&manifest, model))?;
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
    let units: Vec<KernelUnit> =
        for_each(manifest, models, global.jobs, |model| units(manifest, model))?
            .into_iter()
            .flatten()
            .collect();
    let mut shown: Vec<[u8; 32]> = Vec::new();
    for unit in &units {
        let key: String = unit.key.iter().map(|byte| format!("{byte:02x}")).collect();
        let is_it = unit.kernel.entry == name || (name.len() >= 8 && key.starts_with(name));
        if !is_it || shown.contains(&unit.key) {
            continue;
        }
        shown.push(unit.key);
        let archs: Vec<_> = units
            .iter()
            .filter(|other| other.key == unit.key)
            .map(|other| format!("{}{}", other.arch, if other.ptx { " (PTX)" } else { "" }))
            .collect();
        shell.print(&format!(
            "// kernel {} ({}) for {}\n// schedule: {}\n// computes: {}\n{}\n",
            unit.kernel.entry,
            &key[..16],
            archs.join(", "),
            unit.kernel.schedule,
            unit.nodes.join(", "),
            unit.kernel.source,
        ));
    }
    if shown.is_empty() {
        let names = units.iter().map(|unit| unit.kernel.entry.as_str());
        let near = crate::manifest::nearest(name, names).map(str::to_owned);
        return Err(CliError::NoKernel { name: name.to_owned(), near });
    }
    Ok(())
}

fn units(manifest: &Manifest, model: &Model) -> Result<Vec<KernelUnit>, ModelError> {
    let prepared = prepare(manifest, model)?;
    with_plan(manifest, model, &prepared, |planned| planned.assembled.kernels.clone())
}
