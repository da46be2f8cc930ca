//! `cargo aot init`

use std::collections::BTreeSet;
use std::path::Path;

use toml_edit::{DocumentMut, Item, Table, Value};

use super::args::InitArgs;
use super::error::CliError;
use super::project::Project;
use super::runtime_dependency::RuntimeDependency;
use super::shell::Shell;
use super::stub;
use super::write::write_if_changed;
use crate::emit::render;
use crate::manifest::{PackageName, RustName, find_gpu};

const AOT_TOML: &str = include_str!("../../../templates/init/Aot.toml.j2");

/// What is compiled for when neither the user nor this machine names a GPU.
const COMMON_GPUS: [&str; 3] = ["a100", "rtx4090", "h200"];

/// Writes Aot.toml and the stub, and edits Cargo.toml. Changes nothing if any of it can't be done.
pub(super) fn run(args: &InitArgs, project: &Project, shell: &Shell) -> Result<(), CliError> {
    let name = PackageName::new(&args.name)
        .map_err(|reason| CliError::Name { name: args.name.clone(), reason })?;
    let crate_path = format!("aot/{}", name.package);
    let crate_dir = project.dir.join(&crate_path);
    for path in [project.manifest_path(), crate_dir.clone()] {
        if path.exists() {
            return Err(CliError::Exists(path));
        }
    }
    let gpus = gpus(args)?;
    let models =
        args.models.iter().map(|path| declare(path, project)).collect::<Result<Vec<_>, _>>()?;
    let runtime = RuntimeDependency::find();
    let cargo_toml = project.dir.join("Cargo.toml");
    let edited = add_dependencies(&cargo_toml, &name.package, &crate_path, &runtime)?;
    let context = minijinja::context!(
        name => &name.package,
        krate => &name.krate,
        path => &crate_path,
        gpus => gpus.iter().map(|gpu| quote(gpu)).collect::<Vec<_>>().join(", "),
        models => models.iter().map(Declared::to_value).collect::<Vec<_>>(),
    );
    let aot_toml = render(AOT_TOML, context)?;
    stub::write(&crate_dir, &name.package, &runtime)?;
    write_if_changed(&project.manifest_path(), &aot_toml)?;
    write_if_changed(&cargo_toml, &edited)?;

    shell.status("Created", project.shown(&project.manifest_path()).display());
    let shown = project.shown(&crate_dir).display().to_string();
    shell.status("Created", format_args!("{shown}, a stub until models are built"));
    shell.status("Added", format_args!("`{}` and `aot-runtime` to Cargo.toml", name.package));
    shell.note(if models.is_empty() {
        "declare a model in Aot.toml, then run `cargo aot build`"
    } else {
        "run `cargo aot check` to see whether Aot.toml says all, then `cargo aot build`"
    });
    Ok(())
}

/// A model file to declare.
#[derive(Debug)]
struct Declared {
    name: String,
    /// As TOML.
    source: String,
}

impl Declared {
    fn to_value(&self) -> minijinja::Value {
        minijinja::context!(name => &self.name, source => &self.source)
    }
}

/// A name for the model from its file's, and its path from the manifest's folder.
fn declare(path: &Path, project: &Project) -> Result<Declared, CliError> {
    let whole = project.cwd.join(path);
    if !whole.is_file() {
        return Err(CliError::NoModelFile(path.to_owned()));
    }
    let source = whole.strip_prefix(&project.dir).map_or(whole.clone(), Path::to_owned);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let pieces: String = stem.chars().map(plain).collect();
    let name = pieces.split('-').filter(|piece| !piece.is_empty()).collect::<Vec<_>>().join("-");
    let name = if RustName::new(&name).is_ok() { name } else { format!("model-{name}") };
    let name = name.trim_end_matches('-').to_owned();
    Ok(Declared { name, source: quote(&source.to_string_lossy()) })
}

fn gpus(args: &InitArgs) -> Result<Vec<String>, CliError> {
    if let Some(unknown) = args.gpus.iter().find(|gpu| find_gpu(gpu).is_none()) {
        return Err(CliError::UnknownGpu(unknown.clone()));
    }
    if !args.gpus.is_empty() {
        return Ok(args.gpus.clone());
    }
    let own = local_gpus(Path::new("/proc/driver/nvidia/gpus"));
    Ok(if own.is_empty() { COMMON_GPUS.map(str::to_owned).to_vec() } else { own })
}

/// The GPUs of this machine that we know, as Linux's driver lists them.
fn local_gpus(dir: &Path) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(entry.path().join("information")).unwrap_or_default();
        let model = text.lines().find_map(|line| line.strip_prefix("Model:")).map(str::trim);
        let Some(model) = model else { continue };
        // "NVIDIA A100-SXM4-80GB": the longest beginning that is a name.
        let words: Vec<&str> = model.split([' ', '-']).filter(|word| *word != "NVIDIA").collect();
        let name = (1..=words.len())
            .rev()
            .map(|count| words[..count].join("").to_ascii_lowercase())
            .find(|name| find_gpu(name).is_some());
        found.extend(name);
    }
    found.sort();
    found.dedup();
    found
}

/// The text of Cargo.toml with both dependencies.
fn add_dependencies(
    path: &Path,
    package: &str,
    crate_path: &str,
    runtime: &RuntimeDependency,
) -> Result<String, CliError> {
    let invalid = |reason: String| CliError::CargoManifest { path: path.to_owned(), reason };
    let text = std::fs::read_to_string(path).map_err(CliError::io("read", path))?;
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| invalid(error.message().to_owned()))?;
    let dependencies = document.entry("dependencies").or_insert(Item::Table(Table::new()));
    let Some(dependencies) = dependencies.as_table_like_mut() else {
        return Err(invalid("`dependencies` is no table".to_owned()));
    };
    if dependencies.contains_key(package) {
        return Err(CliError::DependencyExists { path: path.to_owned(), name: package.to_owned() });
    }
    let dir = path.parent().unwrap_or(Path::new(""));
    let value = |toml: &str| toml.parse::<Value>().map_err(|error| invalid(error.to_string()));
    dependencies
        .insert(package, Item::Value(value(&format!("{{ path = {} }}", quote(crate_path)))?));
    if !dependencies.contains_key("aot-runtime") {
        dependencies
            .insert("aot-runtime", Item::Value(value(&runtime.to_toml(dir, &BTreeSet::new()))?));
    }
    Ok(document.to_string())
}

fn quote(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_toml_keeps_what_it_says() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("Cargo.toml");
        let runtime = RuntimeDependency::Version("0.1.0");
        let edit = |text: &str| {
            std::fs::write(&path, text).unwrap();
            add_dependencies(&path, "models", "aot/models", &runtime)
        };
        let text = "[package]\nname = \"a\" # mine\n\n[dependencies]\nserde = \"1\"\n\n[features]\nx = []\n";
        let expected = "[package]\nname = \"a\" # mine\n\n[dependencies]\nserde = \"1\"\nmodels = { path = \"aot/models\" }\naot-runtime = \"0.1.0\"\n\n[features]\nx = []\n";
        assert_eq!(edit(text).unwrap(), expected);
        assert!(edit("[package]\nname = \"a\"\n").unwrap().contains("[dependencies]\nmodels"));
        assert!(matches!(
            edit("[dependencies]\nmodels = \"1\"\n"),
            Err(CliError::DependencyExists { .. })
        ));
        assert!(matches!(edit("dependencies = 3\n"), Err(CliError::CargoManifest { .. })));
        let own = edit("[dependencies]\naot-runtime = \"9\"\n").unwrap();
        assert!(own.contains("aot-runtime = \"9\"\n") && !own.contains("0.1.0"));
    }

    #[test]
    fn gpus_of_the_machine() {
        let dir = tempfile::tempdir().unwrap();
        for (index, model) in
            ["NVIDIA H200", "NVIDIA A100-SXM4-80GB", "NVIDIA GeForce RTX 4090", "Odd thing"]
                .iter()
                .enumerate()
        {
            let gpu = dir.path().join(index.to_string());
            std::fs::create_dir(&gpu).unwrap();
            std::fs::write(gpu.join("information"), format!("Model: \t\t {model}\nIRQ: 1\n"))
                .unwrap();
        }
        assert_eq!(local_gpus(dir.path()), ["a100", "geforcertx4090", "h200"]);
        assert!(local_gpus(Path::new("/no/such/folder")).is_empty());
    }
}
