//! Texts, of which graphs have the places.

use super::super::proto::{AttributeProto, NodeProto, TensorProto};
use super::make::*;

fn texts(name: &str, dims: &[i64], texts: &[&'static str]) -> TensorProto {
    TensorProto {
        dims: dims.to_vec(),
        data_type: super::super::tensor::STRING,
        string_data: texts.iter().map(|text| text.as_bytes().into()).collect(),
        name: name.to_owned(),
        ..Default::default()
    }
}

fn labels(found: &[(String, Vec<String>)]) -> Vec<(&str, String)> {
    found.iter().map(|(name, texts)| (name.as_str(), texts.join(" "))).collect()
}

#[test]
fn texts_that_are_looked_up_are_places() {
    let nodes = vec![
        node("Reshape", "words grid", "table"),
        node("Gather", "table x", "rows"),
        node("Identity", "rows", "y"),
        node("Add", "x x", "z"),
    ];
    let stored = vec![texts("words", &[4], &["a", "b", "", "d"]), ints("grid", &[2], &[2, 2])];
    let model = model(17, vec![value("x", I64, "n")], stored, nodes, "y z");
    let imported = import_ok(&model, "n=1..8");
    assert_eq!(labels(&imported.labels), [("y", "a b  d".to_owned())]);
    let graph = &imported.graph;
    assert_eq!(graph[graph.outputs[0].1].dtype, aot_ir::DType::I64);
    assert_eq!(graph.symbols.show_shape(&graph[graph.outputs[0].1].shape), "[n, 2]");
}

#[test]
fn labels_of_classes_are_places() {
    let strings = |node: NodeProto, name: &str, list: &[&'static str]| {
        let strings = list.iter().map(|text| text.as_bytes().into()).collect();
        let attribute = AttributeProto { name: name.to_owned(), strings, ..Default::default() };
        let mut node = node;
        node.attribute.push(attribute);
        node.domain = "ai.onnx.ml".to_owned();
        node
    };
    let encoder = node("LabelEncoder", "x", "y").ints("keys_int64s", &[4, 9]);
    let nodes = vec![strings(encoder, "values_strings", &["four", "nine"])];
    let mut model = model(17, vec![value("x", I64, "n")], vec![], nodes, "y");
    let classical =
        super::super::proto::OperatorSetId { domain: "ai.onnx.ml".to_owned(), version: 3 };
    model.opset_import.push(classical);
    let imported = import_ok(&model, "n=1..8");
    // What no key is for stands last.
    assert_eq!(labels(&imported.labels), [("y", "four nine _Unused".to_owned())]);
}

#[test]
fn texts_are_not_computed_with() {
    let words = || vec![texts("words", &[2], &["a", "b"]), texts("b", &[], &["b"])];
    let inputs = || vec![value("x", I64, "n"), value("c", 9, "")];
    let nodes = vec![node("Gather", "words x", "found"), node("Equal", "found b", "y")];
    let error = import_error(&model(17, inputs(), words(), nodes, "y"), "n=1..8");
    assert!(error.contains("texts can be moved, but not computed with"), "{error}");
    // A branch gives places of one list or another.
    let branch = |out: &str| {
        let mut graph = model(17, vec![], vec![], vec![node("Gather", "words x", out)], out);
        graph.graph.take().unwrap()
    };
    let choice =
        node("If", "c", "y").graph("then_branch", branch("t")).graph("else_branch", branch("e"));
    let mut lost = model(17, inputs(), words(), vec![choice], "y");
    lost.graph.as_mut().unwrap().output = vec![value("y", 8, "n")];
    let error = import_error(&lost, "n=1..8");
    assert!(error.contains("texts that pass through control flow"), "{error}");
    let wrong = vec![texts("words", &[3], &["a", "b"])];
    let nodes = vec![node("Gather", "words x", "y")];
    let error = import_error(&model(17, inputs(), wrong, nodes, "y"), "n=1..8");
    assert!(error.contains("2 texts are stored for shape [3]"), "{error}");
}
