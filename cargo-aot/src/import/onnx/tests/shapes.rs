//! Shape arithmetic and index tensors that vanish.

use super::make::*;
use aot_ir::exec::{Executor, Tensor};

#[test]
fn a_shape_chain_becomes_a_reshape() {
    let nodes = vec![
        node("Shape", "x", "s"),
        node("Gather", "s zero", "n"),
        node("Unsqueeze", "n axes", "n1"),
        node("Concat", "n1 rest", "target").int("axis", 0),
        node("Reshape", "x target", "y"),
    ];
    let stored =
        vec![ints("zero", &[], &[0]), ints("axes", &[1], &[0]), ints("rest", &[2], &[2, -1])];
    let model = model(17, vec![value("x", F32, "n 6 s")], stored, nodes, "y");
    let imported = import_ok(&model, "n=1..8 s=1..64");
    assert_eq!(summary(&imported), (vec!["reshape"], "n 2 3*s".to_owned()));
    assert!(imported.graph.guards.is_empty());
}

#[test]
fn sizes_through_floats_are_exact() {
    // floor(cast(h) * 0.5) as the target of a resize.
    let nodes = vec![
        node("Shape", "x", "s").int("start", 2).int("end", 3),
        node("Cast", "s", "f").int("to", 1),
        node("Mul", "f half", "g"),
        node("Floor", "g", "h"),
        node("Cast", "h", "i").int("to", 7),
        node("Concat", "i minus", "t").int("axis", 0),
        node("Reshape", "x t", "y"),
    ];
    let stored = vec![floats("half", &[], &[0.5]), ints("minus", &[1], &[-1])];
    let model = model(17, vec![value("x", F32, "1 2 h 4")], stored, nodes, "y");
    let imported = import_ok(&model, "h=32..960/32");
    assert_eq!(summary(&imported), (vec!["reshape"], "h // 2 16".to_owned()));
}

#[test]
fn position_tables_and_masks_become_movement() {
    // table[range(s)], and a GatherND of a mask by (batch, position) pairs.
    let nodes = vec![
        node("Shape", "mask", "shape"),
        node("Gather", "shape zero", "n"),
        node("Gather", "shape one", "s"),
        node("Range", "zero s one", "positions"),
        node("Gather", "table positions", "embedded"),
        node("Range", "zero n one", "batches"),
        node("Reshape", "batches column", "b"),
        node("Reshape", "positions row", "p"),
        node("Expand", "b shape", "be"),
        node("Expand", "p shape", "pe"),
        node("Unsqueeze", "be last", "be1"),
        node("Unsqueeze", "pe last", "pe1"),
        node("Concat", "be1 pe1", "pairs").int("axis", -1),
        node("GatherND", "mask pairs", "same"),
        node("Unsqueeze", "same last", "same1"),
        node("Mul", "embedded same1", "y"),
    ];
    let stored = vec![
        ints("zero", &[], &[0]),
        ints("one", &[], &[1]),
        ints("column", &[2], &[-1, 1]),
        ints("row", &[2], &[1, -1]),
        ints("last", &[1], &[-1]),
        floats("table", &[16, 8], &[0.0; 128]),
    ];
    let model = model(17, vec![value("mask", F32, "n s")], stored, nodes, "y");
    let imported = import_ok(&model, "n=1..8 s=1..16");
    let (ops, shape) = summary(&imported);
    assert_eq!(shape, "n s 8");
    assert_eq!(ops, ["slice", "reshape", "mul"]);
    assert!(imported.graph.guards.is_empty());
}

#[test]
fn a_table_shorter_than_the_range_is_looked_up() {
    let nodes = vec![
        node("Shape", "x", "s"),
        node("Squeeze", "s", "n"),
        node("Range", "zero n one", "positions"),
        node("Gather", "table positions", "y"),
    ];
    let stored = vec![
        ints("zero", &[], &[0]),
        ints("one", &[], &[1]),
        floats("table", &[16, 8], &[0.0; 128]),
    ];
    let model = model(17, vec![value("x", F32, "n")], stored, nodes, "y");
    let (ops, _) = summary(&import_ok(&model, "n=1..17"));
    assert!(ops.contains(&"gather"), "{ops:?}");
}

#[test]
fn what_versions_moved_from_attributes_to_inputs_is_the_same() {
    let before = model(
        9,
        vec![value("x", F32, "n 4 1")],
        vec![],
        vec![
            node("Squeeze", "x", "a").ints("axes", &[2]),
            node("Slice", "a", "b").ints("starts", &[1]).ints("ends", &[-1]).ints("axes", &[1]),
            node("ReduceSum", "b", "y").ints("axes", &[1]),
        ],
        "y",
    );
    let after = model(
        18,
        vec![value("x", F32, "n 4 1")],
        vec![ints("two", &[1], &[2]), ints("one", &[1], &[1]), ints("end", &[1], &[-1])],
        vec![
            node("Squeeze", "x two", "a"),
            node("Slice", "a one end one", "b"),
            node("ReduceSum", "b one", "y"),
        ],
        "y",
    );
    let expected = (vec!["reshape", "slice", "reduce_sum"], "n 1".to_owned());
    assert_eq!(summary(&import_ok(&before, "n=1..8")), expected);
    assert_eq!(summary(&import_ok(&after, "n=1..8")), expected);
}

#[test]
fn axes_are_dropped_where_they_are_known_to_be_single() {
    let model = model(
        17,
        vec![value("x", F32, "batch 1 n")],
        vec![],
        vec![node("Squeeze", "x", "y"), node("Identity", "y", "z")],
        "z",
    );
    let either = import_ok(&model, "batch=1..8 n=2..9");
    assert_eq!(summary(&either).1, "batch n");
    let warning = "node `the Squeeze`: it drops the axes of extent 1, and axis 0 stays: runs in which its extent \
                   `batch` is 1 are refused; where it always is 1, say so in `dims`";
    assert_eq!(either.warnings, [warning]);
    let [guard] = either.graph.guards.as_slice() else { panic!("{:?}", either.graph.guards) };
    let error = guard.check(&either.graph.symbols, &[1, 2]).unwrap_err().to_string();
    assert_eq!(error, "`the Squeeze` needs batch = max(batch, 2), but they are 1 and 2");
    assert_eq!(guard.check(&either.graph.symbols, &[2, 2]), Ok(()));
    assert_eq!(summary(&import_ok(&model, "batch=2..8 n=2..9")).1, "batch n");
    assert_eq!(summary(&import_ok(&model, "batch=1 n=2..9")).1, "n");
    assert_eq!(summary(&import_ok(&model, "batch=2..8 n=1")).1, "batch");
}

#[test]
fn a_decided_branch_is_inlined() {
    let branch = |op: &str| super::super::proto::GraphProto {
        node: vec![node(op, "x", "inner")],
        output: vec![value("inner", F32, "")],
        ..Default::default()
    };
    let nodes = vec![
        node("Shape", "x", "s"),
        node("Equal", "s four", "c"),
        node("If", "c", "y")
            .graph("then_branch", branch("Exp"))
            .graph("else_branch", branch("Log")),
    ];
    let stored = vec![ints("four", &[1], &[4])];
    let model = model(17, vec![value("x", F32, "n")], stored, nodes, "y");
    assert_eq!(summary(&import_ok(&model, "n=4")).0, ["exp"]);
    assert_eq!(summary(&import_ok(&model, "n=5..9")).0, ["log"]);
    // Undecided: both, and a choice.
    let (ops, _) = summary(&import_ok(&model, "n=1..9"));
    assert!(ops.contains(&"select") && ops.contains(&"exp") && ops.contains(&"log"), "{ops:?}");
}

#[test]
fn nodes_come_in_any_order_and_unneeded_ones_do_not_matter() {
    let nodes =
        vec![node("Exp", "b", "y"), node("NotAnOperator", "x", "unused"), node("Log", "x", "b")];
    let model = model(17, vec![value("x", F32, "2")], vec![], nodes, "y");
    assert_eq!(summary(&import_ok(&model, "")).0, ["log", "exp"]);
}

#[test]
fn expressions_of_dims_are_read() {
    let inputs = vec![value("x", F32, "4*t"), value("y", F32, "t")];
    let nodes = vec![node("Reshape", "x shape", "a"), node("Add", "a y", "z")];
    let model = model(17, inputs, vec![ints("shape", &[2], &[4, -1])], nodes, "z");
    let imported = import_ok(&model, "t=1..100");
    assert_eq!(summary(&imported), (vec!["reshape", "add"], "4 t".to_owned()));
    assert!(imported.graph.guards.is_empty());
}

#[test]
fn dims_that_may_differ_are_guarded() {
    let inputs = vec![value("x", F32, "a"), value("y", F32, "b")];
    let model = model(17, inputs, vec![], vec![node("Add", "x y", "z")], "z");
    let imported = import_ok(&model, "a=2..9 b=2..9");
    assert_eq!(imported.graph.guards.len(), 1);
    assert_eq!(imported.graph.guards[0].node, "the Add");
}

#[test]
fn integers_wrap_as_their_type_does() {
    let (a, b) = (i64::MAX - 3, 0x9e37_79b9_7f4a_7c15_u64.cast_signed());
    let stored = vec![ints("a", &[1], &[a]), ints("b", &[1], &[b]), ints("one", &[], &[1])];
    let nodes = vec![
        node("Shape", "x", "n"),
        node("Mul", "n b", "product"),
        node("Add", "n a", "sum"),
        node("Mul", "a b", "constant"),
        node("Concat", "product sum constant", "y").int("axis", 0),
    ];
    let inputs = vec![value("x", F32, "n")];
    let imported = import_ok(&model(17, inputs, stored, nodes, "y"), "n=1..64");
    for n in [1, 5, 64_i64] {
        let x = Tensor::from_vec(vec![n as usize], vec![0f32; n as usize]).unwrap();
        let y = Executor::new(&imported.graph).unwrap().run(&[x]).unwrap();
        let expected = [n.wrapping_mul(b), n.wrapping_add(a), a.wrapping_mul(b)];
        assert_eq!(y[0].to_i64(), expected, "n = {n}");
    }
}

/// As TorchScript puts a size into a shape.
#[test]
fn sizes_put_into_a_shape_stay_known() {
    let stored = vec![
        ints("shape", &[3], &[1, 7, 6]),
        ints("one", &[1], &[1]),
        ints("last", &[1, 1], &[-1]),
        ints("six", &[1], &[6]),
    ];
    let nodes = vec![
        node("Shape", "x", "n"),
        node("ScatterElements", "shape one n", "placed"),
        node("ScatterND", "placed last six", "target"),
        node("Expand", "row target", "y"),
    ];
    let inputs = vec![value("x", F32, "n"), value("row", F32, "1 1 6")];
    let imported = import_ok(&model(17, inputs, stored, nodes, "y"), "n=1..64");
    assert_eq!(summary(&imported), (vec!["expand"], "1 n 6".to_owned()));
}
