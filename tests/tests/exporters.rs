//! Small models as exporters write them, with run-time sizes, against onnxruntime.

use crate::reference::{Case, asset, cases, relative_error};
use aot_ir::Op;
use aot_ir::exec::Executor;
use cargo_aot::import::{DimInfo, DimSpec, ImportOptions, TensorInfo, describe, import};
use cargo_aot::passes;
use std::collections::BTreeMap;

/// Least and greatest size of every dim that an input has as it is.
fn sizes(inputs: &[TensorInfo], cases: &[Case]) -> BTreeMap<String, (i64, i64)> {
    let mut sizes: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    for info in inputs {
        for (axis, dim) in info.dims.iter().flatten().enumerate() {
            let (DimInfo::Named(name) | DimInfo::Unnamed(name)) = dim else { continue };
            for case in cases {
                let given = case.inputs.iter().find(|(n, _)| *n == info.name);
                let (_, tensor) = given.unwrap_or_else(|| panic!("no input {}", info.name));
                let size = tensor.shape()[axis] as i64;
                let (least, greatest) = sizes.entry(name.clone()).or_insert((size, size));
                (*least, *greatest) = (size.min(*least), size.max(*greatest));
            }
        }
    }
    sizes
}

/// The worst relative error of a model's outputs, or what went wrong.
fn check(name: &str) -> Result<f64, String> {
    let model = asset("reference/exporters").join(name).join("model.onnx");
    let cases = cases(&format!("exporters/{name}"));
    let described = describe(&model).map_err(|e| e.to_string())?;
    let range =
        |(least, greatest): (i64, i64)| DimSpec::Range { lo: least, hi: 2 * greatest, step: 1 };
    let dims = sizes(&described.inputs, &cases).into_iter().map(|(name, s)| (name, range(s)));
    let options =
        ImportOptions { name: name.to_owned(), dims: dims.collect(), ..ImportOptions::default() };
    let imported = import(&model, &options).map_err(|e| e.to_string())?.graph;
    let passed = passes::run(&imported, &passes::Options::default()).map_err(|e| e.to_string())?;
    // Keys and values that groups of heads share are read where they lie.
    let attends = |op: &Op| matches!(op, Op::Attention(_));
    let repeats = |op: &Op| matches!(op, Op::Expand { .. } | Op::MatMul);
    let ops: Vec<&Op> = passed.nodes().map(|(_, node)| &node.op).collect();
    let whole = ops.iter().any(|op| attends(op)) && !ops.iter().any(|op| repeats(op));
    if name.starts_with("torch_decoder") && !whole {
        let names: Vec<&str> = ops.iter().map(|op| op.name()).collect();
        return Err(format!("not one attention over what is shared: {names:?}"));
    }
    let mut worst = 0.0;
    for graph in [&imported, &passed] {
        let executor = Executor::new(graph).map_err(|e| e.to_string())?;
        for case in &cases {
            let found = executor.run(&case.inputs_of(graph)).map_err(|e| e.to_string())?;
            for (found, expected) in found.iter().zip(&case.outputs_of(graph)) {
                let error = relative_error(found, expected);
                worst = if error > worst || error.is_nan() { error } else { worst };
            }
        }
    }
    Ok(worst)
}

#[test]
fn models_as_exporters_write_them() {
    let folder = asset("reference/exporters");
    let entries = std::fs::read_dir(&folder).expect("a folder of models");
    let mut names: Vec<String> =
        entries.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    assert!(names.len() >= 20, "{names:?}");
    let wrong = names.iter().filter_map(|name| match check(name) {
        Ok(error) if error <= 1e-4 => None,
        Ok(error) => Some(format!("{name}: off by {error:e}")),
        Err(reason) => Some(format!("{name}: {reason}")),
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
