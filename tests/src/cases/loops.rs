//! Loops: recurrent layers, conditions, collected results, loops in loops.

use super::Cases;
use crate::net::{Net, Repeat, dims};
use aot_ir::dim::{Cmp, Cond};
use aot_ir::op::{BinaryOp, ReduceOp, UnaryOp};
use aot_ir::{DType, Dim, Op, Scalar, Scope, ValueId};

/// The part `[.., width]` of the last axis that begins at `start`.
fn part(net: &mut Net, x: ValueId, start: i64, width: i64) -> ValueId {
    let mut sizes = net.graph[x].shape.clone();
    let mut starts = vec![Dim::ZERO; sizes.len()];
    let last = sizes.len() - 1;
    (starts[last], sizes[last]) = (start.into(), width.into());
    let steps = vec![1; sizes.len()];
    net.op(Op::Slice { starts, sizes, steps }, &[x])
}

/// `x[at]` along the first axis.
fn row(net: &mut Net, x: ValueId, at: &Dim) -> ValueId {
    let shape = net.graph[x].shape.clone();
    let (mut starts, mut sizes) = (vec![Dim::ZERO; shape.len()], shape.clone());
    (starts[0], sizes[0]) = (at.clone(), Dim::ONE);
    let steps = vec![1; shape.len()];
    let part = net.op(Op::Slice { starts, sizes, steps }, &[x]);
    net.op(Op::Reshape { shape: shape[1..].to_vec() }, &[part])
}

fn zeros(net: &mut Net, shape: &[Dim]) -> ValueId {
    let value = Scalar::Float(0.0);
    net.op(Op::Fill { shape: shape.to_vec(), value, dtype: DType::F32 }, &[])
}

fn binary(net: &mut Net, op: BinaryOp, a: ValueId, b: ValueId) -> ValueId {
    net.op(Op::Binary(op), &[a, b])
}

/// Gates of `sum [n, 4·h]` and the cell: the next state and cell.
fn lstm_step(net: &mut Net, sum: ValueId, cell: ValueId, h: i64) -> (ValueId, ValueId) {
    let gate = |net: &mut Net, n: i64, op| {
        let x = part(net, sum, n * h, h);
        net.unary(op, x)
    };
    let (i, o) = (gate(net, 0, UnaryOp::Sigmoid), gate(net, 1, UnaryOp::Sigmoid));
    let (f, g) = (gate(net, 2, UnaryOp::Sigmoid), gate(net, 3, UnaryOp::Tanh));
    let (kept, added) = (net.mul(f, cell), net.mul(i, g));
    let cell = net.add(kept, added);
    let shown = net.unary(UnaryOp::Tanh, cell);
    (net.mul(o, shown), cell)
}

/// One direction of an LSTM over `x [t, n, k]`: all states `[t, n, h]`, the last state and cell. Sequences end at
/// `lengths [n, 1]`.
fn lstm(
    net: &mut Net,
    x: ValueId,
    h: i64,
    backward: bool,
    lengths: Option<ValueId>,
) -> Vec<ValueId> {
    let [count, n, k] = [0, 1, 2].map(|i| net.graph[x].shape[i].clone());
    let width = k.as_const().expect("a constant width") as usize;
    let w = net.weight(&[width, 4 * h as usize]);
    let r = net.weight(&[h as usize, 4 * h as usize]);
    let b = net.weight(&[4 * h as usize]);
    let shares = net.op(Op::MatMul, &[x, w]);
    let shares = net.add(shares, b);
    let start = [zeros(net, &[n.clone(), h.into()]), zeros(net, &[n, h.into()])];
    let mut captured = vec![shares, r];
    captured.extend(lengths);
    let repeat = Repeat { count: &count, backward: &[backward], first: None };
    net.repeat(repeat, &start, &captured, |net, t, state, captured| {
        let at = if backward { &count - 1 - t } else { t.clone() };
        let share = row(net, captured[0], &at);
        let own = net.op(Op::MatMul, &[state[0], captured[1]]);
        let sum = net.add(share, own);
        let (next, cell) = lstm_step(net, sum, state[1], h);
        let Some(&lengths) = captured.get(2) else { return vec![next, cell, next] };
        let at = net.op(Op::Dims { dims: vec![at], scalar: true }, &[]);
        let alive = binary(net, BinaryOp::Gt, lengths, at);
        let zero = zeros(net, &[]);
        let shown = net.op(Op::Select, &[alive, next, zero]);
        let next = net.op(Op::Select, &[alive, next, state[0]]);
        let cell = net.op(Op::Select, &[alive, cell, state[1]]);
        vec![next, cell, shown]
    })
}

fn lstms(cases: &mut Cases) {
    let lengths = [1, 2, 5, 17].map(|t| vec![("t", t)]);
    // One direction: the product of all inputs, two states to begin with, a product and the gates in each step.
    let mut net = Net::new();
    let t = net.symbol("t", 1, 17, 1);
    let x = net.input(DType::F32, &[t, 3.into(), 16.into()]);
    let found = lstm(&mut net, x, 24, false, None);
    net.output(found[2]);
    net.groups(5);
    cases.at(net, &lengths);
    // Both directions, joined; a run-time batch; last states.
    for (k, h) in [(8, 16), (5, 7)] {
        let mut net = Net::new();
        let t = net.symbol("t", 1, 17, 1);
        let n = net.symbol("n", 1, 4, 1);
        let x = net.input(DType::F32, &[t, n, k.into()]);
        let mut outputs = Vec::new();
        for backward in [false, true] {
            let found = lstm(&mut net, x, h, backward, None);
            outputs.push(found[2]);
            net.output(found[0]);
            net.output(found[1]);
        }
        let y = net.op(Op::Concat { axis: 2 }, &outputs);
        net.output(y);
        let sizes = [(1, 1), (2, 3), (17, 4)].map(|(t, n)| vec![("t", t), ("n", n)]);
        cases.at(net, &sizes);
    }
    // Sequences of different lengths (in 0..4).
    let mut net = Net::new();
    let t = net.symbol("t", 0, 17, 1);
    let x = net.input(DType::F32, &[t, 5.into(), 8.into()]);
    let lengths = net.input(DType::I64, &dims(&[5, 1]));
    for backward in [false, true] {
        for value in lstm(&mut net, x, 8, backward, Some(lengths)) {
            net.output(value);
        }
    }
    cases.at(net, &[0, 1, 3, 9].map(|t| vec![("t", t)]));
}

fn grus(cases: &mut Cases) {
    for linear in [true, false] {
        let h = 16;
        let mut net = Net::new();
        let t = net.symbol("t", 1, 17, 1);
        let x = net.input(DType::F32, &[t.clone(), 2.into(), 6.into()]);
        let w = net.weight(&[6, 3 * h as usize]);
        let shares = net.op(Op::MatMul, &[x, w]);
        let start = net.input(DType::F32, &dims(&[2, h]));
        let repeat = Repeat { count: &t, backward: &[false], first: None };
        let found = net.repeat(repeat, &[start], &[shares], |net, t, state, captured| {
            let share = row(net, captured[0], t);
            let width = if linear { 3 * h } else { 2 * h };
            let r = net.weight(&[h as usize, width as usize]);
            let own = net.op(Op::MatMul, &[state[0], r]);
            let gate = |net: &mut Net, n: i64| {
                let (a, b) = (part(net, share, n * h, h), part(net, own, n * h, h));
                let sum = net.add(a, b);
                net.unary(UnaryOp::Sigmoid, sum)
            };
            let (z, reset) = (gate(net, 0), gate(net, 1));
            let other = if linear {
                let own = part(net, own, 2 * h, h);
                net.mul(reset, own)
            } else {
                let state = net.mul(reset, state[0]);
                let r = net.weight(&[h as usize, h as usize]);
                net.op(Op::MatMul, &[state, r])
            };
            let share = part(net, share, 2 * h, h);
            let sum = net.add(share, other);
            let new = net.unary(UnaryOp::Tanh, sum);
            let difference = binary(net, BinaryOp::Sub, state[0], new);
            let kept = net.mul(z, difference);
            let next = net.add(new, kept);
            vec![next, next]
        });
        net.output(found[1]);
        net.output(found[0]);
        cases.at(net, &[1, 2, 17].map(|t| vec![("t", t)]));
    }
}

fn rnns(cases: &mut Cases) {
    let mut net = Net::new();
    let t = net.symbol("t", 1, 17, 1);
    let x = net.input(DType::F32, &[t.clone(), 4.into(), 6.into()]);
    let w = net.weight(&[6, 10]);
    let r = net.weight(&[10, 10]);
    let shares = net.op(Op::MatMul, &[x, w]);
    let start = zeros(&mut net, &dims(&[4, 10]));
    let repeat = Repeat { count: &t, backward: &[true], first: None };
    let found = net.repeat(repeat, &[start], &[shares, r], |net, at, state, captured| {
        let share = row(net, captured[0], &(&t - 1 - at));
        let own = net.op(Op::MatMul, &[state[0], captured[1]]);
        let sum = net.add(share, own);
        let next = net.unary(UnaryOp::Tanh, sum);
        vec![next, next]
    });
    net.output(found[1]);
    // The product of all inputs, the state to begin with, and one group a step.
    net.groups(3);
    cases.at(net, &[1, 2, 17].map(|t| vec![("t", t)]));
}

/// As long as the sum of what was added is small: `I64` and float states, results collected.
fn conditions(cases: &mut Cases) {
    for most in [0.5, 4.0, 1e9] {
        let mut net = Net::new();
        let t = net.symbol("t", 1, 20, 1);
        let x = net.input(DType::F32, &[t.clone(), 3.into()]);
        let start = zeros(&mut net, &dims(&[3]));
        let value = Scalar::Int(5);
        let number = net.op(Op::Fill { shape: vec![], value, dtype: DType::I64 }, &[]);
        let value = Scalar::Bool(true);
        let first = net.op(Op::Fill { shape: vec![], value, dtype: DType::Bool }, &[]);
        let repeat = Repeat { count: &t, backward: &[false, false], first: Some(first) };
        let found = net.repeat(repeat, &[start, number], &[x], |net, t, state, captured| {
            let new = row(net, captured[0], t);
            let new = net.unary(UnaryOp::Abs, new);
            let next = net.add(state[0], new);
            let sum = Op::Reduce { op: ReduceOp::Sum, axes: vec![0], keep_dims: false };
            let sum = net.op(sum, &[next]);
            let most = net.floats(&[], &[most]);
            let again = binary(net, BinaryOp::Lt, sum, most);
            let two = net.ints(&[], &[2]);
            let number = net.add(state[1], two);
            vec![again, next, number, new, number]
        });
        // Iterations, states, collected.
        for &value in &found {
            net.output(value);
        }
        let total = Op::Reduce { op: ReduceOp::Sum, axes: vec![0], keep_dims: false };
        let total = net.op(total, &[found[3]]);
        net.output(total);
        cases.at(net, &[1, 2, 20].map(|t| vec![("t", t)]));
    }
    // Not even once, and a first condition from data.
    for op in [BinaryOp::Lt, BinaryOp::Gt] {
        let mut net = Net::new();
        let x = net.input(DType::F32, &dims(&[6]));
        let sum = Op::Reduce { op: ReduceOp::Sum, axes: vec![0], keep_dims: false };
        let sum = net.op(sum, &[x]);
        let zero = net.floats(&[], &[0.0]);
        let first = binary(&mut net, op, sum, zero);
        let count = Dim::from(7);
        let repeat = Repeat { count: &count, backward: &[false], first: Some(first) };
        let found = net.repeat(repeat, &[x], &[first], |net, _, state, captured| {
            let next = net.unary(UnaryOp::Sin, state[0]);
            vec![captured[0], next, next]
        });
        found.into_iter().for_each(|value| net.output(value));
        cases.add(net);
    }
}

/// States that change places, one that stays, one value collected twice and carried, and one that is only moved.
fn places(cases: &mut Cases) {
    let mut net = Net::new();
    let t = net.symbol("t", 0, 9, 1);
    let x = net.input(DType::F32, &[t.clone(), 2.into(), 5.into()]);
    let z = net.input(DType::F32, &[5.into(), t.clone(), 2.into()]);
    let start: Vec<ValueId> = (0..3).map(|_| net.input(DType::F32, &dims(&[2, 5]))).collect();
    let repeat = Repeat { count: &t, backward: &[false, true, false, false], first: None };
    let found = net.repeat(repeat, &start, &[x, z], |net, at, state, captured| {
        let a = row(net, captured[0], at);
        let b = net.op(Op::Transpose { perm: vec![1, 2, 0] }, &[captured[1]]);
        let b = row(net, b, &(&t - 1 - at));
        let both = net.mul(a, b);
        let sum = net.add(state[0], both);
        let turned = net.op(Op::Transpose { perm: vec![1, 0] }, &[state[1]]);
        vec![state[1], sum, state[2], sum, sum, turned, captured[0]]
    });
    found.into_iter().for_each(|value| net.output(value));
    cases.at(net, &[0, 1, 2, 9].map(|t| vec![("t", t)]));
}

/// A loop in each iteration of another one, with its number in its reads.
fn nested(cases: &mut Cases) {
    let mut net = Net::new();
    let t = net.symbol("t", 1, 6, 1);
    let x = net.input(DType::F32, &[t.clone(), 4.into(), 8.into()]);
    let w = net.weight(&[8, 8]);
    let start = zeros(&mut net, &dims(&[1, 8]));
    let repeat = Repeat { count: &t, backward: &[false], first: None };
    let found = net.repeat(repeat, &[start], &[x, w], |net, outer, state, captured| {
        let block = row(net, captured[0], outer);
        let count = Dim::from(4);
        let repeat = Repeat { count: &count, backward: &[true], first: None };
        let inner = [block, captured[1], captured[0]];
        let found = net.repeat(repeat, &[state[0]], &inner, |net, at, state, captured| {
            let own = row(net, captured[0], at);
            let block = row(net, captured[2], outer);
            let again = row(net, block, &(Dim::from(3) - at));
            let product = net.op(Op::MatMul, &[state[0], captured[1]]);
            let own = net.add(own, again);
            let sum = net.add(product, own);
            let next = net.unary(UnaryOp::Tanh, sum);
            vec![next, next]
        });
        vec![found[0], found[1]]
    });
    found.into_iter().for_each(|value| net.output(value));
    cases.at(net, &[1, 3, 6].map(|t| vec![("t", t)]));
}

/// Attention to all rows in each step: products, softmax and a data-dependent read.
fn attending(cases: &mut Cases) {
    let mut net = Net::new();
    let t = net.symbol("t", 1, 12, 1);
    let n = net.symbol("n", 1, 30, 1);
    let keys = net.input(DType::F32, &[n.clone(), 16.into()]);
    let table = net.input(DType::F32, &dims(&[4, 16]));
    let chosen = net.input(DType::I64, std::slice::from_ref(&t));
    let start = zeros(&mut net, &dims(&[1, 16]));
    let w = net.weight(&[16, 16]);
    let captured = [keys, table, chosen, w];
    let repeat = Repeat { count: &t, backward: &[false, false], first: None };
    let found = net.repeat(repeat, &[start], &captured, |net, at, state, captured| {
        let which = row(net, captured[2], at);
        let token = net.op(Op::Gather { axis: 0 }, &[captured[1], which]);
        let query = net.add(state[0], token);
        let query = net.op(Op::MatMul, &[query, captured[3]]);
        let keys = net.op(Op::Transpose { perm: vec![1, 0] }, &[captured[0]]);
        let scores = net.op(Op::MatMul, &[query, keys]);
        let weights = net.op(Op::Softmax { axis: 1, log: false }, &[scores]);
        let context = net.op(Op::MatMul, &[weights, captured[0]]);
        let sum = net.add(context, token);
        let next = net.unary(UnaryOp::Tanh, sum);
        vec![next, next, weights]
    });
    found.into_iter().for_each(|value| net.output(value));
    let sizes = [(1, 1), (3, 30), (12, 7)].map(|(t, n)| vec![("t", t), ("n", n)]);
    cases.at(net, &sizes);
}

/// One of two branches, each a loop of one iteration or none; what they give, joined, has one row. The condition is one
/// on sizes or on data.
fn branches(cases: &mut Cases) {
    for data in [false, true] {
        let mut net = Net::new();
        let t = net.symbol("t", 1, 40, 1);
        let x = net.input(DType::F32, &[t.clone(), 16.into()]);
        let sum = Op::Reduce { op: ReduceOp::Sum, axes: vec![0, 1], keep_dims: false };
        let sum = net.op(sum, &[x]);
        let zero = net.floats(&[], &[0.0]);
        let positive = binary(&mut net, BinaryOp::Gt, sum, zero);
        let taken = match data {
            true => {
                let size = net.op(Op::Cast(DType::I64), &[positive]);
                net.size("taken", 1, size)
            }
            false => {
                let long = Cond::Cmp(Cmp::Lt, 9.into(), t);
                Scope::new(&net.graph.symbols).select(&long, &Dim::ONE, &Dim::ZERO)
            }
        };
        let rest = &Dim::ONE - &taken;
        let w = net.weight(&[16, 24]);
        let repeat = Repeat { count: &taken, backward: &[false, false], first: None };
        let a = net.repeat(repeat, &[], &[x, w], |net, _, _, captured| {
            let y = net.op(Op::MatMul, &[captured[0], captured[1]]);
            let sum = Op::Reduce { op: ReduceOp::Max, axes: vec![0], keep_dims: false };
            let most = net.op(sum, &[y]);
            vec![y, most]
        });
        let repeat = Repeat { count: &rest, backward: &[false, false], first: None };
        let b = net.repeat(repeat, &[], &[x], |net, _, _, captured| {
            let w = net.weight(&[16, 24]);
            let y = net.op(Op::MatMul, &[captured[0], w]);
            let y = net.unary(UnaryOp::Tanh, y);
            let sum = Op::Reduce { op: ReduceOp::Sum, axes: vec![0], keep_dims: false };
            let total = net.op(sum, &[y]);
            vec![y, total]
        });
        for (a, b) in a.into_iter().zip(b) {
            let shape = net.graph[a].shape[1..].to_vec();
            let all = net.op(Op::Concat { axis: 0 }, &[a, b]);
            let one = net.op(Op::Reshape { shape }, &[all]);
            net.output(one);
        }
        cases.at(net, &[1, 9, 10, 40].map(|t| vec![("t", t)]));
    }
}

pub(super) fn all(cases: &mut Cases) {
    cases.family("loop_lstm", lstms);
    cases.family("loop_gru", grus);
    cases.family("loop_rnn", rnns);
    cases.family("loop_condition", conditions);
    cases.family("loop_branch", branches);
    cases.family("loop_places", places);
    cases.family("loop_nested", nested);
    cases.family("loop_attending", attending);
}
