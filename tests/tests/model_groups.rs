//! The groups of real models, interpreted through the planned arena, against the reference executor.

use crate::groups::distances;
use crate::models::imported;
use aot_ir::exec::Tensor;
use aot_ir::{DType, Graph};
use aot_tests::models::Model;
use aot_tests::net::inputs;
use cargo_aot::lower::{LowerOptions, Precision, lower};
use cargo_aot::passes;

fn check(graph: &Graph, atoms: &[i64], inputs: &[Tensor], groups: usize) {
    let options = LowerOptions { precision: Precision::F32, precision_for: Vec::new() };
    let plan = lower(graph, &options).unwrap();
    assert_eq!(plan.steps.len(), groups);
    for (distance, _) in distances(graph, &plan, atoms, inputs).unwrap() {
        assert!(distance < 1e-5, "off by {distance:e}");
    }
}

/// Embeddings and one layer, with the padding mask as it is exported: some tokens of a row, none, all.
#[test]
fn a_layer_of_minilm_is_seven_groups() {
    let mut graph = imported(Model::of("minilm"));
    let (end, _) = graph.values().find(|(_, v)| v.name == "layer_norm_2").unwrap();
    graph.outputs = vec![("layer".to_owned(), end)];
    let graph = passes::run(&graph, &passes::Options::default()).unwrap();
    let integers =
        |values: [i64; 12]| Tensor::from_vec(vec![3, 4], values.to_vec()).expect("12 values");
    let tensors = [
        integers([101, 7592, 2088, 102, 101, 3835, 102, 0, 0, 0, 0, 0]),
        integers([1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0]),
        integers([0; 12]),
    ];
    let sizes = [("batch".to_owned(), 3), ("sequence".to_owned(), 4)];
    let (atoms, _) = inputs(&graph, &sizes, 0);
    check(&graph, &atoms, &tensors, 8);
}

/// Ten squeeze-excite blocks among 62 convolutions, which pooling and scaling surround.
#[test]
fn text_detection_is_84_groups() {
    let graph = imported(Model::of("det"));
    let graph = passes::run(&graph, &passes::Options::default()).unwrap();
    let sizes = [("n".to_owned(), 1), ("h".to_owned(), 32), ("w".to_owned(), 64)];
    let (atoms, tensors) = inputs(&graph, &sizes, 5);
    assert_eq!(graph[graph.inputs[0]].dtype, DType::F32);
    check(&graph, &atoms, &tensors, 84);
}

/// One network or the other, each for windows of its own length; nothing of the one that is not asked for is done or checked.
#[test]
fn voice_at_either_rate() {
    let model = Model::of("vad");
    let graph = imported(model);
    let graph = passes::run(&graph, &passes::Options::default()).unwrap();
    let options = LowerOptions { precision: Precision::F32, precision_for: Vec::new() };
    let plan = lower(&graph, &options).unwrap();
    let at = |samples: i64, rate: i64| {
        let sizes = [("samples".to_owned(), samples), ("sr".to_owned(), rate)];
        let (atoms, tensors) = inputs(&graph, &sizes, 5);
        distances(&graph, &plan, &atoms, &tensors)
    };
    for (samples, rate) in [(576, 16000), (288, 8000)] {
        for (distance, _) in at(samples, rate).unwrap() {
            assert!(distance < 1e-5, "off by {distance:e} at {rate}");
        }
    }
    for (samples, rate) in [(900, 16000), (576, 8000)] {
        let error = at(samples, rate).unwrap_err();
        assert!(error.contains("decoder") && error.contains("needs"), "{error}");
    }
}
