//! Models with many faults, and models that are too much.

use super::super::proto::{FunctionProto, GraphProto, NodeProto, OperatorSetId};
use super::make::*;

fn in_domain(mut node: NodeProto, domain: &str) -> NodeProto {
    domain.clone_into(&mut node.domain);
    node
}

fn text(mut node: NodeProto, name: &str, text: &str) -> NodeProto {
    let attribute = super::super::proto::AttributeProto {
        name: name.to_owned(),
        s: text.as_bytes().to_vec().into(),
        strings: vec![text.as_bytes().to_vec().into()],
        ..Default::default()
    };
    node.attribute.push(attribute);
    node
}

/// Ten things, each for a reason of its own: all are told, with node, operator, version and remedy.
#[test]
fn ten_unsupported_things_are_ten_lines() {
    let wide = "m";
    let nodes = vec![
        node("Frobnicate", "x", "a"),
        in_domain(node("Warp", "x", "b"), "com.example"),
        node("StringNormalizer", "x", "c"),
        node("StringSplit", "x", "d"),
        node("ReduceSum", "x s", "e"),
        node("LpNormalization", "x", "f").int("p", 3),
        in_domain(node("MatMulNBits", "x w w", "g"), "com.microsoft")
            .int("N", 2)
            .int("K", 2)
            .int("bits", 3)
            .int("block_size", 16),
        node("Det", wide, "h"),
        text(node("RNN", "t w3 r3", "i"), "activations", "Sinus"),
        node("ConstantOfShape", "s", "j"),
        // What reads the result of one of them is no fault of its own.
        node("Exp", "a", "k"),
        node("Add", "k j", "y"),
    ];
    let inputs = vec![
        value("x", F32, "2 2"),
        value("s", I64, "2"),
        value("m", F32, "9 9"),
        value("t", F32, "n 1 2"),
    ];
    let stored = vec![
        floats("w", &[2, 2], &[0.0; 4]),
        floats("w3", &[1, 3, 2], &[0.0; 6]),
        floats("r3", &[1, 3, 3], &[0.0; 9]),
    ];
    let mut model = model(17, inputs, stored, nodes, "y b c d e f g h i");
    for domain in ["com.example", "com.microsoft"] {
        let import = OperatorSetId { domain: domain.to_owned(), version: 1 };
        model.opset_import.push(import);
    }
    let error = import_error(&model, "n=1..400");
    assert!(error.contains("10 nodes are not supported"), "{error}");
    let lines: Vec<&str> = error.lines().skip(1).collect();
    assert_eq!(lines.len(), 10, "{error}");
    let expected = [
        ("Frobnicate", "onnx, opset 17", "export the model without it"),
        ("Warp", "com.example, opset 1", "export the model without them"),
        ("StringNormalizer", "onnx, opset 17", "export the model without it"),
        ("StringSplit", "onnx, opset 17", "export the model without it"),
        ("ReduceSum", "onnx, opset 17", "static values"),
        ("LpNormalization", "onnx, opset 17", "1 and 2 are supported"),
        ("MatMulNBits", "com.microsoft, opset 1", "2, 4 and 8 are supported"),
        ("Det", "onnx, opset 17", "constant sizes up to"),
        ("RNN", "onnx, opset 17", "activation sinus"),
        ("ConstantOfShape", "onnx, opset 17", "\"0..=N\" to `dims` of [models.test]"),
    ];
    for (line, (operator, version, remedy)) in lines.iter().zip(expected) {
        let named = format!("node `the {operator}`: {operator} (domain {version})");
        assert!(line.contains(&named) && line.contains(remedy), "{line}");
    }
}

/// Types, ranks, attributes and counts that do not fit: the node is named.
#[test]
fn ill_typed_nodes_are_named() {
    let cases = [
        node("MatMul", "x i", "y"),
        node("Conv", "x x", "y"),
        node("Transpose", "x", "y").ints("perm", &[0, 0]),
        node("Concat", "x", "y").int("axis", 7),
        node("Softmax", "x", "y").int("axis", -5),
        node("Add", "x", "y"),
        node("Where", "x x x", "y"),
        node("And", "x x", "y"),
        node("Gather", "x x", "y"),
        node("Gemm", "x3 x", "y"),
        node("BatchNormalization", "x x x x x", "y"),
        node("Squeeze", "x three", "y"),
    ];
    for node in cases {
        let operator = node.op_type.clone();
        let inputs =
            vec![value("x", F32, "2 2"), value("i", I64, "2 2"), value("x3", F32, "1 2 2")];
        let model = model(17, inputs, vec![ints("three", &[1], &[3])], vec![node], "y");
        let error = import_error(&model, "");
        assert!(error.contains(&format!("`the {operator}`")), "{operator}: {error}");
    }
}

/// Graphs within graphs, and functions that call themselves.
#[test]
fn nesting_has_a_limit() {
    let mut inner = GraphProto {
        node: vec![node("Exp", "x", "inner")],
        output: vec![value("inner", F32, "")],
        ..Default::default()
    };
    for _ in 0..27 {
        let node = node("If", "c", "inner")
            .graph("then_branch", inner.clone())
            .graph("else_branch", GraphProto { node: vec![], ..inner.clone() });
        inner = GraphProto { node: vec![node], ..inner };
        // Only one branch goes deeper, so that the model stays small.
        if let Some(attribute) = inner.node[0].attribute.get_mut(1) {
            let shallow = GraphProto {
                node: vec![super::make::node("Exp", "x", "inner")],
                output: vec![value("inner", F32, "")],
                ..Default::default()
            };
            attribute.g = Some(Box::new(shallow));
        }
    }
    let deep = model(
        17,
        vec![value("x", F32, "2"), value("c", 9, "")],
        vec![],
        vec![node("If", "c", "y").graph("then_branch", inner.clone()).graph("else_branch", inner)],
        "y",
    );
    let error = import_error(&deep, "");
    assert!(error.contains("nested more than"), "{error}");

    let mut recursive = model(
        17,
        vec![value("x", F32, "2")],
        vec![],
        vec![in_domain(node("Again", "x", "y"), "own")],
        "y",
    );
    recursive.opset_import.push(OperatorSetId { domain: "own".to_owned(), version: 1 });
    recursive.functions.push(FunctionProto {
        name: "Again".to_owned(),
        domain: "own".to_owned(),
        input: vec!["a".to_owned()],
        output: vec!["b".to_owned()],
        node: vec![in_domain(node("Again", "a", "b"), "own")],
        opset_import: recursive.opset_import.clone(),
        ..Default::default()
    });
    let error = import_error(&recursive, "");
    assert!(error.contains("nested more than"), "{error}");
}

/// Tensors that no memory holds are refused when they are made, not when they are filled.
#[test]
fn sizes_have_a_limit() {
    let huge = i64::MAX / 2;
    for (nodes, named) in [
        (vec![node("ConstantOfShape", "huge", "y")], "node `y` (an output)"),
        (vec![node("Expand", "x huge", "y")], "`the Expand`"),
        (vec![node("Tile", "x huge", "a"), node("Tile", "a huge", "y")], "`the Tile`"),
    ] {
        let stored = vec![ints("huge", &[1], &[huge])];
        let error = import_error(&model(17, vec![value("x", F32, "1")], stored, nodes, "y"), "");
        assert!(error.contains(named), "{error}");
        assert!(error.contains("more elements than can be held"), "{error}");
    }
}
