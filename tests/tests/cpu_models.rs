//! Whole models on the reference executor against onnxruntime, as imported and after all passes.

use crate::models::imported;
use crate::reference::{cases, relative_error};
use aot_ir::exec::{Executor, Tensor};
use aot_ir::{DType, Graph};
use aot_tests::models::Model;
use cargo_aot::passes;
use std::time::Instant;

const TOLERANCE: f64 = 1e-4;

/// How far onnxruntime's own results may be from the exact ones. basic-pitch subtracts the least logarithm of
/// 53,000 filtered powers, whose sums nearly cancel: the rounding errors of one of them are in every
/// element, and onnxruntime is 2e-4 from what binary64 gives.
fn allowance(name: &str) -> f64 {
    if name == "basic-pitch" { 2e-4 } else { 0.0 }
}

/// Inputs of at most this many elements are run on graphs as imported, too.
const SMALL: usize = 1 << 18;

/// Runs the cases of a model through a graph; those with large inputs only if `all`.
fn check(what: &str, graph: &Graph, name: &str, all: bool) {
    let tolerance = TOLERANCE + allowance(name);
    let executor = Executor::new(graph).unwrap_or_else(|e| panic!("{name}, {what}: {e}"));
    for case in cases(name) {
        let inputs = case.inputs_of(graph);
        // Sequences are worth more than pixels: a token stands for a vector.
        let cost = |x: &Tensor| if x.dtype() == DType::I64 { 384 * x.len() } else { x.len() };
        if !all && inputs.iter().map(cost).sum::<usize>() > SMALL {
            continue;
        }
        let start = Instant::now();
        let found = executor.run(&inputs);
        let found = found.unwrap_or_else(|e| panic!("{name}, {what}, {}: {e}", case.name));
        let seconds = start.elapsed().as_secs_f64();
        for ((output, _), (found, expected)) in
            graph.outputs.iter().zip(found.iter().zip(&case.outputs_of(graph)))
        {
            let error = relative_error(found, expected);
            println!("{name} {what} {} {output}: {error:.2e}, {seconds:.3} s", case.name);
            assert!(
                error <= tolerance,
                "{name}, {what}, {}: `{output}` is off by {error:e}: {:?} is not {:?}",
                case.name,
                found.shape(),
                expected.shape()
            );
        }
    }
}

fn both(name: &str) -> Graph {
    let graph = imported(Model::of(name));
    check("imported", &graph, name, false);
    let after =
        passes::run(&graph, &passes::Options::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(after.check(), Ok(()), "{name}");
    println!("{name}: {} nodes became {}", graph.nodes().len(), after.nodes().len());
    check("after passes", &after, name, true);
    after
}

/// How many nodes of each operator there are.
fn count(graph: &Graph, name: &str) -> usize {
    graph.nodes().filter(|(_, n)| n.op.name() == name).count()
}

#[test]
fn minilm() {
    let graph = both("minilm");
    assert_eq!(count(&graph, "attention"), 6);
    assert_eq!(count(&graph, "normalize"), 13);
    assert_eq!(count(&graph, "softmax"), 0);
    // Per layer: queries, keys and values together, output, and two of the feed-forward part.
    assert_eq!(count(&graph, "matmul"), 24);
}

#[test]
fn det() {
    both("det");
}

#[test]
fn rec() {
    let graph = both("rec");
    assert_eq!(count(&graph, "attention"), 2);
}

#[test]
fn cls() {
    both("cls");
}

#[test]
fn basic_pitch() {
    let graph = both("basic-pitch");
    let executor = Executor::new(&graph).expect("fits");
    let oracle = Executor::wide(&graph).expect("fits");
    for case in cases("basic-pitch") {
        let inputs = case.inputs_of(&graph);
        let (found, exact) = (executor.run(&inputs), oracle.run(&inputs));
        for (found, exact) in found.expect("runs").iter().zip(&exact.expect("runs")) {
            assert!(relative_error(found, exact) <= TOLERANCE, "{}", case.name);
        }
    }
}

#[test]
fn common_det() {
    both("common-det");
}

#[test]
fn terrain() {
    both("terrain");
}

#[test]
fn tashkeel() {
    both("tashkeel");
}

/// The cases of a model are consecutive calls.
fn calls(name: &str) {
    let graph = both(name);
    let state = Model::of(name).state;
    let executor = Executor::new(&graph).expect("fits");
    let mut carried: Vec<(String, Tensor)> = Vec::new();
    for case in cases(name) {
        let mut inputs = case.inputs_of(&graph);
        for (&id, input) in graph.inputs.iter().zip(&mut inputs) {
            let own = carried.iter().find(|(given, _)| *given == graph[id].name);
            if let Some((_, own)) = own {
                *input = own.clone();
            }
        }
        let found = executor.run(&inputs).expect("runs");
        carried.clear();
        for (((output, _), found), expected) in
            graph.outputs.iter().zip(found).zip(case.outputs_of(&graph))
        {
            let error = relative_error(&found, &expected);
            assert!(error <= TOLERANCE, "{name}, {}: `{output}` is off by {error:e}", case.name);
            if let Some((given, _)) = state.iter().find(|(_, made)| made == output) {
                carried.push(((*given).to_owned(), found));
            }
        }
        assert_eq!(carried.len(), state.len(), "{name}: a state is missing");
    }
}

#[test]
fn voice() {
    for name in
        ["vad", "vad-8k", "vad-op15", "vad-half", "vad-openvino", "vad-ifless", "vad-sequence"]
    {
        calls(name);
    }
}
