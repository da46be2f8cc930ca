//! A few words to make models with.

use super::super::proto::{
    AttributeProto, Dimension, GraphProto, ModelProto, NodeProto, OperatorSetId, TensorProto,
    TensorShape, TensorType, TypeProto, ValueInfo,
};
use crate::import::{DimSpec, ImportError, ImportOptions, Imported, import};
use prost::Message;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

pub(super) const F32: i32 = 1;
pub(super) const I64: i32 = 7;

/// A folder that goes with the value.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("aot-onnx-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// `"n 3 ?"` as a value's type: numbers, names, and `?` for neither.
pub(super) fn value(name: &str, elem_type: i32, dims: &str) -> ValueInfo {
    let dim = dims
        .split_whitespace()
        .map(|d| match d.parse() {
            Ok(n) => Dimension { dim_value: Some(n), dim_param: None },
            Err(_) if d == "?" => Dimension::default(),
            Err(_) => Dimension { dim_value: None, dim_param: Some(d.replace('_', " ")) },
        })
        .collect();
    let tensor_type = Some(TensorType { elem_type, shape: Some(TensorShape { dim }) });
    ValueInfo {
        name: name.to_owned(),
        r#type: Some(TypeProto { tensor_type, ..TypeProto::default() }),
    }
}

/// `node("Add", "a b", "c")`; `_` stands for an input left out.
pub(super) fn node(op: &str, inputs: &str, outputs: &str) -> NodeProto {
    let list = |text: &str| {
        text.split_whitespace().map(|n| n.trim_matches('_').to_owned()).collect::<Vec<_>>()
    };
    NodeProto {
        input: list(inputs),
        output: list(outputs),
        name: format!("the {op}"),
        op_type: op.to_owned(),
        ..NodeProto::default()
    }
}

impl NodeProto {
    pub(super) fn int(mut self, name: &str, i: i64) -> Self {
        self.attribute.push(AttributeProto { name: name.to_owned(), i, ..Default::default() });
        self
    }

    pub(super) fn ints(mut self, name: &str, ints: &[i64]) -> Self {
        let ints = ints.to_vec();
        self.attribute.push(AttributeProto { name: name.to_owned(), ints, ..Default::default() });
        self
    }

    pub(super) fn graph(mut self, name: &str, g: GraphProto) -> Self {
        let g = Some(Box::new(g));
        self.attribute.push(AttributeProto { name: name.to_owned(), g, ..Default::default() });
        self
    }
}

pub(super) fn ints(name: &str, dims: &[i64], data: &[i64]) -> TensorProto {
    TensorProto {
        dims: dims.to_vec(),
        data_type: I64,
        int64_data: data.to_vec(),
        name: name.to_owned(),
        ..Default::default()
    }
}

pub(super) fn floats(name: &str, dims: &[i64], data: &[f32]) -> TensorProto {
    TensorProto {
        dims: dims.to_vec(),
        data_type: F32,
        float_data: data.to_vec(),
        name: name.to_owned(),
        ..Default::default()
    }
}

pub(super) fn model(
    opset: i64,
    inputs: Vec<ValueInfo>,
    initializer: Vec<TensorProto>,
    node: Vec<NodeProto>,
    outputs: &str,
) -> ModelProto {
    let output = outputs.split_whitespace().map(|n| ValueInfo { name: n.to_owned(), r#type: None });
    let output = output.collect();
    let graph = GraphProto { node, initializer, input: inputs, output, ..Default::default() };
    ModelProto {
        ir_version: 8,
        graph: Some(graph),
        opset_import: vec![OperatorSetId { domain: String::new(), version: opset }],
        ..Default::default()
    }
}

/// `"n=1..8 h=32..960/32"` as options.
pub(super) fn options(dims: &str) -> ImportOptions {
    let mut options = ImportOptions { name: "test".to_owned(), ..Default::default() };
    for part in dims.split_whitespace() {
        let (name, range) = part.split_once('=').unwrap();
        let spec = match range.split_once("..") {
            None => DimSpec::Fixed(range.parse().unwrap()),
            Some((lo, hi)) => {
                let (hi, step) = hi.split_once('/').unwrap_or((hi, "1"));
                let [lo, hi, step] = [lo, hi, step].map(|n| n.parse().unwrap());
                DimSpec::Range { lo, hi, step }
            }
        };
        options.dims.insert(name.to_owned(), spec);
    }
    options
}

pub(super) fn import_with(
    model: &ModelProto,
    options: &ImportOptions,
) -> Result<Imported, ImportError> {
    let folder = Folder::new();
    let path = folder.0.join("model.onnx");
    std::fs::write(&path, model.encode_to_vec()).unwrap();
    import(&path, options)
}

pub(super) fn import_ok(model: &ModelProto, dims: &str) -> Imported {
    import_with(model, &options(dims)).unwrap_or_else(|e| panic!("{e}"))
}

pub(super) fn import_error(model: &ModelProto, dims: &str) -> String {
    import_with(model, &options(dims)).expect_err("an error").to_string()
}

/// The operators of the graph, and the shape of its first output.
pub(super) fn summary(imported: &Imported) -> (Vec<&'static str>, String) {
    let graph = &imported.graph;
    let ops = graph.nodes().map(|(_, n)| n.op.name()).collect();
    let shape = &graph[graph.outputs[0].1].shape;
    let dims: Vec<String> = shape.iter().map(|d| graph.symbols.show(d)).collect();
    (ops, dims.join(" "))
}
