//! What data decide and nobody is told: how often loops repeat that may go on for ever, and which branch is taken.

use super::Cases;
use crate::net::{Net, Repeat, dims};
use aot_ir::op::{BinaryOp, ReduceOp, UnaryOp};
use aot_ir::{DType, Dim, Graph, Guard, Op, ValueId};

/// Iterations that no loop comes to.
const FOR_EVER: i64 = 1 << 40;
const WIDTH: usize = 16;

/// The sum of `n` integers of the caller's, from 0 to three times `n`.
fn limit(net: &mut Net, n: &Dim) -> ValueId {
    let x = net.input(DType::I64, std::slice::from_ref(n));
    net.op(Op::Reduce { op: ReduceOp::Sum, axes: vec![0], keep_dims: false }, &[x])
}

fn less(net: &mut Net, a: ValueId, b: ValueId) -> ValueId {
    net.op(Op::Binary(BinaryOp::Lt), &[a, b])
}

/// A layer with weights of its own.
fn layer(net: &mut Net, x: ValueId) -> ValueId {
    let w = net.weight(&[WIDTH, WIDTH]);
    layer_with(net, x, w)
}

fn layer_with(net: &mut Net, x: ValueId, w: ValueId) -> ValueId {
    let y = net.op(Op::MatMul, &[x, w]);
    net.unary(UnaryOp::Tanh, y)
}

/// Layers, one a turn, while a count is less than `limit`, each with `x` added: the last one's result.
fn layers(net: &mut Net, x: ValueId, limit: ValueId) -> ValueId {
    let (w, zero) = (net.weight(&[WIDTH, WIDTH]), net.ints(&[], &[0]));
    let first = less(net, zero, limit);
    let count = Dim::from(FOR_EVER);
    let repeat = Repeat { count: &count, backward: &[], first: Some(first) };
    net.repeat(repeat, &[x, zero], &[w, limit, x], |net, _, state, captured| {
        let next = layer_with(net, state[0], captured[0]);
        let next = net.add(next, captured[2]);
        let one = net.ints(&[], &[1]);
        let made = net.add(state[1], one);
        vec![less(net, made, captured[1]), next, made]
    })[1]
}

/// The result of the one layer or of the other two.
fn branch(net: &mut Net, name: &str, x: ValueId, condition: ValueId) -> ValueId {
    let taken = net.op(Op::Cast(DType::I64), &[condition]);
    let taken = net.size(name, 1, taken);
    let rest = &Dim::ONE - &taken;
    let shape = net.graph[x].shape.clone();
    let repeat = Repeat { count: &taken, backward: &[false], first: None };
    let a = net.repeat(repeat, &[], &[x], |net, _, _, captured| vec![layer(net, captured[0])]);
    let repeat = Repeat { count: &rest, backward: &[false], first: None };
    let b = net.repeat(repeat, &[], &[x], |net, _, _, captured| {
        let y = layer(net, captured[0]);
        vec![layer(net, y)]
    });
    let both = net.op(Op::Concat { axis: 0 }, &[a[0], b[0]]);
    net.op(Op::Reshape { shape }, &[both])
}

/// A network of `x [t, 16]` and the sum of `t` integers.
fn network(cases: &mut Cases, make: impl FnOnce(&mut Net, ValueId, ValueId) -> ValueId) {
    let mut net = Net::new();
    let t = net.symbol("t", 1, 40, 1);
    let x = net.input(DType::F32, &[t.clone(), (WIDTH as i64).into()]);
    let limit = limit(&mut net, &t);
    let y = make(&mut net, x, limit);
    net.output(y);
    cases.at(net, &[1, 2, 3, 7, 8].map(|t| vec![("t", t)]));
}

/// So many layers of a small network, one a turn of a loop which counts them.
pub fn layers_that_data_end(count: i64) -> Graph {
    let mut net = Net::new();
    let x = net.input(DType::F32, &dims(&[8, WIDTH as i64]));
    let count = net.ints(&[], &[count]);
    let y = layers(&mut net, x, count);
    net.output(y);
    net.graph
}

fn decided(cases: &mut Cases) {
    network(cases, layers);
    // What comes before and after.
    network(cases, |net, x, limit| {
        let x = layer(net, x);
        let y = layers(net, x, limit);
        let y = layers(net, y, limit);
        layer(net, y)
    });
    network(cases, |net, x, limit| {
        let five = net.ints(&[], &[5]);
        let few = less(net, limit, five);
        let y = branch(net, "few", x, few);
        layer(net, y)
    });
    // One after the other, the second branch chosen by what the first gives.
    network(cases, |net, x, limit| {
        let five = net.ints(&[], &[5]);
        let many = less(net, five, limit);
        let y = branch(net, "many", x, many);
        let y = layers(net, y, limit);
        let most = Op::Reduce { op: ReduceOp::Sum, axes: vec![0, 1], keep_dims: false };
        let sum = net.op(most, &[y]);
        let zero = net.floats(&[], &[0.0]);
        let positive = less(net, zero, sum);
        branch(net, "positive", y, positive)
    });
    // Loops in a loop, and a branch in each of its turns.
    network(cases, |net, x, limit| {
        let zero = net.ints(&[], &[0]);
        let first = less(net, zero, limit);
        let count = Dim::from(FOR_EVER);
        let repeat = Repeat { count: &count, backward: &[], first: Some(first) };
        net.repeat(repeat, &[x, zero], &[limit, x], |net, _, state, captured| {
            let three = net.ints(&[], &[3]);
            let early = less(net, state[1], three);
            let y = layers(net, state[0], state[1]);
            let y = branch(net, "early", y, early);
            let y = net.add(y, captured[1]);
            let two = net.ints(&[], &[2]);
            let made = net.add(state[1], two);
            vec![less(net, made, captured[0]), y, made]
        })[1]
    });
    // As often as there are rows, each turn reading its own.
    let mut net = Net::new();
    let t = net.symbol("t", 1, 40, 1);
    let x = net.input(DType::F32, &[t.clone(), (WIDTH as i64).into()]);
    let limit = limit(&mut net, &Dim::from(6));
    let zero = net.ints(&[], &[0]);
    let start = net.floats(&[1, WIDTH], &[0.0; WIDTH]);
    let first = less(&mut net, zero, limit);
    let repeat = Repeat { count: &t, backward: &[], first: Some(first) };
    let found = net.repeat(repeat, &[start, zero], &[x, limit], |net, at, state, captured| {
        let sizes = dims(&[1, WIDTH as i64]);
        let starts = vec![at.clone(), Dim::ZERO];
        let row = net.op(Op::Slice { starts, sizes, steps: vec![1, 1] }, &[captured[0]]);
        let sum = net.add(state[0], row);
        let one = net.ints(&[], &[1]);
        let made = net.add(state[1], one);
        vec![less(net, made, captured[1]), layer(net, sum), made]
    });
    let y = layer(&mut net, found[1]);
    net.output(y);
    cases.at(net, &[1, 2, 7, 40].map(|t| vec![("t", t)]));
    checked(cases);
}

/// A loop whose turns need two sizes to be equal.
fn checked(cases: &mut Cases) {
    let mut net = Net::new();
    let (t, u) = (net.symbol("t", 1, 40, 1), net.symbol("u", 1, 40, 1));
    let [x, other] = [&t, &u].map(|n| net.input(DType::F32, &[n.clone(), (WIDTH as i64).into()]));
    let limit = limit(&mut net, &t);
    let (w, zero) = (net.weight(&[WIDTH, WIDTH]), net.ints(&[], &[0]));
    let first = less(&mut net, zero, limit);
    let count = Dim::from(FOR_EVER);
    let repeat = Repeat { count: &count, backward: &[], first: Some(first) };
    let found = net.repeat(repeat, &[x, zero], &[w, limit, other], |net, _, state, captured| {
        net.graph.guards.push(Guard { lhs: t, rhs: u, node: "checked".to_owned() });
        let next = layer_with(net, state[0], captured[0]);
        let mean = Op::Reduce { op: ReduceOp::Mean, axes: vec![0], keep_dims: false };
        let mean = net.op(mean, &[captured[2]]);
        let next = net.add(next, mean);
        let one = net.ints(&[], &[1]);
        let made = net.add(state[1], one);
        vec![less(net, made, captured[1]), next, made]
    });
    net.output(found[1]);
    cases.at(net, &[1, 3, 8].map(|n| vec![("t", n), ("u", n)]));
}

pub(super) fn all(cases: &mut Cases) {
    cases.family("decided", decided);
}
