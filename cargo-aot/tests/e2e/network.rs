//! Small ONNX models, and what they compute.

use prost::Message;

use super::proto::{
    AttributeProto, Dimension, GraphProto, ModelProto, NodeProto, OperatorSetId, StringEntry,
    TensorProto, TensorShape, TensorType, TypeProto, ValueInfo,
};

const F32: i32 = 1;
const I64: i32 = 7;
const U8: i32 = 2;
const TEXT: i32 = 8;

/// A model in the making.
#[derive(Debug, Default)]
pub(super) struct Network(GraphProto);

impl Network {
    /// An input; `dims` are sizes and names, such as `batch 16`.
    pub(super) fn input(self, name: &str, dims: &str) -> Self {
        self.typed_input(name, F32, dims)
    }

    /// An input of 64-bit integers.
    pub(super) fn integers(self, name: &str, dims: &str) -> Self {
        self.typed_input(name, I64, dims)
    }

    /// An input of bytes.
    pub(super) fn bytes(self, name: &str, dims: &str) -> Self {
        self.typed_input(name, U8, dims)
    }

    fn typed_input(mut self, name: &str, elem_type: i32, dims: &str) -> Self {
        let dim = dims.split_whitespace().map(|dim| match dim.parse() {
            Ok(size) => Dimension { dim_value: Some(size), dim_param: None },
            Err(_) => Dimension { dim_value: None, dim_param: Some(dim.to_owned()) },
        });
        let shape = Some(TensorShape { dim: dim.collect() });
        let tensor_type = Some(TensorType { elem_type, shape });
        let r#type = Some(TypeProto { tensor_type, ..Default::default() });
        self.0.input.push(ValueInfo { name: name.to_owned(), r#type });
        self
    }

    /// A constant of floats.
    pub(super) fn weight(mut self, name: &str, dims: &[i64], data: &[f32]) -> Self {
        self.0.initializer.push(TensorProto {
            dims: dims.to_vec(),
            data_type: F32,
            float_data: data.to_vec(),
            name: name.to_owned(),
            ..Default::default()
        });
        self
    }

    /// A constant list of texts.
    pub(super) fn texts(mut self, name: &str, texts: &[&'static str]) -> Self {
        self.0.initializer.push(TensorProto {
            dims: vec![texts.len() as i64],
            data_type: TEXT,
            string_data: texts.iter().map(|text| text.as_bytes().into()).collect(),
            name: name.to_owned(),
            ..Default::default()
        });
        self
    }

    /// A constant integer.
    pub(super) fn integer(mut self, name: &str, value: i64) -> Self {
        self.0.initializer.push(TensorProto {
            data_type: I64,
            int64_data: vec![value],
            name: name.to_owned(),
            ..Default::default()
        });
        self
    }

    /// A node of one output: `node("Add", "a b", "c")`.
    pub(super) fn node(mut self, op: &str, inputs: &str, output: &str) -> Self {
        self.0.node.push(NodeProto {
            input: inputs.split_whitespace().map(str::to_owned).collect(),
            output: vec![output.to_owned()],
            name: format!("/{op}_{}", self.0.node.len()),
            op_type: op.to_owned(),
            ..Default::default()
        });
        self
    }

    /// An attribute of the last node.
    pub(super) fn ints(mut self, name: &str, ints: &[i64]) -> Self {
        let ints = ints.to_vec();
        let attribute = AttributeProto { name: name.to_owned(), ints, ..Default::default() };
        self.0.node.last_mut().expect("a node").attribute.push(attribute);
        self
    }

    /// An attribute of the last node.
    pub(super) fn int(mut self, name: &str, i: i64) -> Self {
        let attribute = AttributeProto { name: name.to_owned(), i, ..Default::default() };
        self.0.node.last_mut().expect("a node").attribute.push(attribute);
        self
    }

    /// The file, with these outputs.
    pub(super) fn file(mut self, outputs: &str, metadata: &[(&str, &str)]) -> Vec<u8> {
        let output = |name: &str| ValueInfo { name: name.to_owned(), r#type: None };
        self.0.output = outputs.split_whitespace().map(output).collect();
        let entry = |(key, value): &(&str, &str)| StringEntry {
            key: (*key).to_owned(),
            value: (*value).to_owned(),
        };
        let model = ModelProto {
            ir_version: 8,
            graph: Some(self.0),
            opset_import: vec![OperatorSetId { domain: String::new(), version: 17 }],
            metadata_props: metadata.iter().map(entry).collect(),
            ..Default::default()
        };
        model.encode_to_vec()
    }
}

/// Dense layers, `relu(x · w + b)` each. Weights are small integers, so that results are exact.
#[derive(Clone, Debug)]
pub(super) struct Dense {
    /// Extents from the input's on.
    widths: Vec<usize>,
    seed: usize,
}

impl Dense {
    pub(super) fn new(widths: &[usize], seed: usize) -> Self {
        Self { widths: widths.to_vec(), seed }
    }

    fn weights(&self, layer: usize) -> Vec<f32> {
        let count = self.widths[layer] * self.widths[layer + 1];
        (0..count).map(|i| ((i * 5 + layer + self.seed) % 7) as f32 - 3.0).collect()
    }

    fn bias(&self, layer: usize) -> Vec<f32> {
        (0..self.widths[layer + 1]).map(|i| ((i + self.seed) % 3) as f32).collect()
    }

    /// The model: from `x`, a `batch` of rows, to `y`.
    pub(super) fn file(&self) -> Vec<u8> {
        let mut network = Network::default().input("x", &format!("batch {}", self.widths[0]));
        let last = self.widths.len() - 2;
        for layer in 0..=last {
            let [rows, cols] = [self.widths[layer] as i64, self.widths[layer + 1] as i64];
            let from = if layer == 0 { "x".to_owned() } else { format!("x{layer}") };
            let to = if layer == last { "y".to_owned() } else { format!("x{}", layer + 1) };
            network = network
                .weight(&format!("w{layer}"), &[rows, cols], &self.weights(layer))
                .weight(&format!("b{layer}"), &[cols], &self.bias(layer))
                .node("MatMul", &format!("{from} w{layer}"), &format!("product{layer}"))
                .node("Add", &format!("product{layer} b{layer}"), &format!("sum{layer}"))
                .node("Relu", &format!("sum{layer}"), &to);
        }
        network.file("y", &[])
    }

    /// What it gives for one row.
    pub(super) fn run(&self, row: &[f32]) -> Vec<f32> {
        let layers = 0..self.widths.len() - 1;
        layers.fold(row.to_vec(), |x, layer| {
            let (weights, bias) = (self.weights(layer), self.bias(layer));
            let width = bias.len();
            let sum = |col: usize| {
                let products = x.iter().enumerate().map(|(i, x)| x * weights[i * width + col]);
                products.sum::<f32>() + bias[col]
            };
            (0..width).map(|col| sum(col).max(0.0)).collect()
        })
    }
}
