//! Loops whose condition compares what they count.

use super::super::proto::{ModelProto, NodeProto};
use super::loops::{BOOL, body, loops, run};
use super::make::*;
use aot_ir::exec::Tensor;

/// Nodes that make a condition, and what it is at `n`, the length of the input, by the counter before and after an
/// iteration.
struct Condition(Vec<NodeProto>, fn(i64, i64, i64) -> bool);

/// A loop with a counter `k` and a state to which 1 is added; the counters before each iteration are collected.
struct Counting {
    /// What the counter begins with, and the number that it grows by.
    start: (&'static str, fn(i64) -> i64),
    step: (&'static str, i64),
    /// Makes `first` of `start` and `n`; by no nodes where there is always a first iteration.
    first: Condition,
    /// Makes `again` of `k`, `next` and `n`.
    again: Condition,
}

impl Counting {
    fn model(&self, outputs: &str) -> ModelProto {
        let mut inside = vec![
            node("Add", &format!("k {}", self.step.0), "next"),
            node("Add", "s real", "more"),
            node("Identity", "k", "each"),
        ];
        inside.extend(self.again.0.iter().cloned());
        let inputs = vec![value("i", I64, ""), value("c", BOOL, ""), value("k", I64, "")];
        let inputs = inputs.into_iter().chain([value("s", F32, "2")]).collect();
        let results = ["again", "next", "more", "each"];
        let results = results[..outputs.split_whitespace().count() + 1].join(" ");
        let body = body(inputs, inside, &results);
        let mut nodes = vec![
            node("Shape", "x", "shape"),
            node("Gather", "shape zero", "n"),
            node("Identity", self.start.0, "start"),
        ];
        nodes.extend(self.first.0.iter().cloned());
        let first = if self.first.0.is_empty() { "_" } else { "first" };
        nodes.push(node("Loop", &format!("_ {first} start state"), outputs).graph("body", body));
        let numbers = [("zero", 0), ("one", 1), ("two", 2), ("three", 3), ("less", -1)];
        let mut stored: Vec<_> = numbers.map(|(name, n)| ints(name, &[], &[n])).into();
        stored.push(floats("real", &[], &[1.0]));
        let inputs = vec![value("x", F32, "n"), value("state", F32, "2")];
        model(17, inputs, stored, nodes, outputs)
    }

    /// The counter after the last iteration, and those before each.
    fn expected(&self, n: i64) -> (i64, Vec<i64>) {
        let (mut k, mut all) = ((self.start.1)(n), Vec::new());
        let mut going = (self.first.1)(n, k, k);
        while going {
            all.push(k);
            going = (self.again.1)(n, k, k + self.step.1);
            k += self.step.1;
        }
        (k, all)
    }
}

/// Comparisons as one of TensorFlow's exporters makes them.
fn as_floats(number: &str, limit: &str, output: &str) -> Vec<NodeProto> {
    let real = |name: &str| format!("{output}_{name}");
    let cast = |name: &str| node("Cast", name, &real(name)).int("to", i64::from(F32));
    let less = node("Less", &format!("{} {}", real(number), real(limit)), output);
    vec![cast(number), cast(limit), less]
}

#[test]
fn the_count_follows_from_sizes() {
    let cases = [
        Counting {
            start: ("zero", |_| 0),
            step: ("one", 1),
            first: Condition(vec![node("Less", "start n", "first")], |n, k, _| k < n),
            again: Condition(vec![node("Less", "next n", "again")], |n, _, next| next < n),
        },
        Counting {
            start: ("two", |_| 2),
            step: ("three", 3),
            first: Condition(as_floats("start", "n", "first"), |n, k, _| k < n),
            again: Condition(as_floats("next", "n", "again"), |n, _, next| next < n),
        },
        // Once at least, and compared before it is counted.
        Counting {
            start: ("zero", |_| 0),
            step: ("two", 2),
            first: Condition(vec![], |_, _, _| true),
            again: Condition(vec![node("LessOrEqual", "k n", "again")], |n, k, _| k <= n),
        },
        // Downwards; the first iteration has a condition of its own.
        Counting {
            start: ("n", |n| n),
            step: ("less", -1),
            first: Condition(vec![node("Greater", "start zero", "first")], |_, k, _| k > 0),
            again: Condition(vec![node("Greater", "next two", "again")], |_, _, next| next > 2),
        },
        // What always holds after an iteration need not hold before the first.
        Counting {
            start: ("zero", |_| 0),
            step: ("one", 1),
            first: Condition(
                vec![
                    node("Less", "start n", "a"),
                    node("Less", "zero start", "b"),
                    node("And", "a b", "first"),
                ],
                |_, _, _| false,
            ),
            again: Condition(
                vec![
                    node("Less", "next n", "a"),
                    node("Less", "zero next", "b"),
                    node("And", "a b", "again"),
                ],
                |n, _, next| next < n,
            ),
        },
        // Whatever ends first.
        Counting {
            start: ("zero", |_| 0),
            step: ("one", 1),
            first: Condition(vec![node("Less", "start n", "first")], |n, k, _| k < n),
            again: Condition(
                vec![
                    node("Less", "next n", "a"),
                    node("Less", "i three", "b"),
                    node("And", "a b", "again"),
                ],
                |n, k, next| next < n && k < 3,
            ),
        },
    ];
    for (number, counting) in cases.iter().enumerate() {
        let imported = import_ok(&counting.model("last after all"), "n=0..40");
        let [attrs] = loops(&imported.graph)[..] else { panic!("{number}: no loop") };
        assert!(!attrs.is_conditional(), "{number}");
        for n in [0usize, 1, 2, 3, 4, 5, 9, 40] {
            let x = Tensor::from_vec(vec![n], vec![0f32; n]).unwrap();
            let state = Tensor::from_vec(vec![2], vec![0.5f32, 0.0]).unwrap();
            let found = run(&imported, &[x, state]);
            let (last, all) = counting.expected(n as i64);
            let reals = |numbers: &[i64]| numbers.iter().map(|n| *n as f64).collect::<Vec<f64>>();
            let turns = all.len() as f64;
            assert_eq!(found[0].to_f64(), reals(&[last]), "{number} at {n}");
            assert_eq!(found[1].to_f64(), [turns + 0.5, turns], "{number} at {n}");
            assert_eq!(found[2].to_f64(), reals(&all), "{number} at {n}");
        }
    }
}

#[test]
fn other_conditions_are_computed() {
    let of = |step, again| Counting {
        start: ("one", |_| 1),
        step: (step, 1),
        first: Condition(vec![], |_, _, _| true),
        again: Condition(again, |_, _, _| false),
    };
    // It would go on for ever where `n` is 0; it doubles; data say so.
    let unequal = vec![node("Equal", "next n", "end"), node("Not", "end", "again")];
    let sum = vec![
        node("ReduceSum", "more", "sum").int("keepdims", 0),
        node("Less", "sum real", "again"),
    ];
    let cases =
        [of("one", unequal), of("k", vec![node("Less", "next n", "again")]), of("one", sum)];
    for counting in cases {
        let imported = import_ok(&counting.model("last after"), "n=0..40");
        let [attrs] = loops(&imported.graph)[..] else { panic!("one loop") };
        assert!(attrs.is_conditional());
        let error = import_error(&counting.model("last after all"), "n=0..40");
        assert!(error.contains("nothing limits how often"), "{error}");
    }
}

/// A loop whose counter `k` is compared with `n`, and which carries another integer, `more`, that begins with `start`;
/// the counters before each iteration are collected.
fn with_another(start: &str, inside: Vec<NodeProto>) -> ModelProto {
    let inputs = vec![value("i", I64, ""), value("c", BOOL, ""), value("k", I64, "")];
    let inputs = inputs.into_iter().chain([value("more", I64, "")]).collect();
    let mut nodes = inside;
    nodes.extend([node("Less", "next n", "again"), node("Identity", "k", "each")]);
    let body = body(inputs, nodes, "again next other each");
    let nodes = vec![
        node("Shape", "x", "shape"),
        node("Gather", "shape zero", "n"),
        node("Add", "n one", "some"),
        node("Loop", &format!("_ _ zero {start}"), "last end all").graph("body", body),
    ];
    let numbers = [("zero", 0), ("one", 1), ("two", 2), ("eight", 8), ("limit", 1 << 31)];
    let mut stored: Vec<_> = numbers.map(|(name, n)| ints(name, &[], &[n])).into();
    stored.push(ints("far", &[], &[i64::MAX]));
    model(17, vec![value("x", F32, "n")], stored, nodes, "last end all")
}

#[test]
fn what_is_no_counter_may_be_any_integer() {
    // It is less than 2^31 in the first iterations only.
    let nodes = vec![
        node("Mul", "more eight", "other"),
        node("Less", "more limit", "near"),
        node("Where", "near one two", "step"),
        node("Add", "k step", "next"),
    ];
    let error = import_error(&with_another("some", nodes), "n=0..40");
    assert!(error.contains("nothing limits how often"), "{error}");
}

#[test]
fn counters_stand_beside_what_stays() {
    let nodes = vec![node("Identity", "more", "other"), node("Add", "k two", "next")];
    let imported = import_ok(&with_another("far", nodes), "n=0..40");
    let [attrs] = loops(&imported.graph)[..] else { panic!("one loop") };
    assert!(!attrs.is_conditional());
    let found = run(&imported, &[Tensor::from_vec(vec![5], vec![0f32; 5]).unwrap()]);
    assert_eq!((found[0].to_i64(), found[1].to_i64()), (vec![6], vec![i64::MAX]));
    assert_eq!(found[2].to_i64(), [0, 2, 4]);
}

#[test]
fn loops_that_collect_nothing_are_ended_by_their_condition() {
    let counting = Counting {
        start: ("zero", |_| 0),
        step: ("one", 1),
        first: Condition(vec![], |_, _, _| true),
        again: Condition(vec![node("Less", "next n", "again")], |n, _, next| next < n),
    };
    let imported = import_ok(&counting.model("last after"), "n=0..40");
    let [attrs] = loops(&imported.graph)[..] else { panic!("one loop") };
    assert!(attrs.is_conditional());
}
