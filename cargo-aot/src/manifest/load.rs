//! From a file to a [`Manifest`], or to everything that is wrong with it.

use std::io;
use std::path::{Path, PathBuf};

use toml::de::DeTable;

use super::diagnostic::{Diagnostic, SourceFile};
use super::models::read_models;
use super::reader::{Reader, Table};
use super::schema::{Manifest, Model};
use super::syntax::{open_bracket, syntax_errors};
use super::tables::{read_package, read_target, read_toolchain};

/// Whether to look for the files that a manifest names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// A missing one is an error.
    Check,
    /// Don't touch the file system.
    Ignore,
}

/// Why there is no manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The file can't be read.
    #[error("failed to read `{}`", path.display())]
    Read {
        /// The manifest.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The manifest is wrong.
    #[error("`{}` has {} error(s)", file.path.display(), diagnostics.len())]
    Invalid {
        /// The text that diagnostics point into.
        file: SourceFile,
        /// All errors and warnings in the order of the file; at least one error.
        diagnostics: Vec<Diagnostic>,
    },
}

impl Manifest {
    /// Reads and checks the manifest at `path`, named `shown` in messages.
    pub fn load(path: &Path, shown: &Path) -> Result<Self, ManifestError> {
        let text = std::fs::read(path)
            .and_then(|bytes| {
                String::from_utf8(bytes)
                    .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
            })
            .map_err(|source| ManifestError::Read { path: shown.to_owned(), source })?;
        let dir = path.parent().unwrap_or(Path::new(""));
        Self::parse(SourceFile { path: shown.to_owned(), text }, dir, Files::Check)
    }

    /// Checks the manifest with the text of `file`, whose relative paths start from `dir`.
    pub fn parse(file: SourceFile, dir: &Path, files: Files) -> Result<Self, ManifestError> {
        let (manifest, mut diagnostics) = read(&file, dir, files);
        diagnostics.sort_by_key(Diagnostic::position);
        match manifest {
            Some(manifest) if diagnostics.is_empty() => Ok(manifest),
            _ => Err(ManifestError::Invalid { file, diagnostics }),
        }
    }
}

fn read(file: &SourceFile, dir: &Path, files: Files) -> (Option<Manifest>, Vec<Diagnostic>) {
    let (document, errors) = DeTable::parse_recoverable(&file.text);
    let mut reader = Reader::default();
    let root = Table::new("", 0..0, document.get_ref());
    reader.known_keys(&root, &["package", "target", "toolchain", "models"]);
    let mut table = |key: &str| root.get(key).and_then(|value| reader.table(key, value));
    let (package, target, toolchain) = (table("package"), table("target"), table("toolchain"));
    let models = table("models");
    let package = read_package(&mut reader, dir, package.as_ref());
    let target = read_target(&mut reader, target.as_ref());
    let toolchain = read_toolchain(&mut reader, dir, toolchain.as_ref(), target.as_ref());
    let models = match &models {
        Some(table) if !table.entries().is_empty() => read_models(&mut reader, table),
        _ => {
            let help = "add `[models.NAME]` with `source = \"FILE.onnx\"`";
            reader.push(Diagnostic::error("no model is declared").help(help));
            Vec::new()
        }
    };
    if files == Files::Check {
        check_sources(&mut reader, dir, &models);
    }
    let mut diagnostics = reader.diagnostics;
    add_syntax_errors(&mut diagnostics, file, &errors);
    let manifest = package.zip(target).zip(toolchain).map(|((package, target), toolchain)| {
        Manifest { file: file.clone(), dir: dir.to_owned(), package, target, toolchain, models }
    });
    (manifest, diagnostics)
}

fn check_sources(reader: &mut Reader, dir: &Path, models: &[Model]) {
    for model in models {
        let path = dir.join(model.source.get_ref());
        let label = match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => continue,
            Ok(_) => "this is no file".to_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => "there is no such file".into(),
            Err(error) => error.to_string(),
        };
        let mut diagnostic = Diagnostic::error(format!(
            "model file `{}` not found",
            model.source.get_ref().display()
        ))
        .at(model.source.span(), label);
        if model.source.get_ref().is_relative() {
            diagnostic = diagnostic.help("paths start from the folder of Aot.toml");
        }
        reader.push(diagnostic);
    }
}

/// Adds what TOML itself refuses. The document is then read as far as it could be understood, so
/// whatever was found on the same lines, or found missing, may only follow from it and goes.
fn add_syntax_errors(
    diagnostics: &mut Vec<Diagnostic>,
    file: &SourceFile,
    errors: &[toml::de::Error],
) {
    if errors.is_empty() {
        return;
    }
    let mut syntax = syntax_errors(file, errors);
    let lines: Vec<_> = syntax.iter().map(|d| file.line_of(d.position())).collect();
    let understood =
        if open_bracket(errors) { syntax.iter().map(Diagnostic::position).min() } else { None };
    diagnostics.retain(|diagnostic| {
        let missing = diagnostic.labels.is_empty() || diagnostic.message.contains(" has no `");
        let beyond = understood.is_some_and(|end| diagnostic.position() >= end);
        !missing && !beyond && !lines.contains(&file.line_of(diagnostic.position()))
    });
    diagnostics.append(&mut syntax);
}

#[cfg(test)]
mod tests {
    use super::super::schema::{DimKind, InputDim, Precision, Weights};
    use super::*;
    use crate::build::toolchain::CudaMajor;

    fn parse(text: &str) -> Result<Manifest, Vec<String>> {
        let file = SourceFile { path: "Aot.toml".into(), text: text.to_owned() };
        Manifest::parse(file, Path::new("/project"), Files::Ignore).map_err(|error| match error {
            ManifestError::Invalid { diagnostics, .. } => {
                diagnostics.into_iter().map(|diagnostic| diagnostic.message).collect()
            }
            ManifestError::Read { .. } => vec!["read".to_owned()],
        })
    }

    #[test]
    fn a_whole_manifest() {
        let manifest = parse(
            r#"
            [package]
            name = "my-models"
            weights = "file"
            [target]
            gpus = ["a100", "h200", "sm_80"]
            ptx = false
            [toolchain]
            cuda = "12"
            path = "cuda"
            [models.minilm-v2]
            source = "minilm.onnx"
            precision = "f16"
            precision-for = { "*/attention/*" = "f32", "*" = "tf32" }
            dims = { batch = "1..=64", w = { range = "32..=960", step = 32, buckets = [320] }, c = 3 }
            inputs."x:0" = ["batch", 3]
            "#,
        )
        .unwrap();
        assert_eq!(manifest.crate_dir(), Path::new("/project/aot/my-models"));
        assert_eq!(manifest.package.name.get_ref().krate, "my_models");
        assert_eq!(manifest.package.weights, Weights::File);
        let gpus: Vec<_> = manifest.target.gpus.iter().map(|g| g.get_ref().to_string()).collect();
        assert_eq!(gpus, ["sm_80", "sm_90a"]);
        assert!(!manifest.target.ptx);
        assert_eq!(manifest.toolchain.cuda, CudaMajor::Cuda12);
        let model = &manifest.models[0];
        assert_eq!(model.rust.module, "minilm_v2");
        assert_eq!(model.precision_of("/pooler/x"), Precision::Tf32);
        assert_eq!(model.precision_of("/attention/x"), Precision::F32);
        let kinds: Vec<_> = model.dims.iter().map(|dim| dim.kind.clone()).collect();
        let range = |lo, hi, step, buckets: &[u64]| DimKind::Range {
            lo,
            hi,
            step,
            buckets: buckets.to_vec(),
        };
        assert_eq!(
            kinds,
            [range(1, 64, 1, &[64]), range(32, 960, 32, &[320, 960]), DimKind::Fixed(3)]
        );
        let dims: Vec<_> = model.inputs[0].dims.iter().map(|dim| dim.get_ref().clone()).collect();
        assert_eq!(dims, [InputDim::Name("batch".into()), InputDim::Fixed(3)]);
        assert_eq!(manifest.line_of(&model.dims[0].name.span()), 15);
    }

    #[test]
    fn defaults() {
        let manifest =
            parse("[target]\ngpus = [\"h200\"]\n[models.m]\nsource = \"m.onnx\"\n").unwrap();
        assert_eq!(manifest.package.name.get_ref().package, "models");
        assert_eq!(manifest.package.weights, Weights::Auto);
        assert!(manifest.target.ptx);
        assert_eq!(manifest.models[0].precision, Precision::F32);
    }

    #[test]
    fn nothing_at_all() {
        assert_eq!(
            parse("").unwrap_err(),
            ["no GPU is named to compile for", "no model is declared"]
        );
    }

    #[test]
    fn the_crate_never_overwrites_its_user() {
        for path in [".", "..", "aot/..", "/project", "/"] {
            let text = format!(
                "[package]\npath = \"{path}\"\n[target]\ngpus = [\"t4\"]\n[models.m]\nsource = \"m.onnx\"\n"
            );
            let errors = parse(&text).unwrap_err();
            assert_eq!(errors, ["the generated crate would overwrite the crate that uses it"]);
        }
    }
}
