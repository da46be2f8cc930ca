//! Sequences and optionals, whose structure is settled while importing.

use super::super::proto::{ElementType, TypeProto, ValueInfo};
use super::make::*;
use crate::import::{AxisSpec, Structure};

fn wrapped(mut value: ValueInfo, wrap: impl Fn(Box<ElementType>) -> TypeProto) -> ValueInfo {
    let elem_type = value.r#type.take().map(Box::new);
    value.r#type = Some(wrap(Box::new(ElementType { elem_type })));
    value
}

fn sequence(value: ValueInfo) -> ValueInfo {
    wrapped(value, |t| TypeProto { sequence_type: Some(t), ..TypeProto::default() })
}

fn optional(value: ValueInfo) -> ValueInfo {
    wrapped(value, |t| TypeProto { optional_type: Some(t), ..TypeProto::default() })
}

#[test]
fn elements_move_without_nodes() {
    // [a, b] + c in front of the last, without the first, joined: c, b.
    let nodes = vec![
        node("SequenceConstruct", "a b", "s"),
        node("SequenceInsert", "s c minus", "t"),
        node("SequenceErase", "t zero", "u"),
        node("ConcatFromSequence", "u", "y").int("axis", -1),
    ];
    let stored = vec![ints("minus", &[], &[-1]), ints("zero", &[], &[0])];
    let inputs = vec![value("a", F32, "2"), value("b", F32, "n"), value("c", F32, "3")];
    let imported = import_ok(&model(17, inputs, stored, nodes, "y"), "n=1..8");
    assert_eq!(summary(&imported), (vec!["concat"], "n + 3".to_owned()));
    let graph = &imported.graph;
    let (_, joined) = graph.nodes().next().unwrap();
    assert_eq!(joined.inputs, [graph.inputs[2], graph.inputs[1]]);
}

#[test]
fn a_position_that_is_data_takes_elements_of_one_shape() {
    let nodes = |axis| {
        vec![node("SplitToSequence", "x", "s").int("axis", axis), node("SequenceAt", "s i", "y")]
    };
    let inputs = || vec![value("x", F32, "4 n"), value("i", I64, "")];
    let imported = import_ok(&model(17, inputs(), vec![], nodes(0), "y"), "n=1..8");
    assert_eq!(summary(&imported).1, "1 n");
    let error = import_error(&model(17, inputs(), vec![], nodes(1), "y"), "n=1..8");
    assert!(error.contains("SplitToSequence") && error.contains("fix that dim"), "{error}");
    let uneven = vec![node("SplitToSequence", "x sizes", "s"), node("SequenceAt", "s i", "y")];
    let stored = vec![ints("sizes", &[2], &[1, 3])];
    let error = import_error(&model(17, inputs(), stored, uneven, "y"), "n=1..8");
    assert!(error.contains("different shapes"), "{error}");
}

#[test]
fn positions_outside_and_wrong_kinds_are_refused() {
    let inputs = || vec![value("x", F32, "4 n")];
    let stored = || vec![ints("i", &[], &[4])];
    let nodes = vec![node("SplitToSequence", "x", "s"), node("SequenceAt", "s i", "y")];
    let error = import_error(&model(17, inputs(), stored(), nodes, "y"), "n=1..8");
    assert!(error.contains("position 4 of 4 elements"), "{error}");
    let nodes = vec![node("SplitToSequence", "x", "s"), node("Add", "x s", "y")];
    let error = import_error(&model(17, inputs(), vec![], nodes, "y"), "n=1..8");
    assert!(error.contains("input 1 is a sequence, expected a tensor"), "{error}");
    let nodes = vec![node("SequenceLength", "x", "y")];
    let error = import_error(&model(17, inputs(), vec![], nodes, "y"), "n=1..8");
    assert!(error.contains("input 0 is a tensor, expected a sequence"), "{error}");
}

#[test]
fn inputs_and_outputs_have_the_structure_that_is_asked_for() {
    let nodes = vec![node("Optional", "", "none"), node("SequenceInsert", "s x", "y")];
    let inputs = vec![sequence(value("s", F32, "n 2")), optional(value("x", F32, "3"))];
    let model = model(17, inputs, vec![], nodes, "y none");
    let mut o = options("n=1..8");
    let error = import_with(&model, &o).unwrap_err().to_string();
    assert!(error.contains("input `s`: it is a sequence"), "{error}");
    o.structures.insert("s".to_owned(), Structure::Sequence(2));
    o.inputs.insert("s.1".to_owned(), vec![AxisSpec::Fixed(5), AxisSpec::Keep]);
    let imported = import_with(&model, &o).unwrap();
    let names = |values: &[aot_ir::ValueId]| -> Vec<String> {
        values.iter().map(|&v| imported.graph[v].name.clone()).collect()
    };
    assert_eq!(names(&imported.graph.inputs), ["s.0", "s.1", "x"]);
    let outputs: Vec<&str> = imported.graph.outputs.iter().map(|(n, _)| n.as_str()).collect();
    assert_eq!(outputs, ["y.0", "y.1", "y.2"]);
    o.structures.insert("x".to_owned(), Structure::Absent);
    let error = import_with(&model, &o).unwrap_err().to_string();
    assert!(error.contains("an optional without element"), "{error}");
    o.structures.insert("x".to_owned(), Structure::Sequence(1));
    let error = import_with(&model, &o).unwrap_err().to_string();
    assert!(error.contains("it is no sequence"), "{error}");
}
