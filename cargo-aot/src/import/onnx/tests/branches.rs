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

/// A branch's shapes are checked where it is taken: each takes another extent of `t`.
#[test]
fn only_the_branch_that_is_taken_is_checked() {
    let two = |name: &str| vec![node("Reshape", &format!("x {name}"), "inner")];
    let mut then = branch([two("four"), vec![]].concat());
    then.node[0].output = vec!["flat".to_owned()];
    then.node.push(node("MatMul", "flat w4", "inner"));
    let mut otherwise = branch(two("six"));
    otherwise.node[0].output = vec!["flat".to_owned()];
    otherwise.node.push(node("MatMul", "flat w6", "inner"));
    let nodes = vec![
        node("Equal", "rate fast", "c"),
        node("If", "c", "y").graph("then_branch", then).graph("else_branch", otherwise),
    ];
    let inputs = vec![value("x", F32, "t"), value("rate", I64, "")];
    let stored = vec![
        ints("fast", &[], &[16000]),
        ints("four", &[2], &[1, 4]),
        ints("six", &[2], &[1, 6]),
        floats("w4", &[4, 2], &[1.0; 8]),
        floats("w6", &[6, 2], &[2.0; 12]),
    ];
    let imported = import_ok(&model(17, inputs, stored, nodes, "y"), "t=1..9");
    let graph = &imported.graph;
    assert_eq!(graph.check(), Ok(()));
    let at = |rate: f64, n: usize| {
        run(graph, &[(DType::F32, &[n], &vec![1.0; n]), (DType::I64, &[], &[rate])])
    };
    assert_eq!(at(16000.0, 4).unwrap(), [4.0; 2]);
    assert_eq!(at(8000.0, 6).unwrap(), [12.0; 2]);
    for (rate, n) in [(16000.0, 6), (8000.0, 4)] {
        let error = at(rate, n).unwrap_err().to_string();
        assert!(error.contains("`the Reshape` needs t = "), "{error}");
    }
}

/// Branches of other extents: the output has those of the one that is taken. The condition is one on sizes.
#[test]
fn branches_may_have_other_extents() {
    let nodes = vec![
        node("Shape", "x", "s"),
        node("Gather", "s zero", "t"),
        node("Less", "t five", "c"),
        node("If", "c", "y")
            .graph("then_branch", branch(vec![node("Concat", "x x", "inner").int("axis", 0)]))
            .graph("else_branch", branch(vec![node("CumSum", "x zero", "inner")])),
        node("Shape", "y", "sy"),
        node("Gather", "sy zero", "rows"),
        node("Range", "zero rows unit", "z"),
    ];
    let stored = vec![ints("zero", &[], &[0]), ints("five", &[], &[5]), ints("unit", &[], &[1])];
    let imported =
        import_ok(&model(17, vec![value("x", F32, "t")], stored, nodes, "y z"), "t=1..9");
    let graph = &imported.graph;
    assert_eq!(graph.check(), Ok(()));
    for (n, expected) in [(2usize, vec![1.0, 1.0, 1.0, 1.0]), (5, vec![1.0, 2.0, 3.0, 4.0, 5.0])] {
        let x = Tensor::from_f64(DType::F32, vec![n], &vec![1.0; n]).unwrap();
        let found = Executor::new(graph).unwrap().run(&[x]).unwrap();
        let rows: Vec<f64> = (0..expected.len()).map(|i| i as f64).collect();
        assert_eq!((found[0].to_f64(), found[1].to_f64()), (expected, rows));
    }
}

/// What both branches know stays known, and is checked where it is taken.
#[test]
fn known_results_stay_known() {
    let known = |from: &str| branch(vec![node("Reshape", from, "inner")]);
    let nodes = vec![
        node("Shape", "x", "s"),
        node("Equal", "rate fast", "c"),
        node("If", "c", "target")
            .graph("then_branch", known("s two"))
            .graph("else_branch", known("turned two")),
        node("Reshape", "x target", "y"),
    ];
    let inputs = vec![value("x", F32, "2 t"), value("rate", I64, "")];
    let stored =
        vec![ints("fast", &[], &[1]), ints("two", &[1], &[2]), ints("turned", &[2], &[-1, 2])];
    let imported = import_ok(&model(17, inputs, stored, nodes, "y"), "t=1..9");
    let graph = &imported.graph;
    let x = Tensor::from_f64(DType::F32, vec![2, 3], &[1.0; 6]).unwrap();
    for (rate, shape) in [(1i64, [2, 3]), (0, [3, 2])] {
        let rate = Tensor::from_vec(vec![], vec![rate]).unwrap();
        let found = Executor::new(graph).unwrap().run(&[x.clone(), rate]).unwrap();
        assert_eq!(found[0].shape(), shape);
    }
}
