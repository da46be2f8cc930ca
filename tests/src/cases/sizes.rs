//! Sizes that the run computes.

use super::Cases;
use crate::net::{Net, dims};
use aot_ir::op::{BinaryOp, ReduceOp, ScanOp, ScatterReduction};
use aot_ir::{DType, Dim, Op, Scalar, ValueId};

fn slice(x: &[Dim], axis: usize, size: Dim) -> Op {
    let mut sizes = x.to_vec();
    sizes[axis] = size;
    Op::Slice { starts: vec![Dim::ZERO; sizes.len()], sizes, steps: vec![1; x.len()] }
}

fn scalar(net: &mut Net, value: i64) -> ValueId {
    net.ints(&[], &[value])
}

/// Positions of the places of a flat `Bool` that hold, `[count]`; `most` is their greatest number.
fn places(net: &mut Net, flags: ValueId, most: i64) -> (ValueId, Dim) {
    let shape = net.graph[flags].shape.clone();
    let ones = net.op(Op::Cast(DType::I64), &[flags]);
    let scan = Op::Scan { op: ScanOp::Sum, axis: 0, exclusive: false, reverse: false };
    let running = net.op(scan, &[ones]);
    let total = net.op(Op::Reduce { op: ReduceOp::Sum, axes: vec![0], keep_dims: false }, &[ones]);
    let count = net.size("count", most, total);
    // What does not hold goes to one place behind all others.
    let one = scalar(net, 1);
    let last = net.op(Op::Dims { dims: shape.clone(), scalar: true }, &[]);
    let place = net.op(Op::Binary(BinaryOp::Sub), &[running, one]);
    let place = net.op(Op::Select, &[flags, place, last]);
    let (value, dtype) = (Scalar::Int(0), DType::I64);
    let longer = vec![&shape[0] + 1];
    let blank = net.op(Op::Fill { shape: longer.clone(), value, dtype }, &[]);
    let at = net.op(Op::Iota { shape: shape.clone(), axis: 0, dtype }, &[]);
    let scatter = Op::ScatterElements { axis: 0, reduction: ScatterReduction::None };
    let all = net.op(scatter, &[blank, place, at]);
    (net.op(slice(&longer, 0, count.clone()), &[all]), count)
}

fn positive(net: &mut Net, x: ValueId) -> ValueId {
    let zero = net.floats(&[], &[0.0]);
    net.op(Op::Binary(BinaryOp::Gt), &[x, zero])
}

/// Rows of a table by places, then a product with as many rows as there are.
fn rows_that_data_chooses(cases: &mut Cases) {
    for width in [1, 8, 40] {
        let mut net = Net::new();
        let n = net.symbol("n", 1, 300, 1);
        let x = net.input(DType::F32, std::slice::from_ref(&n));
        let table = net.input(DType::F32, &[n, Dim::from(width)]);
        let flags = positive(&mut net, x);
        let (at, _) = places(&mut net, flags, 300);
        let rows = net.op(Op::Gather { axis: 0 }, &[table, at]);
        let w = net.weight(&[width as usize, 24]);
        let y = net.op(Op::MatMul, &[rows, w]);
        net.output(at);
        net.output(y);
        cases.at(net, &[1, 40, 300].map(|size| vec![("n", size)]));
    }
}

/// A size that one computed before it bounds, sums over none and many, and a concatenation of both.
fn sizes_after_sizes(cases: &mut Cases) {
    let mut net = Net::new();
    let x = net.input(DType::F32, &dims(&[50]));
    let flags = positive(&mut net, x);
    let (at, count) = places(&mut net, flags, 50);
    let chosen = net.op(Op::Gather { axis: 0 }, &[x, at]);
    let half = net.floats(&[], &[0.5]);
    let large = net.op(Op::Binary(BinaryOp::Gt), &[chosen, half]);
    let ones = net.op(Op::Cast(DType::I64), &[large]);
    let sum = |op| Op::Reduce { op, axes: vec![0], keep_dims: false };
    let total = net.op(sum(ReduceOp::Sum), &[ones]);
    let few = net.size("few", 50, total);
    let first = net.op(slice(&[count], 0, few), &[chosen]);
    let both = net.op(Op::Concat { axis: 0 }, &[first, chosen, x]);
    let most = net.op(sum(ReduceOp::Max), &[both]);
    net.output(first);
    net.output(both);
    net.output(most);
    cases.add(net);
    // The same without any.
    let mut net = Net::new();
    let x = net.input(DType::F32, &dims(&[50]));
    let two = net.floats(&[], &[2.0]);
    let flags = net.op(Op::Binary(BinaryOp::Gt), &[x, two]);
    let (at, _) = places(&mut net, flags, 50);
    let chosen = net.op(Op::Gather { axis: 0 }, &[x, at]);
    let total = net.op(sum(ReduceOp::Sum), &[chosen]);
    net.output(chosen);
    net.output(total);
    cases.add(net);
}

/// Sizes that are inputs: ranges, broadcasts, parts, and products along such an axis.
fn sizes_that_are_inputs(cases: &mut Cases) {
    let mut net = Net::new();
    let (a, b) = (net.input(DType::I64, &[]), net.input(DType::I64, &[]));
    let (a, b) = (net.size("a", 5, a), net.size("b", 6, b));
    let iota = Op::Iota { shape: vec![a.clone()], axis: 0, dtype: DType::I64 };
    let range = net.op(iota, &[]);
    let x = net.input(DType::F32, &dims(&[5, 6]));
    let sizes = vec![a.clone(), b.clone()];
    let cut = Op::Slice { starts: vec![Dim::ZERO; 2], sizes, steps: vec![1; 2] };
    let part = net.op(cut, &[x]);
    let w = net.weight(&[4, 5]);
    let w = net.op(slice(&dims(&[4, 5]), 1, a.clone()), &[w]);
    let y = net.op(Op::MatMul, &[w, part]);
    let flat = net.op(Op::Reshape { shape: vec![&a * &b] }, &[part]);
    let row = net.op(Op::Reshape { shape: vec![30.into()] }, &[x]);
    let row = net.op(slice(&dims(&[30]), 0, &a * 6), &[row]);
    let wide = net.op(Op::Expand { shape: vec![b, &a * 6] }, &[row]);
    for value in [range, part, y, flat, wide] {
        net.output(value);
    }
    cases.add(net);
}

pub(super) fn all(cases: &mut Cases) {
    cases.family("rows_that_data_chooses", rows_that_data_chooses);
    cases.family("sizes_after_sizes", sizes_after_sizes);
    cases.family("sizes_that_are_inputs", sizes_that_are_inputs);
}
