//! Loops, scans and recurrent layers: what is unrolled, and what becomes a loop.

use super::super::proto::{GraphProto, NodeProto, TensorProto, ValueInfo};
use super::make::*;
use crate::import::Imported;
use crate::passes;
use aot_ir::exec::{Executor, Tensor};
use aot_ir::op::LoopAttrs;
use aot_ir::{Graph, Op};

pub(super) const BOOL: i32 = 9;

pub(super) fn body(inputs: Vec<ValueInfo>, nodes: Vec<NodeProto>, outputs: &str) -> GraphProto {
    model(17, inputs, vec![], nodes, outputs).graph.unwrap()
}

/// `s = s + x[i]`, and `s` is collected.
fn sums() -> GraphProto {
    let nodes = vec![
        node("Gather", "x i", "row"),
        node("Add", "s row", "next"),
        node("Identity", "c", "again"),
        node("Identity", "next", "each"),
    ];
    let inputs = vec![value("i", I64, ""), value("c", BOOL, ""), value("s", F32, "2")];
    body(inputs, nodes, "again next each")
}

pub(super) fn loops(graph: &Graph) -> Vec<&LoopAttrs> {
    let of = graph.nodes().filter_map(|(_, n)| match &n.op {
        Op::Loop(attrs) => Some(&**attrs),
        _ => None,
    });
    of.collect()
}

/// Results of the import and of what the passes make of it, which must be equal.
pub(super) fn run(imported: &Imported, inputs: &[Tensor]) -> Vec<Tensor> {
    assert_eq!(imported.graph.check(), Ok(()));
    let found = Executor::new(&imported.graph).unwrap().run(inputs).unwrap();
    let passed = passes::run(&imported.graph, &passes::Options::default()).unwrap();
    assert_eq!(passed.check(), Ok(()));
    let again = Executor::new(&passed).unwrap().run(inputs).unwrap();
    for (a, b) in found.iter().zip(&again) {
        assert_eq!((a.shape(), a.to_f64()), (b.shape(), b.to_f64()));
    }
    found
}

fn floats_of(shape: &[usize], values: &[f32]) -> Tensor {
    Tensor::from_vec(shape.to_vec(), values.to_vec()).unwrap()
}

fn sums_over(count: &str, stored: Vec<TensorProto>, before: Vec<NodeProto>) -> Imported {
    let mut nodes = before;
    nodes.push(node("Loop", &format!("{count} _ start"), "last all").graph("body", sums()));
    let inputs = vec![value("x", F32, "n 2"), value("start", F32, "2")];
    import_ok(&model(17, inputs, stored, nodes, "last all"), "n=1..600")
}

#[test]
fn a_run_time_count_is_a_loop() {
    let nodes = vec![node("Shape", "x", "shape"), node("Gather", "shape zero", "count")];
    let imported = sums_over("count", vec![ints("zero", &[], &[0])], nodes);
    let graph = &imported.graph;
    assert_eq!(loops(graph).len(), 1);
    assert!(graph.guards.is_empty() && loops(graph)[0].body.guards.is_empty());
    let x: Vec<f32> = (0..8).map(|v| v as f32).collect();
    let found = run(&imported, &[floats_of(&[4, 2], &x), floats_of(&[2], &[0.5, 0.0])]);
    assert_eq!(found[0].to_f64(), [12.5, 16.0]);
    assert_eq!((found[1].shape(), found[1].to_f64()[2]), (&[4, 2][..], 2.5));
}

#[test]
fn few_iterations_are_unrolled_and_many_are_not() {
    for (count, looped) in [(3, false), (400, true)] {
        let imported = sums_over("count", vec![ints("count", &[], &[count])], vec![]);
        assert_eq!(loops(&imported.graph).len(), usize::from(looped), "{count}");
        let rows = 500;
        let x: Vec<f32> = (0..rows * 2).map(|v| (v % 7) as f32).collect();
        let found = run(&imported, &[floats_of(&[rows, 2], &x), floats_of(&[2], &[0.0, 0.0])]);
        let sum: f32 = (0..count as usize).map(|i| x[2 * i]).sum();
        assert_eq!(found[0].to_f64()[0], f64::from(sum));
        assert_eq!(found[1].shape(), [count as usize, 2]);
    }
}

#[test]
fn a_condition_from_data_ends_a_loop() {
    let nodes = vec![
        node("Add", "s s", "next"),
        node("ReduceSum", "next", "sum").int("keepdims", 0),
        node("Less", "sum limit", "again"),
        node("Identity", "sum", "each"),
    ];
    let inputs = vec![value("i", I64, ""), value("c", BOOL, ""), value("s", F32, "2")];
    let body = body(inputs, nodes, "again next each");
    let stored = |count: i64| vec![ints("count", &[], &[count]), floats("limit", &[], &[20.0])];
    let of = |count: &str, outputs: &str| {
        vec![node("Loop", &format!("{count} _ x"), outputs).graph("body", body.clone())]
    };
    let inputs = || vec![value("x", F32, "2")];
    let imported = import_ok(&model(17, inputs(), stored(50), of("count", "y z"), "y z"), "");
    assert!(loops(&imported.graph)[0].is_conditional());
    let found = run(&imported, &[floats_of(&[2], &[1.0, 1.0])]);
    assert_eq!((found[0].to_f64(), found[1].to_f64()), (vec![16.0; 2], vec![4.0, 8.0, 16.0, 32.0]));
    // Without a count: nothing limits what is collected, but what is carried needs no limit.
    let error = import_error(&model(17, inputs(), stored(1), of("_", "y z"), "y z"), "");
    assert!(error.contains("nothing limits how often"), "{error}");
}

#[test]
fn a_count_of_its_own_is_known_while_importing() {
    // The condition is decided: the state is a number.
    let nodes = vec![node("Add", "s one", "next"), node("Less", "next five", "again")];
    let inputs = vec![value("i", I64, ""), value("c", BOOL, ""), value("s", I64, "")];
    let stored = vec![ints("one", &[], &[1]), ints("five", &[], &[5]), ints("zero", &[], &[0])];
    let nodes = vec![
        node("Loop", "_ _ zero", "n").graph("body", body(inputs, nodes, "again next")),
        node("Expand", "x n", "y"),
    ];
    let inputs = vec![value("x", F32, "1")];
    let imported = import_ok(&model(17, inputs, stored, nodes, "y"), "");
    assert_eq!(summary(&imported), (vec!["expand"], "5".to_owned()));
}

#[test]
fn a_count_from_data_is_bound_by_the_run() {
    let of = |outputs: &str, nodes: Vec<NodeProto>, results: &str| {
        let mut body = sums();
        body.output.truncate(outputs.split_whitespace().count() + 1);
        let mut all = vec![node("Loop", "count _ start", outputs).graph("body", body)];
        all.extend(nodes);
        let inputs =
            vec![value("x", F32, "9 2"), value("start", F32, "2"), value("count", I64, "")];
        model(17, inputs, vec![], all, results)
    };
    let x: Vec<f32> = (0..18).map(|v| v as f32).collect();
    let data = |count: i64| {
        let count = Tensor::from_vec(vec![], vec![count]).unwrap();
        [floats_of(&[9, 2], &x), floats_of(&[2], &[0.0, 0.0]), count]
    };
    // Nothing is collected: no bound is needed.
    let imported = import_ok(&of("last", vec![], "last"), "");
    for (count, last) in [(0, 0.0), (-4, 0.0), (3, 6.0), (9, 72.0)] {
        assert_eq!(run(&imported, &data(count))[0].to_f64()[0], last);
    }
    let error = import_error(&of("last all", vec![], "all"), "");
    assert!(error.contains("`count`") && error.contains("Aot.toml"), "{error}");
    let imported = import_ok(&of("last all", vec![node("Neg", "all", "y")], "y"), "count=0..9");
    let found = run(&imported, &data(3));
    assert_eq!((found[0].shape(), found[0].to_f64()[4]), (&[3, 2][..], -6.0));
    let error = Executor::new(&imported.graph).unwrap().run(&data(10)).unwrap_err();
    assert!(error.to_string().contains("`count` is 10, outside 0..=9"), "{error}");
}

#[test]
fn values_that_grow_need_few_iterations() {
    let nodes = vec![node("Concat", "s s", "next").int("axis", 0), node("Identity", "c", "again")];
    let inputs = vec![value("i", I64, ""), value("c", BOOL, ""), value("s", F32, "?")];
    let body = body(inputs, nodes, "again next");
    let of = |count: i64| {
        let nodes = vec![node("Loop", "count _ x", "y").graph("body", body.clone())];
        model(17, vec![value("x", F32, "1")], vec![ints("count", &[], &[count])], nodes, "y")
    };
    assert_eq!(summary(&import_ok(&of(3), "")).1, "8");
    let inputs = vec![value("x", F32, "1"), value("z", F32, "n")];
    let nodes = vec![
        node("Shape", "z", "shape"),
        node("Squeeze", "shape", "count"),
        node("Loop", "count _ x", "y").graph("body", body.clone()),
    ];
    let error = import_error(&model(17, inputs, vec![], nodes, "y"), "n=1..8");
    assert!(error.contains("`the Loop`") && error.contains("[1] that is carried"), "{error}");
}

#[test]
fn scans_read_and_write_along_axes_in_both_directions() {
    let nodes = vec![
        node("Mul", "a b", "p"),
        node("Add", "s p", "next"),
        node("Identity", "next", "u"),
        node("Neg", "a", "v"),
    ];
    let inputs = vec![value("s", F32, "2"), value("a", F32, "2"), value("b", F32, "2")];
    let scan = node("Scan", "start x z", "last u v")
        .graph("body", body(inputs, nodes, "next u v"))
        .int("num_scan_inputs", 2)
        .ints("scan_input_axes", &[1, 0])
        .ints("scan_input_directions", &[0, 1])
        .ints("scan_output_axes", &[0, 1])
        .ints("scan_output_directions", &[1, 0]);
    let inputs = vec![value("start", F32, "2"), value("x", F32, "2 n"), value("z", F32, "n 2")];
    let imported = import_ok(&model(17, inputs, vec![], vec![scan], "last u v"), "n=1..8");
    assert_eq!(loops(&imported.graph).len(), 1);
    let start = floats_of(&[2], &[0.0, 1.0]);
    let x = floats_of(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let z = floats_of(&[3, 2], &[1.0, 0.0, 0.0, 1.0, 2.0, 2.0]);
    let found = run(&imported, &[start, x, z]);
    // Products 1·2, 4·2; 2·0, 5·1; 3·1, 6·0.
    assert_eq!(found[0].to_f64(), [5.0, 14.0]);
    assert_eq!(found[1].to_f64(), [5.0, 14.0, 2.0, 14.0, 2.0, 9.0]);
    assert_eq!(found[2].to_f64(), [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0]);
}

#[test]
fn recurrent_layers_project_their_inputs_once() {
    let gru = || node("GRU", "x w r", "y last").int("hidden_size", 2);
    let weights = || {
        let wave = |n: usize| (0..n).map(|i| (i as f32 * 0.7).sin()).collect::<Vec<_>>();
        vec![floats("w", &[1, 6, 3], &wave(18)), floats("r", &[1, 6, 2], &wave(12))]
    };
    let inputs = |steps: &str| vec![value("x", F32, &format!("{steps} n 3"))];
    let few = import_ok(&model(17, inputs("4"), weights(), vec![gru()], "y"), "n=1..8");
    let many = import_ok(&model(17, inputs("t"), weights(), vec![gru()], "y"), "n=1..8 t=0..99");
    assert!(loops(&few.graph).is_empty());
    let passed = passes::run(&many.graph, &passes::Options::default()).unwrap();
    let [attrs] = loops(&passed)[..] else { panic!("one loop") };
    let products = |graph: &Graph| graph.nodes().filter(|(_, n)| n.op == Op::MatMul).count();
    assert_eq!((products(&passed), products(&attrs.body)), (1, 2));
    // Shares, the start, and two matrices; the last state is not wanted.
    assert_eq!((attrs.carried, attrs.stacked(), attrs.body.inputs.len()), (1, 1, 4));
    let x: Vec<f32> = (0..24).map(|i| (i as f32 * 1.3).cos()).collect();
    let x = floats_of(&[4, 2, 3], &x);
    let (a, b) = (run(&few, std::slice::from_ref(&x)), run(&many, &[x]));
    let far = aot_ir::exec::distance(&a[0].to_f64(), &b[0].to_f64());
    assert!(a[0].shape() == b[0].shape() && far < 1e-6, "{far:e}");
    let none = run(&many, &[floats_of(&[0, 2, 3], &[])]);
    assert_eq!(none[0].shape(), [0, 1, 2, 2]);
}
