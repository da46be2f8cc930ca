//! What onnxruntime computes.

use aot_ir::Graph;
use aot_ir::exec::Tensor;
use aot_tests::compare::distance;
use cargo_aot::npy::read_npz;
use std::path::{Path, PathBuf};

/// A file under `assets/`, where `cargo xtask fetch` puts it.
///
/// # Panics
/// When there is none.
pub(crate) fn asset(path: &str) -> PathBuf {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets").join(path);
    assert!(file.exists(), "{} is missing: run `cargo xtask fetch`", file.display());
    file
}

/// Inputs, and the outputs that onnxruntime gives for them.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// Name of the file.
    pub(crate) name: String,
    /// Inputs by name.
    pub(crate) inputs: Vec<(String, Tensor)>,
    /// Outputs by name.
    pub(crate) outputs: Vec<(String, Tensor)>,
}

/// All cases of a model, ordered by name.
///
/// # Panics
/// When there are none, or a file can't be read.
pub(crate) fn cases(model: &str) -> Vec<Case> {
    let folder = asset("reference").join(model);
    let entries = std::fs::read_dir(&folder);
    let entries =
        entries.unwrap_or_else(|e| panic!("{}: {e}: run `cargo xtask fetch`", folder.display()));
    let mut files: Vec<_> = entries
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "npz"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} holds no cases: run `cargo xtask fetch`", folder.display());
    files
        .iter()
        .map(|file| {
            let arrays = read_npz(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            let part = |prefix: &str| -> Vec<(String, Tensor)> {
                let arrays = arrays.iter();
                let tensor = |(name, array): &(String, cargo_aot::npy::Array)| {
                    let name = name.strip_prefix(prefix)?.to_owned();
                    let tensor = Tensor::from_bytes(array.dtype, array.shape.clone(), &array.bytes);
                    Some((name, tensor.unwrap_or_else(|e| panic!("{}: {e}", file.display()))))
                };
                arrays.filter_map(tensor).collect()
            };
            let name = file.file_stem().map(|s| s.to_string_lossy().into_owned());
            Case { name: name.unwrap_or_default(), inputs: part("in."), outputs: part("out.") }
        })
        .collect()
}

impl Case {
    /// Inputs in the graph's order.
    ///
    /// # Panics
    /// When one is missing.
    pub(crate) fn inputs_of(&self, graph: &Graph) -> Vec<Tensor> {
        graph.inputs.iter().map(|&v| find(&self.inputs, &graph[v].name).clone()).collect()
    }

    /// Outputs in the graph's order.
    ///
    /// # Panics
    /// When one is missing.
    pub(crate) fn outputs_of(&self, graph: &Graph) -> Vec<Tensor> {
        graph.outputs.iter().map(|(name, _)| find(&self.outputs, name).clone()).collect()
    }
}

fn find<'a>(tensors: &'a [(String, Tensor)], name: &str) -> &'a Tensor {
    match tensors.iter().find(|(n, _)| n == name) {
        Some((_, tensor)) => tensor,
        None => panic!("no tensor `{name}`"),
    }
}

/// `‖found - expected‖ / ‖expected‖`; infinite when shapes differ.
pub(crate) fn relative_error(found: &Tensor, expected: &Tensor) -> f64 {
    if found.shape() != expected.shape() {
        return f64::INFINITY;
    }
    distance(&found.to_f64(), &expected.to_f64())
}
