//! Reductions, norms, softmax.

use super::Cases;
use crate::net::{Net, dims};
use aot_ir::op::{ReduceOp, UnaryOp};
use aot_ir::{DType, Dim, Op, Scalar};

fn reductions_over_any_axes(cases: &mut Cases) {
    for (i, op) in ReduceOp::ALL.iter().enumerate() {
        let all_axes = [vec![0], vec![1], vec![2], vec![0, 2], vec![0, 1, 2]];
        for (j, axes) in all_axes.into_iter().enumerate() {
            for keep_dims in [false, true] {
                let mut net = Net::new();
                let x = net.input(DType::F32, &dims(&[3, 4, 5]));
                let x = net.unary(UnaryOp::Tanh, x);
                let y = net.op(Op::Reduce { op: *op, axes: axes.clone(), keep_dims }, &[x]);
                let y = net.unary(UnaryOp::Neg, y);
                net.output(y);
                net.groups(1);
                // Sums over all, others over two sets of axes.
                let pair = *op == ReduceOp::Sum || (i + j) % 5 < 2;
                net.on_gpus(pair && keep_dims == j.is_multiple_of(2));
                cases.add(net);
            }
        }
    }
}

fn integer_and_boolean_reductions(cases: &mut Cases) {
    for dtype in [DType::I64, DType::I32, DType::Bool] {
        for op in [ReduceOp::Max, ReduceOp::Min] {
            let mut net = Net::new();
            let x = net.input(dtype, &dims(&[3, 4]));
            let y = net.op(Op::Reduce { op, axes: vec![1], keep_dims: false }, &[x]);
            net.output(y);
            cases.add(net);
        }
    }
}

fn arg_reductions_choose_among_equals(cases: &mut Cases) {
    for max in [false, true] {
        for last in [false, true] {
            let mut net = Net::new();
            let x = net.input(DType::I64, &dims(&[4, 9, 2]));
            let op = Op::ArgReduce { max, axis: 1, keep_dims: true, last };
            let y = net.op(op, &[x]);
            net.output(y);
            cases.add(net);
        }
    }
}

fn softmax_and_norms_fuse_what_follows(cases: &mut Cases) {
    let mut net = Net::new();
    let n = net.symbol("n", 1, 9, 1);
    let x = net.input(DType::F32, &[n, Dim::from(6), Dim::from(4)]);
    let s = net.op(Op::Softmax { axis: 1, log: false }, &[x]);
    let s = net.unary(UnaryOp::Sqrt, s);
    let l = net.op(Op::Softmax { axis: 2, log: true }, &[x]);
    let epsilon = Scalar::Float(1e-5);
    let m = net.op(Op::Normalize { axes: vec![2], epsilon, centered: true }, &[x]);
    let w = net.weight(&[4]);
    let m = net.mul(m, w);
    let r = net.op(Op::Normalize { axes: vec![1, 2], epsilon, centered: false }, &[x]);
    for v in [s, l, m, r] {
        net.output(v);
    }
    net.groups(4);
    cases.at(net, &[1, 9].map(|size| vec![("n", size)]));
}

/// Rows of every length that schedules share among threads differently.
fn rows_of_every_length(cases: &mut Cases) {
    for width in [31, 64, 130, 300, 700, 1000, 1500, 2100, 3000, 5000] {
        let mut net = Net::new();
        let x = net.input(DType::F32, &dims(&[5, width]));
        let epsilon = Scalar::Float(1e-5);
        let n = net.op(Op::Normalize { axes: vec![1], epsilon, centered: true }, &[x]);
        let s = net.op(Op::Softmax { axis: 1, log: false }, &[x]);
        let m = net.op(Op::Reduce { op: ReduceOp::Max, axes: vec![1], keep_dims: false }, &[x]);
        for v in [n, s, m] {
            net.output(v);
        }
        net.on_gpus(![64, 1500, 3000].contains(&width));
        cases.add(net);
    }
}

pub(super) fn all(cases: &mut Cases) {
    cases.family("rows_of_every_length", rows_of_every_length);
    cases.family("reductions_over_any_axes", reductions_over_any_axes);
    cases.family("integer_and_boolean_reductions", integer_and_boolean_reductions);
    cases.family("arg_reductions_choose_among_equals", arg_reductions_choose_among_equals);
    cases.family("softmax_and_norms_fuse_what_follows", softmax_and_norms_fuse_what_follows);
}
