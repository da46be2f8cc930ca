//! `[package]`, `[target]` and `[toolchain]`

use std::path::{Component, Path, PathBuf};

use aot_kernels::{Arch, ParseArchError};
use toml::Spanned;

use super::diagnostic::{Diagnostic, Span};
use super::gpus::{UnknownGpu, lookup};
use super::names::PackageName;
use super::reader::{Reader, Table};
use super::schema::{Package, Target, Toolchain, Weights};
use crate::build::toolchain::CudaMajor;

/// Reads `[package]`; everything in it has a default.
pub(super) fn read_package(
    reader: &mut Reader,
    dir: &Path,
    table: Option<&Table<'_>>,
) -> Option<Package> {
    const WEIGHTS: [(&str, Weights); 3] =
        [("embed", Weights::Embed), ("file", Weights::File), ("auto", Weights::Auto)];
    if let Some(table) = table {
        reader.known_keys(table, &["name", "path", "weights"]);
    }
    let get = |key: &str| table.and_then(|table| table.get(key));
    let whole = table.map_or(0..0, |table| table.span.clone());
    let name = match get("name") {
        Some(value) => reader.string("package.name", value)?,
        None => Spanned::new(whole.clone(), "models"),
    };
    let weights = get("weights")
        .and_then(|value| reader.one_of("package.weights", value, &WEIGHTS))
        .unwrap_or_default();
    let path = match get("path") {
        Some(value) => {
            let text = reader.string("package.path", value);
            text.and_then(|text| crate_path(reader, dir, &text))
        }
        None => Some(Spanned::new(name.span(), Path::new("aot").join(name.get_ref()))),
    };
    match PackageName::new(name.get_ref()) {
        Ok(rust) => Some(Package { name: Spanned::new(name.span(), rust), path: path?, weights }),
        Err(error) => {
            reader.push(
                Diagnostic::error(format!("`{}` can't be the name of a package", name.get_ref()))
                    .at(name.span(), error.to_string())
                    .help("the name becomes a crate that Rust code names with `use`"),
            );
            None
        }
    }
}

/// The generated crate is written over, so it must not be a folder that has other things in it.
fn crate_path(reader: &mut Reader, dir: &Path, text: &Spanned<&str>) -> Option<Spanned<PathBuf>> {
    let path = PathBuf::from(*text.get_ref());
    let whole = normalize(&dir.join(&path));
    if normalize(dir).starts_with(&whole) {
        reader.push(
            Diagnostic::error("the generated crate would overwrite the crate that uses it")
                .at(text.span(), "this folder holds Aot.toml")
                .help("give it a folder of its own, such as \"aot/models\""),
        );
        return None;
    }
    Some(Spanned::new(text.span(), path))
}

/// `path` without `.` and, as far as they can be followed in the text, without `..`.
fn normalize(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if result.file_name().is_some() => {
                result.pop();
            }
            other => result.push(other),
        }
    }
    result
}

/// Reads `[target]`; `gpus` is needed.
pub(super) fn read_target(reader: &mut Reader, table: Option<&Table<'_>>) -> Option<Target> {
    const HELP: &str = "for instance `gpus = [\"a100\", \"rtx4090\"]`";
    let Some(table) = table else {
        reader.push(
            Diagnostic::error("no GPU is named to compile for")
                .help(format!("add `[target]` with the GPUs that will run the models, {HELP}")),
        );
        return None;
    };
    reader.known_keys(table, &["gpus", "ptx"]);
    let ptx = match table.get("ptx") {
        Some(value) => reader.boolean("target.ptx", value),
        None => Some(true),
    };
    let Some(value) = table.get("gpus") else {
        reader.push(
            Diagnostic::error("`target` has no `gpus`")
                .at(table.span.clone(), "expected the GPUs that will run the models")
                .help(HELP),
        );
        return None;
    };
    let values = reader.array("target.gpus", value)?;
    let all = values.len();
    let mut gpus: Vec<Spanned<Arch>> = Vec::new();
    let mut read = 0;
    for value in values {
        let Some(text) = reader.string("target.gpus", value) else { continue };
        match lookup(text.get_ref()) {
            Ok(arch) => {
                read += 1;
                if gpus.iter().all(|known| *known.get_ref() != arch) {
                    gpus.push(Spanned::new(text.span(), arch));
                }
            }
            Err(error) => reader.push(unknown_gpu(text.get_ref(), text.span(), &error)),
        }
    }
    if all == 0 && ptx == Some(false) {
        reader.push(
            Diagnostic::error("nothing to compile for: no GPU is named and `ptx` is off")
                .at(value.span(), "name at least one GPU")
                .help(HELP),
        );
        return None;
    }
    if read < all { None } else { Some(Target { gpus, ptx: ptx? }) }
}

fn unknown_gpu(text: &str, span: Span, error: &UnknownGpu) -> Diagnostic {
    const HELP: &str = "a GPU is named like `h200` or `rtx4090`, an architecture like `sm_90`";
    let diagnostic = Diagnostic::error(format!("unknown GPU `{text}`"));
    match error {
        UnknownGpu::TooOld(capability) => Diagnostic::error(format!("`{text}` is too old")).at(
            span,
            format!("sm_{capability} came before sm_75, the oldest architecture supported"),
        ),
        UnknownGpu::Name(Some(near)) => {
            diagnostic.at(span, format!("did you mean `{near}`?")).help(HELP)
        }
        UnknownGpu::Name(None) => diagnostic.at(span, "not in the list of GPUs").help(HELP),
        UnknownGpu::Arch(error) => {
            let diagnostic = diagnostic.at(span, error.to_string());
            if matches!(error, ParseArchError::Unknown(_)) {
                let known: Vec<_> =
                    aot_kernels::KNOWN_CAPABILITIES.iter().map(ToString::to_string).collect();
                diagnostic.help(format!("the architectures are {}", known.join(", ")))
            } else {
                diagnostic.help(HELP)
            }
        }
    }
}

/// Reads `[toolchain]`, and whether its compiler knows all of `target`'s architectures.
pub(super) fn read_toolchain(
    reader: &mut Reader,
    dir: &Path,
    table: Option<&Table<'_>>,
    target: Option<&Target>,
) -> Option<Toolchain> {
    const VERSIONS: [(&str, CudaMajor); 2] = [("12", CudaMajor::Cuda12), ("13", CudaMajor::Cuda13)];
    let Some(table) = table else { return Some(Toolchain::default()) };
    reader.known_keys(table, &["cuda", "path"]);
    let cuda = match table.get("cuda") {
        Some(value) => {
            let cuda = reader.one_of("toolchain.cuda", value, &VERSIONS)?;
            if cuda == CudaMajor::Cuda12 {
                check_cuda12(reader, value.span(), target);
            }
            cuda
        }
        None => CudaMajor::default(),
    };
    let path = match table.get("path") {
        Some(value) => {
            let text = reader.string("toolchain.path", value)?;
            Some(Spanned::new(text.span(), dir.join(text.get_ref())))
        }
        None => None,
    };
    Some(Toolchain { cuda, path })
}

/// sm_88 and sm_110 came with CUDA 13.
fn check_cuda12(reader: &mut Reader, span: Span, target: Option<&Target>) {
    for gpu in target.map(|target| target.gpus.as_slice()).unwrap_or_default() {
        if [88, 110].contains(&gpu.get_ref().capability()) {
            reader.push(
                Diagnostic::error(format!("CUDA 12 has no architecture {}", gpu.get_ref()))
                    .at(gpu.span(), "needs CUDA 13")
                    .at(span.clone(), "CUDA 12 is asked for here"),
            );
        }
    }
}
