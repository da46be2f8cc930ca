//! Movement, gathers and scatters.

use super::Cases;
use crate::net::{Net, dims};
use aot_ir::op::{BinaryOp, PadMode, ScatterReduction, UnaryOp};
use aot_ir::{DType, Dim, Op, Scalar};

fn movement_chains_are_one_group(cases: &mut Cases) {
    let mut net = Net::new();
    let b = net.symbol("b", 1, 5, 1);
    let x = net.input(DType::F32, &[b.clone(), Dim::from(6), Dim::from(8)]);
    let r = net.op(Op::Reshape { shape: vec![b.clone(), 6.into(), 2.into(), 4.into()] }, &[x]);
    let t = net.op(Op::Transpose { perm: vec![2, 0, 3, 1] }, &[r]);
    let e = net.op(Op::Reshape { shape: vec![2.into(), b.clone(), 24.into()] }, &[t]);
    let s = net.op(
        Op::Slice {
            starts: dims(&[1, 0, 23]),
            sizes: vec![1.into(), b, 12.into()],
            steps: vec![1, 1, -2],
        },
        &[e],
    );
    let y = net.unary(UnaryOp::Exp, s);
    net.output(y);
    net.groups(1);
    cases.at(net, &[1, 4].map(|size| vec![("b", size)]));
}

fn integers_wrap_and_floats_saturate(cases: &mut Cases) {
    for to in [DType::I8, DType::U8, DType::I32] {
        let mut net = Net::new();
        let i = net.input(DType::I64, &dims(&[4, 5]));
        let big = net.ints(&[], &[3_000_000_123]);
        let i = net.op(Op::Binary(BinaryOp::Mul), &[i, big]);
        let x = net.input(DType::F32, &dims(&[4, 5]));
        let scale = net.floats(&[], &[1e12]);
        let x = net.mul(x, scale);
        for v in [i, x] {
            let y = net.op(Op::Cast(to), &[v]);
            net.output(y);
        }
        cases.add(net);
    }
}

fn every_padding(cases: &mut Cases) {
    let modes =
        [PadMode::Constant(Scalar::Float(2.5)), PadMode::Reflect, PadMode::Edge, PadMode::Wrap];
    for mode in modes {
        for (low, high) in [([0, 2], [1, 3]), ([-1, 0], [2, -2])] {
            let mut net = Net::new();
            let x = net.input(DType::F32, &dims(&[4, 5]));
            let x = net.unary(UnaryOp::Exp, x);
            let y = net.op(Op::Pad { low: dims(&low), high: dims(&high), mode }, &[x]);
            net.output(y);
            cases.add(net);
        }
    }
}

fn concatenations_are_written_in_place_or_chosen(cases: &mut Cases) {
    let mut net = Net::new();
    let x = net.input(DType::F32, &dims(&[2, 3, 4]));
    let z = net.input(DType::F32, &dims(&[2, 5, 4]));
    let a = net.unary(UnaryOp::Exp, x);
    let b = net.unary(UnaryOp::Neg, z);
    let c = net.op(Op::Concat { axis: 1 }, &[a, b, x, x, a, z]);
    let d = net.op(Op::Concat { axis: 2 }, &[c, c]);
    let e = net.unary(UnaryOp::Relu, d);
    net.output(c);
    net.output(e);
    cases.add(net);
}

fn dense_blocks_read_a_part_and_write_the_next(cases: &mut Cases) {
    let mut net = Net::new();
    let x = net.input(DType::F32, &dims(&[4, 8]));
    let mut all = x;
    for _ in 0..3 {
        let width = net.graph[all].shape[1].as_const().unwrap() as usize;
        let w = net.weight(&[width, 4]);
        let y = net.op(Op::MatMul, &[all, w]);
        let y = net.unary(UnaryOp::Relu, y);
        all = net.op(Op::Concat { axis: 1 }, &[all, y]);
    }
    let w = net.weight(&[20, 3]);
    let y = net.op(Op::MatMul, &[all, w]);
    net.output(y);
    cases.add(net);
}

fn gathers(cases: &mut Cases) {
    let mut net = Net::new();
    let x = net.input(DType::F32, &dims(&[5, 6, 4]));
    let i = net.input(DType::I64, &dims(&[2, 3]));
    let minus = net.ints(&[], &[-2]);
    let j = net.op(Op::Binary(BinaryOp::Add), &[i, minus]);
    let a = net.op(Op::Gather { axis: 1 }, &[x, i]);
    let b = net.op(Op::Gather { axis: 0 }, &[x, j]);
    let k = net.input(DType::I64, &dims(&[5, 6, 2]));
    let c = net.op(Op::GatherElements { axis: 2 }, &[x, k]);
    let d = net.op(Op::GatherNd { batch_dims: 0 }, &[x, i]);
    let pairs = net.input(DType::I64, &dims(&[5, 7, 1]));
    let e = net.op(Op::GatherNd { batch_dims: 1 }, &[x, pairs]);
    for v in [a, b, c, e] {
        net.output(v);
    }
    let single = net.unary(UnaryOp::Abs, d);
    net.output(single);
    cases.add(net);
}

fn scatters_replace_and_combine(cases: &mut Cases) {
    for reduction in [ScatterReduction::None, ScatterReduction::Add, ScatterReduction::Max] {
        let mut net = Net::new();
        let x = net.input(DType::F32, &dims(&[5, 6]));
        let i = net.ints(&[2, 3], &[0, 4, -1, 1, 2, 3]);
        let u = net.input(DType::F32, &dims(&[2, 3]));
        let a = net.op(Op::ScatterElements { axis: 0, reduction }, &[x, i, u]);
        let n = net.ints(&[3, 1], &[0, -2, 2]);
        let rows = net.input(DType::F32, &dims(&[3, 6]));
        let b = net.op(Op::ScatterNd { reduction }, &[a, n, rows]);
        let y = net.unary(UnaryOp::Neg, b);
        net.output(y);
        cases.add(net);
    }
}

fn outputs_may_be_inputs_constants_or_named_twice(cases: &mut Cases) {
    let mut net = Net::new();
    let x = net.input(DType::F32, &dims(&[2, 3]));
    let w = net.weight(&[3]);
    let y = net.add(x, w);
    for v in [x, w, y, y] {
        net.output(v);
    }
    cases.add(net);
}

fn causal_masks_from_coordinates_need_no_memory(cases: &mut Cases) {
    let mut net = Net::new();
    let n = net.symbol("n", 1, 16, 1);
    let shape = vec![n.clone(), n.clone()];
    let rows = net.op(Op::Iota { shape: shape.clone(), axis: 0, dtype: DType::I64 }, &[]);
    let cols = net.op(Op::Iota { shape: shape.clone(), axis: 1, dtype: DType::I64 }, &[]);
    let seen = net.op(Op::Binary(BinaryOp::Le), &[cols, rows]);
    let x = net.input(DType::F32, &shape);
    let low =
        net.op(Op::Fill { shape, value: Scalar::Float(f64::NEG_INFINITY), dtype: DType::F32 }, &[]);
    let masked = net.op(Op::Select, &[seen, x, low]);
    let y = net.op(Op::Softmax { axis: 1, log: false }, &[masked]);
    net.output(y);
    net.groups(1);
    cases.at(net, &[1, 7].map(|size| vec![("n", size)]));
}

pub(super) fn all(cases: &mut Cases) {
    cases.family("movement_chains_are_one_group", movement_chains_are_one_group);
    cases.family("integers_wrap_and_floats_saturate", integers_wrap_and_floats_saturate);
    cases.family("every_padding", every_padding);
    cases.family(
        "concatenations_are_written_in_place_or_chosen",
        concatenations_are_written_in_place_or_chosen,
    );
    cases.family(
        "dense_blocks_read_a_part_and_write_the_next",
        dense_blocks_read_a_part_and_write_the_next,
    );
    cases.family("gathers", gathers);
    cases.family("scatters_replace_and_combine", scatters_replace_and_combine);
    cases.family(
        "outputs_may_be_inputs_constants_or_named_twice",
        outputs_may_be_inputs_constants_or_named_twice,
    );
    cases.family(
        "causal_masks_from_coordinates_need_no_memory",
        causal_masks_from_coordinates_need_no_memory,
    );
}
