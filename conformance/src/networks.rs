//! Networks whose sizes data gives, as cases for every backend. `tests/reference/sizes.py` makes them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use aot_ir::Graph;
use aot_ir::exec::Tensor;
use aot_tests::cases::Case;
use cargo_aot::import::{DimInfo, DimSpec, ImportOptions, TensorInfo, describe, import};
use cargo_aot::npy::read_npz;

/// Greatest size that data gives where nothing else bounds it.
const MOST: i64 = 64;

/// A network, and what onnxruntime gives for some inputs.
#[derive(Debug)]
pub struct Network {
    /// With random inputs at the sizes of the trials.
    pub case: Case,
    /// Inputs and outputs in the graph's order.
    pub trials: Vec<(Vec<Tensor>, Vec<Tensor>)>,
}

type Arrays = BTreeMap<String, Tensor>;

/// The networks in the folder of assets, sorted by name.
///
/// # Errors
/// What can't be read or imported.
pub fn networks(assets: &Path) -> Result<Vec<Network>, String> {
    let folder = assets.join("reference/sizes");
    let folders = entries(&folder)?.into_iter().filter(|path| path.is_dir());
    folders.enumerate().map(|(number, folder)| network(number, &folder)).collect()
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder);
    let entries =
        entries.map_err(|e| format!("{}: {e}: run `cargo xtask reference`", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
    paths.sort();
    Ok(paths)
}

fn network(number: usize, folder: &Path) -> Result<Network, String> {
    let wrong = |e: &dyn std::error::Error| format!("{}: {e}", folder.display());
    let model = folder.join("model.onnx");
    let mut arrays = Vec::new();
    for file in entries(folder)?.iter().filter(|f| f.extension().is_some_and(|e| e == "npz")) {
        arrays.push(read(file).map_err(|e| wrong(&*e))?);
    }
    let described = describe(&model).map_err(|e| wrong(&e))?;
    let sizes = arrays.iter().map(|arrays| sizes(&described.inputs, arrays));
    let sizes: Vec<Vec<(String, i64)>> = sizes.collect();
    let mut options = ImportOptions { data_most: Some(MOST), ..ImportOptions::default() };
    for name in described.inputs.iter().flat_map(|info| info.dims.iter().flatten()) {
        for name in name.names() {
            let all = sizes.iter().flatten().filter(|(n, _)| n == name).map(|(_, size)| *size);
            let hi = 2 * all.max().unwrap_or(1);
            options.dims.insert(name.clone(), DimSpec::Range { lo: 1, hi, step: 1 });
        }
    }
    let graph = import(&model, &options).map_err(|e| wrong(&e))?.graph;
    let trials = arrays.iter().map(|arrays| trial(&graph, arrays));
    let trials = trials.collect::<Option<Vec<_>>>();
    let trials = trials.ok_or_else(|| format!("{}: a tensor is missing", folder.display()))?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let case = Case {
        name: format!("sizes_from_data/{name}"),
        number,
        on_gpus: true,
        graph,
        written_out: true,
        sizes,
        groups: None,
        slack: 1.0,
    };
    Ok(Network { case, trials })
}

fn read(file: &Path) -> Result<Arrays, Box<dyn std::error::Error>> {
    let mut arrays = Arrays::new();
    for (name, array) in read_npz(file)? {
        arrays.insert(name, Tensor::from_bytes(array.dtype, array.shape, &array.bytes)?);
    }
    Ok(arrays)
}

/// The sizes of dims, and the values of integers.
fn sizes(inputs: &[TensorInfo], arrays: &Arrays) -> Vec<(String, i64)> {
    let mut sizes: Vec<(String, i64)> = Vec::new();
    for info in inputs {
        let Some(tensor) = arrays.get(&format!("in.{}", info.name)) else { continue };
        for (dim, extent) in info.dims.iter().flatten().zip(tensor.shape()) {
            if let DimInfo::Named(name) = dim
                && !sizes.iter().any(|(n, _)| n == name)
            {
                sizes.push((name.clone(), *extent as i64));
            }
        }
        if tensor.dtype().is_int() && tensor.shape().is_empty() {
            sizes.extend(tensor.to_i64().first().map(|value| (info.name.clone(), *value)));
        }
    }
    sizes
}

fn trial(graph: &Graph, arrays: &Arrays) -> Option<(Vec<Tensor>, Vec<Tensor>)> {
    let find = |kind: &str, name: &String| arrays.get(&format!("{kind}.{name}")).cloned();
    let inputs = graph.inputs.iter().map(|v| find("in", &graph[*v].name));
    let outputs = graph.outputs.iter().map(|(name, _)| find("out", name));
    Some((inputs.collect::<Option<_>>()?, outputs.collect::<Option<_>>()?))
}
