//! Models that are wrong or not supported.

use super::make::*;
use crate::import::{AxisSpec, DimInfo, ImportError, describe, import};
use prost::Message;

fn simple() -> super::super::proto::ModelProto {
    let inputs = vec![value("x", F32, "batch 3 ?")];
    model(17, inputs, vec![floats("w", &[1], &[2.0])], vec![node("Mul", "x w", "y")], "y")
}

#[test]
fn every_prefix_of_a_model_is_refused_without_panic() {
    let folder = Folder::new();
    let path = folder.0.join("cut.onnx");
    let bytes = simple().encode_to_vec();
    for length in 0..bytes.len() {
        std::fs::write(&path, &bytes[..length]).unwrap();
        // A cut between two fields leaves a model that lacks something.
        if let Ok(imported) = import(&path, &options("batch=1..4 x_2=1..4")) {
            assert_eq!(imported.graph.outputs.len(), 1);
        }
    }
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let error = import(&path, &options("")).unwrap_err();
    assert!(matches!(error, ImportError::Malformed { .. }), "{error}");
    let missing = import(&folder.0.join("none.onnx"), &options("")).unwrap_err().to_string();
    assert!(missing.contains("none.onnx"), "{missing}");
}

#[test]
fn unbound_dims_are_reported_together() {
    let error = import_with(&simple(), &options("")).unwrap_err();
    let ImportError::UnboundDims { dims } = &error else { panic!("{error}") };
    let found: Vec<(&str, usize)> = dims.iter().map(|d| (d.dim.as_str(), d.axis)).collect();
    assert_eq!(found, [("batch", 0), ("x_2", 2)]);
}

#[test]
fn what_the_options_name_must_exist() {
    let error = import_error(&simple(), "batch=1..4 x_2=3 hight=5");
    assert_eq!(error, "the model has no dim `hight`; it has `batch`, `x_2`");
    let mut o = options("n=1..4");
    o.inputs.insert("z".to_owned(), vec![]);
    assert!(import_with(&simple(), &o).unwrap_err().to_string().contains("no input `z`"));
    let mut o = options("n=1..4");
    let axes = vec![AxisSpec::Named("n".to_owned()), AxisSpec::Keep, AxisSpec::Fixed(5)];
    o.inputs.insert("x".to_owned(), axes);
    let imported = import_with(&simple(), &o).unwrap();
    assert_eq!(summary(&imported).1, "n 3 5");
}

#[test]
fn a_description_needs_no_sizes() {
    let folder = Folder::new();
    let path = folder.0.join("m.onnx");
    std::fs::write(&path, simple().encode_to_vec()).unwrap();
    let described = describe(&path).unwrap();
    assert_eq!(described.inputs.len(), 1);
    let dims = described.inputs[0].dims.as_ref().unwrap();
    assert_eq!(dims[0], DimInfo::Named("batch".to_owned()));
    assert_eq!(dims[2], DimInfo::Unnamed("x_2".to_owned()));
}

#[test]
fn a_cycle_names_its_nodes() {
    let nodes = vec![
        node("Add", "x c", "a"),
        node("Exp", "a", "b"),
        node("Log", "b", "c"),
        node("Neg", "c", "y"),
    ];
    let model = model(17, vec![value("x", F32, "2")], vec![], nodes, "y");
    let error = import_error(&model, "");
    assert!(error.contains("cycle"), "{error}");
    for name in ["the Add", "the Exp", "the Log"] {
        assert!(error.contains(name), "{error}");
    }
    assert!(!error.contains("the Neg"), "{error}");
}

#[test]
fn unsupported_operators_are_listed_together() {
    let nodes = vec![
        node("Frobnicate", "x", "a"),
        node("Exp", "a", "b"),
        node("StringNormalizer", "x", "c"),
        node("Add", "b c", "y"),
    ];
    let error = import_error(&model(17, vec![value("x", F32, "2")], vec![], nodes, "y"), "");
    assert!(error.contains("2 nodes are not supported"), "{error}");
    assert!(error.contains("`the Frobnicate`: Frobnicate (domain onnx, opset 17)"), "{error}");
    assert!(error.contains("StringNormalizer"), "{error}");
}

#[test]
fn wrong_types_shapes_and_names_are_told() {
    let two = |a, b| vec![value("x", a, "2"), value("y", b, "3")];
    let add = || vec![node("Add", "x y", "z")];
    let error = import_error(&model(17, two(F32, I64), vec![], add(), "z"), "");
    assert!(error.contains("node `the Add` (Add)") && error.contains("one type"), "{error}");
    let error = import_error(&model(17, two(F32, F32), vec![], add(), "z"), "");
    assert!(error.contains("the Add"), "{error}");
    let error = import_error(&model(17, vec![], vec![], add(), "z"), "");
    assert!(error.contains("node `the Add` reads `x`, which nothing makes"), "{error}");
    let twice = vec![node("Exp", "x", "z"), node("Log", "x", "z")];
    let error = import_error(&model(17, two(F32, F32), vec![], twice, "z"), "");
    assert!(error.contains("two nodes make the value `z`"), "{error}");
    let error = import_error(&model(0, two(F32, F32), vec![], add(), "z"), "");
    assert!(error.contains("operator set 0"), "{error}");
    let error = import_error(
        &model(
            17,
            vec![value("x", F32, "4611686018427387904")],
            vec![],
            vec![node("Exp", "x", "z")],
            "z",
        ),
        "",
    );
    assert!(error.contains("input `x`"), "{error}");
}

#[test]
fn stored_tensors_are_checked() {
    let with = |tensor| {
        let nodes = vec![node("Mul", "x w", "y")];
        import_error(&model(17, vec![value("x", F32, "2")], vec![tensor], nodes, "y"), "")
    };
    let error = with(floats("w", &[3], &[1.0]));
    assert!(error.contains("tensor `w`: 1 elements are stored where 3 are needed"), "{error}");
    let error = with(floats("w", &[1 << 62, 1 << 62], &[1.0]));
    assert!(error.contains("too large"), "{error}");
    let error = with(floats("w", &[-1], &[1.0]));
    assert!(error.contains("negative"), "{error}");
    let mut strings = floats("w", &[1], &[]);
    strings.data_type = 8;
    assert!(with(strings).contains("texts are stored"));
}

#[test]
fn external_data_is_found_and_checked() {
    let external = |location: &str, offset: &str| {
        let mut w = floats("w", &[2], &[]);
        w.data_location = super::super::proto::EXTERNAL;
        for (key, value) in [("location", location), ("offset", offset), ("length", "8")] {
            w.external_data.push(super::super::proto::StringEntry {
                key: key.to_owned(),
                value: value.to_owned(),
            });
        }
        model(17, vec![value("x", F32, "2")], vec![w], vec![node("Mul", "x w", "y")], "y")
    };
    let folder = Folder::new();
    std::fs::write(folder.0.join("w.data"), [0u8; 20]).unwrap();
    let run = |location: &str, offset: &str| {
        let path = folder.0.join("m.onnx");
        std::fs::write(&path, external(location, offset).encode_to_vec()).unwrap();
        import(&path, &options(""))
    };
    let imported = run("w.data", "9").unwrap();
    assert_eq!(imported.sources.len(), 2);
    let error = run("w.data", "16").unwrap_err().to_string();
    assert!(error.contains("has 20 bytes"), "{error}");
    let error = run("gone.data", "0").unwrap_err().to_string();
    assert!(error.contains("gone.data"), "{error}");
    for outside in ["../w.data", "/etc/passwd", ""] {
        let error = run(outside, "0").unwrap_err().to_string();
        assert!(error.contains("not inside"), "{error}");
    }
}

#[test]
fn structure_from_data_is_refused_with_a_reason() {
    let inputs = vec![value("x", F32, "6"), value("s", I64, "2")];
    let model = model(17, inputs, vec![], vec![node("ReduceSum", "x s", "y")], "y");
    let error = import_error(&model, "");
    let says =
        "`axes` depends on the model's input data, but must be known when the model is built";
    assert!(error.contains(says), "{error}");
}

#[test]
fn what_onnxruntime_made_for_one_machine_is_refused_with_a_remedy() {
    let mut reordered = node("ReorderInput", "x", "y");
    reordered.domain = "com.microsoft.nchwc".to_owned();
    let mut model = model(17, vec![value("x", F32, "1 8 4 4")], vec![], vec![reordered], "y");
    let domain = "com.microsoft.nchwc".to_owned();
    model.opset_import.push(super::super::proto::OperatorSetId { domain, version: 1 });
    let error = import_error(&model, "");
    assert!(error.contains("save it with at most ORT_ENABLE_EXTENDED"), "{error}");
}

#[test]
fn declared_shapes_that_are_wrong_are_warned_of() {
    let mut model = simple();
    model.graph.as_mut().unwrap().output = vec![value("y", F32, "batch 4 ?")];
    let imported = import_ok(&model, "batch=1..4 x_2=1..4");
    assert_eq!(imported.warnings.len(), 1, "{:?}", imported.warnings);
    assert!(imported.warnings[0].contains("declared with shape [batch, 4, ?]"));
}
