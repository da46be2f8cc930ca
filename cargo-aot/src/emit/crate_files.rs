//! All text files of the generated crate.

use std::path::{Component, Path, PathBuf};

use minijinja::{Value, context};

use super::model_file::{EmitError, ModelSpec, example, text};
use super::stamp;
use super::template::{code_cell, literal, render};
use crate::manifest::PackageName;

const CARGO_TOML: &str = include_str!("../../../templates/crate/Cargo.toml.j2");
const BUILD_RS: &str = include_str!("../../../templates/crate/build.rs.j2");
const LIB_RS: &str = include_str!("../../../templates/crate/lib.rs.j2");

/// A file that the models were built from.
#[derive(Clone, Debug)]
pub struct Source {
    /// Absolute.
    pub path: PathBuf,
    /// [`content_stamp`](super::content_stamp) of its content.
    pub stamp: u64,
}

/// What the generated crate is written from.
#[derive(Clone, Debug)]
pub struct CrateSpec<'a> {
    /// Its names.
    pub package: &'a PackageName,
    /// The TOML value of its dependency on aot-runtime.
    pub runtime: String,
    /// Its folder, absolute.
    pub dir: &'a Path,
    /// The folder of the manifest, absolute.
    pub project: &'a Path,
    /// The manifest and the models' files.
    pub sources: Vec<Source>,
    /// Features, one for each architecture's kernels, such as `sm_90a` and `ptx`.
    pub images: Vec<String>,
    /// At least one.
    pub models: Vec<ModelSpec>,
}

/// Names of models, and why they can't have a Rust type.
pub type Failures = Vec<(String, EmitError)>;

/// The text files by their paths within the crate.
///
/// # Errors
/// The names of the models that can't have a Rust type, each with the reason.
pub fn crate_files(spec: &CrateSpec<'_>) -> Result<Vec<(PathBuf, String)>, Failures> {
    let mut files = Vec::new();
    let mut failed = Vec::new();
    for model in &spec.models {
        match text(spec.package, model, &spec.images) {
            Ok(text) => files.push((format!("src/{}.rs", model.rust.module).into(), text)),
            Err(error) => failed.push((model.name.clone(), error)),
        }
    }
    if !failed.is_empty() {
        return Err(failed);
    }
    let all = |(name, result): (&str, Result<String, EmitError>)| match result {
        Ok(text) => files.push((name.into(), text)),
        Err(error) => failed.push((spec.package.package.clone(), error)),
    };
    [("src/lib.rs", lib_rs(spec)), ("build.rs", build_rs(spec)), ("Cargo.toml", cargo_toml(spec))]
        .into_iter()
        .for_each(all);
    if failed.is_empty() { Ok(files) } else { Err(failed) }
}

fn cargo_toml(spec: &CrateSpec<'_>) -> Result<String, EmitError> {
    let context = context!(
        package => &spec.package.package,
        runtime => &spec.runtime,
        images => spec.images.clone(),
    );
    Ok(render(CARGO_TOML, context)?)
}

fn lib_rs(spec: &CrateSpec<'_>) -> Result<String, EmitError> {
    let models: Vec<Value> = spec
        .models
        .iter()
        .map(|model| {
            context!(
                name => code_cell(&model.name),
                module => &model.rust.module,
                type_name => &model.rust.type_name,
                source => code_cell(&model.source),
            )
        })
        .collect();
    let example = match spec.models.first() {
        Some(model) => example(&spec.package.krate, model)?,
        None => String::new(),
    };
    Ok(render(LIB_RS, context!(models, example, images => spec.images.clone()))?)
}

fn build_rs(spec: &CrateSpec<'_>) -> Result<String, EmitError> {
    let sources: Vec<Value> = spec
        .sources
        .iter()
        .map(|source| {
            let path = relative(spec.dir, spec.project, &source.path);
            context!(
                path => literal(&path.to_string_lossy()),
                stamp => format!("{:#018x}", source.stamp),
            )
        })
        .collect();
    Ok(render(BUILD_RS, context!(sources))? + stamp::TEXT)
}

/// `path` as seen from `dir` where both lie in `project`, so that the project can be moved.
fn relative(dir: &Path, project: &Path, path: &Path) -> PathBuf {
    let (Ok(up), Ok(down)) = (dir.strip_prefix(project), path.strip_prefix(project)) else {
        return path.to_owned();
    };
    let plain = |path: &Path| path.components().all(|c| matches!(c, Component::Normal(_)));
    if !plain(up) {
        return path.to_owned();
    }
    up.components().map(|_| "..").collect::<PathBuf>().join(down)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_within_the_project_are_relative() {
        let relative =
            |path: &str| relative(Path::new("/p/aot/models"), Path::new("/p"), Path::new(path));
        assert_eq!(relative("/p/Aot.toml"), Path::new("../../Aot.toml"));
        assert_eq!(relative("/p/nets/../a.onnx"), Path::new("../../nets/../a.onnx"));
        assert_eq!(relative("/other/a.onnx"), Path::new("/other/a.onnx"));
    }
}
