//! Branches that are not decided when a model is imported.

use super::super::proto::{GraphProto, NodeProto};
use super::make::*;
use aot_ir::exec::{ExecError, Executor, Tensor};
use aot_ir::{DType, Graph};

fn branch(nodes: Vec<NodeProto>) -> GraphProto {
    GraphProto {
        node: nodes,
        output: vec![value("inner", F32, "")],
        initializer: vec![ints("axis", &[1], &[1]), ints("two", &[1], &[2])],
        ..Default::default()
    }
}

fn run(graph: &Graph, inputs: &[(DType, &[usize], &[f64])]) -> Result<Vec<f64>, ExecError> {
    let tensor = |(dtype, shape, values): &(DType, &[usize], &[f64])| {
        Tensor::from_f64(*dtype, shape.to_vec(), values)
    };
    let inputs: Vec<Tensor> = inputs.iter().map(tensor).collect::<Result<_, _>>()?;
    Ok(Executor::new(graph)?.run(&inputs)?[0].to_f64())
}

/// `if the extent is 1, drop the axis`, where later nodes need that it is dropped.
#[test]
fn an_axis_that_may_be_dropped_is() {
    let nodes = vec![
        node("Shape", "x", "s"),
        node("Gather", "s at", "extent"),
        node("Equal", "extent one", "c"),
        node("If", "c", "y")
            .graph("then_branch", branch(vec![node("Squeeze", "x axis", "inner")]))
            .graph("else_branch", branch(vec![node("Identity", "x", "inner")])),
    ];
    let stored = vec![ints("at", &[1], &[1]), ints("one", &[1], &[1])];
    let model = model(17, vec![value("x", F32, "n t 2")], stored, nodes, "y");
    let imported = import_ok(&model, "n=1..4 t=1..9");
    assert_eq!(summary(&imported).1, "n 2");
    let x: &[f64] = &[1.0, 2.0, 3.0, 4.0];
    assert_eq!(run(&imported.graph, &[(DType::F32, &[2, 1, 2], x)]).unwrap(), x);
    let error = run(&imported.graph, &[(DType::F32, &[1, 2, 2], x)]).unwrap_err().to_string();
    assert!(error.contains("needs t = 1"), "{error}");
}

/// A branch that can't be at these sizes leaves the other; a run that asks for it fails.
#[test]
fn an_impossible_branch_is_refused_when_it_is_asked_for() {
    let nodes = vec![
        node("Equal", "rate fast", "c"),
        node("If", "c", "y")
            .graph("then_branch", branch(vec![node("Exp", "x", "inner")]))
            .graph("else_branch", branch(vec![node("Reshape", "x two", "inner")])),
    ];
    let inputs = vec![value("x", F32, "3"), value("rate", I64, "")];
    let stored = vec![ints("fast", &[], &[16000])];
    let imported = import_ok(&model(17, inputs, stored, nodes, "y"), "");
    let graph = &imported.graph;
    assert_eq!(graph.check(), Ok(()));
    let x: (DType, &[usize], &[f64]) = (DType::F32, &[3], &[0.0; 3]);
    assert_eq!(run(graph, &[x, (DType::I64, &[], &[16000.0])]).unwrap(), [1.0; 3]);
    let error = run(graph, &[x, (DType::I64, &[], &[8000.0])]).unwrap_err().to_string();
    assert!(error.contains("`the If` needs the condition of `the If` = 1"), "{error}");
}

/// Where neither branch can be, the first one's reason is given.
#[test]
fn two_impossible_branches_are_an_error() {
    let nodes = vec![
        node("Equal", "rate rate", "c"),
        node("If", "c", "y")
            .graph("then_branch", branch(vec![node("Frobnicate", "x", "inner")]))
            .graph("else_branch", branch(vec![node("Reshape", "x two", "inner")])),
    ];
    let inputs = vec![value("x", F32, "3"), value("rate", I64, "")];
    let error = import_error(&model(17, inputs, vec![], nodes, "y"), "");
    assert!(error.contains("`the Frobnicate`"), "{error}");
}
