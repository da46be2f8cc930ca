//! Sizes that data gives.

use super::make::*;
use crate::import::Imported;
use aot_ir::exec::{Executor, Tensor};

/// Names and ranges of the symbols that the run binds.
fn bound(imported: &Imported) -> Vec<String> {
    let symbols = &imported.graph.symbols;
    let bound = symbols.iter().filter(|(id, _)| symbols.in_run(*id));
    bound.map(|(_, s)| format!("{} {}..={}", s.name, s.min_size(), s.max_size())).collect()
}

fn run(imported: &Imported, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
    assert_eq!(imported.graph.check(), Ok(()));
    let executor = Executor::new(&imported.graph).map_err(|e| e.to_string())?;
    executor.run(inputs).map_err(|e| e.to_string())
}

fn integers(shape: &[usize], values: &[i64]) -> Tensor {
    Tensor::from_vec(shape.to_vec(), values.to_vec()).unwrap()
}

fn numbers(shape: &[usize], values: &[f32]) -> Tensor {
    Tensor::from_vec(shape.to_vec(), values.to_vec()).unwrap()
}

fn elements(t: &Tensor) -> (Vec<usize>, Vec<f64>) {
    (t.shape().to_vec(), t.to_f64())
}

#[test]
fn what_is_counted_needs_no_range() {
    let mut model = model(
        17,
        vec![value("x", F32, "n 3")],
        vec![],
        vec![node("NonZero", "x", "at"), node("Shape", "at", "shape")],
        "at shape",
    );
    let output = &mut model.graph.as_mut().unwrap().output[0];
    *output = value("at", I64, "2 found");
    let imported = import_ok(&model, "n=1..8");
    assert_eq!(bound(&imported), ["found 0..=24"]);
    assert!(imported.graph.guards.is_empty());
    let found = run(&imported, &[numbers(&[2, 3], &[0., 1., 0., 2., 0., 3.])]).unwrap();
    assert_eq!(elements(&found[0]), (vec![2, 3], vec![0., 1., 1., 1., 0., 2.]));
    assert_eq!(elements(&found[1]), (vec![2], vec![2., 3.]));
    assert_eq!(run(&imported, &[numbers(&[1, 3], &[0.; 3])]).unwrap()[0].shape(), [2, 0]);
}

#[test]
fn what_nothing_bounds_needs_a_range_in_the_manifest() {
    let inputs = || vec![value("x", F32, "4 1"), value("to", I64, "2")];
    let model = model(17, inputs(), vec![], vec![node("Expand", "x to", "y")], "y");
    let error = import_error(&model, "");
    let says = "data gives the size `y_1`, and nothing bounds it: add \"y_1\" = \"0..=N\" to `dims` \
                of [models.test] in Aot.toml, where N is the greatest size that can be";
    assert!(error.contains("the Expand") && error.contains(says), "{error}");
    let imported = import_ok(&model, "y_1=2..6");
    assert_eq!(bound(&imported), ["y_1 2..=6"]);
    let x = numbers(&[4, 1], &[1., 2., 3., 4.]);
    let y = run(&imported, &[x.clone(), integers(&[2], &[4, 2])]).unwrap();
    assert_eq!(elements(&y[0]), (vec![4, 2], vec![1., 1., 2., 2., 3., 3., 4., 4.]));
    let far = run(&imported, &[x, integers(&[2], &[4, 7])]);
    assert_eq!(far.unwrap_err(), "`y_1` is 7, outside 2..=6");
    // A range for a dim that there is not.
    assert!(import_error(&model, "y_1=2..6 z=1..2").contains("the model has no dim `z`"));
}

#[test]
fn factors_of_a_resize_may_be_data_in_part() {
    let nodes = vec![
        node("Concat", "one s", "scales").int("axis", 0),
        node("Resize", "x _ scales", "y"),
        node("Resize", "x _ s2", "z"),
    ];
    let inputs = vec![value("x", F32, "2 n"), value("s", F32, "1"), value("s2", F32, "2")];
    let mut model = model(18, inputs, vec![floats("one", &[1], &[1.])], nodes, "y z");
    model.graph.as_mut().unwrap().output[0] = value("y", F32, "2 wide");
    let error = import_error(&model, "n=1..8");
    assert!(error.contains("data gives the size `wide`, and nothing bounds it"), "{error}");
    assert!(error.contains("data gives the size `z_0`, `z_1`, and nothing"), "{error}");
    let imported = import_ok(&model, "n=1..8 wide=0..9 z_0=1..4 z_1=1..9");
    assert_eq!(bound(&imported), ["wide 1..=9", "z_0 1..=4", "z_1 1..=9"]);
    let x = numbers(&[2, 2], &[1., 2., 3., 4.]);
    let of = |s: f32| [x.clone(), numbers(&[1], &[s]), numbers(&[2], &[2., 0.5])];
    let found = run(&imported, &of(1.6)).unwrap();
    assert_eq!(elements(&found[0]), (vec![2, 3], vec![1., 1., 2., 3., 3., 4.]));
    assert_eq!(elements(&found[1]), (vec![4, 1], vec![1., 1., 3., 3.]));
    assert_eq!(run(&imported, &of(5.0)).unwrap_err(), "`wide` is 10, outside 1..=9");
    assert_eq!(run(&imported, &of(-1.0)).unwrap_err(), "`wide` is -2, outside 1..=9");
}

#[test]
fn known_parts_of_a_shape_stay_known() {
    // [n, -1, k] where data gives k.
    let nodes = vec![
        node("Shape", "x", "s").int("end", 1),
        node("Concat", "s minus k", "target").int("axis", 0),
        node("Reshape", "x target", "y"),
        node("Reshape", "y back", "z"),
    ];
    let stored = vec![ints("minus", &[1], &[-1]), ints("back", &[2], &[0, -1])];
    let inputs = vec![value("x", F32, "n 12"), value("k", I64, "1")];
    let model = model(17, inputs, stored, nodes, "y z");
    let imported = import_ok(&model, "n=1..8");
    let graph = &imported.graph;
    let shape: Vec<String> =
        graph[graph.outputs[0].1].shape.iter().map(|d| graph.symbols.show(d)).collect();
    assert_eq!(shape[0], "n");
    let x = numbers(&[2, 12], &[1.; 24]);
    let found = run(&imported, &[x.clone(), integers(&[1], &[3])]).unwrap();
    assert_eq!((found[0].shape(), found[1].shape()), ([2, 4, 3].as_slice(), [2, 12].as_slice()));
    let uneven = run(&imported, &[x, integers(&[1], &[5])]).unwrap_err();
    assert!(uneven.contains("the Reshape"), "{uneven}");
}

#[test]
fn a_count_that_is_squeezed_is_not_one() {
    let nodes = vec![node("NonZero", "x", "at"), node("Squeeze", "at", "y")];
    let imported = import_ok(&model(17, vec![value("x", F32, "6")], vec![], nodes, "y"), "");
    let found = |x: [f32; 6]| run(&imported, &[numbers(&[6], &x)]);
    assert_eq!(found([0., 1., 0., 0., 1., 0.]).unwrap()[0].shape(), [2]);
    assert_eq!(found([0.; 6]).unwrap()[0].shape(), [0]);
    let error = found([0., 0., 3., 0., 0., 0.]).unwrap_err();
    assert!(error.contains("`the Squeeze` needs"), "{error}");
}

#[test]
fn slices_from_data_are_within_what_they_slice() {
    let inputs = vec![value("x", F32, "n"), value("from", I64, "1"), value("to", I64, "1")];
    let nodes = vec![node("Slice", "x from to", "y")];
    let imported = import_ok(&model(17, inputs, vec![], nodes, "y"), "n=1..9");
    assert_eq!(bound(&imported), ["y_0_start 0..=9", "y_0 0..=9"]);
    let x = numbers(&[5], &[0., 1., 2., 3., 4.]);
    for (from, to, expected) in
        [(1, 3, vec![1., 2.]), (-2, 9, vec![3., 4.]), (4, 2, vec![]), (-9, -4, vec![0.])]
    {
        let y = run(&imported, &[x.clone(), integers(&[1], &[from]), integers(&[1], &[to])]);
        assert_eq!(elements(&y.unwrap()[0]), (vec![expected.len()], expected));
    }
}
