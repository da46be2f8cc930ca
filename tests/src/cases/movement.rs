//! Movement, gathers and scatters.

use super::Cases;
use crate::net::{Net, dims};
use aot_ir::op::{BinaryOp, ConvAttrs, PadMode, ReduceOp, ScatterReduction, UnaryOp};
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

fn gathers_of_several_axes_at_once(cases: &mut Cases) {
    let mut net = Net::new();
    let n = net.symbol("n", 1, 7, 1);
    let x = net.input(DType::F32, &[n.clone(), 6.into(), 5.into(), 3.into()]);
    // Pairs in -2..2 of axes 1 and 2.
    let i = net.input(DType::I64, &[n, 4.into(), 2.into()]);
    let two = net.ints(&[], &[2]);
    let i = net.op(Op::Binary(BinaryOp::Sub), &[i, two]);
    let a = net.op(Op::GatherNd { batch_dims: 1 }, &[x, i]);
    let a = net.unary(UnaryOp::Exp, a);
    // Elements, counted from the end.
    let k = net.ints(&[2, 3], &[-1, -6, 5, 0, -3, 2]);
    let b = net.op(Op::Gather { axis: 1 }, &[x, k]);
    net.output(a);
    net.output(b);
    cases.at(net, &[1, 7].map(|size| vec![("n", size)]));
}

/// The network of scatters into `x`, its indices and its updates.
fn scatter(dtype: DType, reduction: ScatterReduction) -> Net {
    let mut net = Net::new();
    let x = net.input(dtype, &dims(&[5, 6]));
    let (i, j) = match reduction {
        // Which of two writes to one place remains is not defined.
        ScatterReduction::None => (
            net.ints(&[2, 3], &[0, 4, -1, 1, 2, 3]),
            net.ints(&[4, 2], &[0, -1, 1, 5, -2, 0, 2, -6]),
        ),
        _ => {
            // In -2..2, often several times the same.
            let two = net.ints(&[], &[2]);
            let i = net.input(DType::I64, &dims(&[2, 3]));
            let j = net.input(DType::I64, &dims(&[9, 2]));
            let sub = Op::Binary(BinaryOp::Sub);
            (net.op(sub.clone(), &[i, two]), net.op(sub, &[j, two]))
        }
    };
    let u = net.input(dtype, &dims(&[2, 3]));
    let a = net.op(Op::ScatterElements { axis: 0, reduction }, &[x, i, u]);
    let n = net.ints(&[3, 1], &[0, -2, 2]);
    let rows = net.input(dtype, &dims(&[3, 6]));
    let b = net.op(Op::ScatterNd { reduction }, &[a, n, rows]);
    let places = net.graph[j].shape[0].clone();
    let points = net.input(dtype, &[places]);
    let c = net.op(Op::ScatterNd { reduction }, &[x, j, points]);
    let y = net.unary(UnaryOp::Neg, b);
    net.output(y);
    net.output(c);
    net
}

fn scatters_replace_and_combine(cases: &mut Cases) {
    for reduction in ScatterReduction::ALL {
        for dtype in [DType::F32, DType::I64, DType::I32] {
            let mut net = scatter(dtype, *reduction);
            let integer = match dtype {
                DType::I64 => [ScatterReduction::Add, ScatterReduction::Min],
                _ => [ScatterReduction::Mul, ScatterReduction::Max],
            };
            net.on_gpus(dtype == DType::F32 || integer.contains(reduction));
            cases.add(net);
        }
    }
}

fn parts_of_odd_sizes_change_places(cases: &mut Cases) {
    let mut net = Net::new();
    let n = net.symbol("n", 1, 40, 1);
    let width = n.clone() + Dim::from(7);
    let x = net.input(DType::F32, &[Dim::from(3), width.clone()]);
    let part = |net: &mut Net, x, start: Dim, size: Dim, step: i64| {
        let starts = vec![Dim::ZERO, start];
        net.op(Op::Slice { starts, sizes: vec![3.into(), size], steps: vec![1, step] }, &[x])
    };
    // Split in three: n, 4 and 3 wide.
    let a = part(&mut net, x, Dim::ZERO, n.clone(), 1);
    let b = part(&mut net, x, n.clone(), 4.into(), 1);
    let c = part(&mut net, x, n.clone() + Dim::from(4), 3.into(), 1);
    let a = net.unary(UnaryOp::Exp, a);
    let b = net.unary(UnaryOp::Neg, b);
    let y = net.op(Op::Concat { axis: 1 }, &[c, a, b]);
    // Back to front, and every third of that.
    let z = part(&mut net, y, width.clone() - Dim::ONE, width.clone(), -1);
    let t = part(&mut net, z, 1.into(), 2.into(), 3);
    let both = net.op(Op::Concat { axis: 1 }, &[t, z, x]);
    let turned = net.op(Op::Transpose { perm: vec![1, 0] }, &[both]);
    for v in [y, turned] {
        net.output(v);
    }
    cases.at(net, &[1, 2, 33, 40].map(|size| vec![("n", size)]));
}

fn paddings_of_sizes_known_late(cases: &mut Cases) {
    for mode in [PadMode::Reflect, PadMode::Edge, PadMode::Constant(Scalar::Float(-1.0))] {
        let mut net = Net::new();
        let (h, w) = (net.symbol("h", 4, 33, 1), net.symbol("w", 4, 33, 1));
        let x = net.input(DType::F32, &[Dim::from(2), h, w]);
        let x = net.unary(UnaryOp::Tanh, x);
        let (low, high) = (dims(&[0, 3, 1]), dims(&[0, 2, 3]));
        let y = net.op(Op::Pad { low, high, mode }, &[x]);
        let k = net.weight(&[3, 2, 3, 3]);
        let shape = net.graph[y].shape.clone();
        let shape = [vec![Dim::ONE], shape].concat();
        let z = net.op(Op::Reshape { shape }, &[y]);
        let attrs = ConvAttrs {
            strides: vec![1, 2],
            pads: vec![(0.into(), 0.into()); 2],
            dilations: vec![1, 1],
            groups: 1,
        };
        let z = net.op(Op::Conv(attrs), &[z, k]);
        net.output(y);
        net.output(z);
        let sizes = [(4, 4), (5, 33), (33, 7)];
        cases.at(net, &sizes.map(|(h, w)| vec![("h", h), ("w", w)]));
    }
}

/// Tensors without elements: nothing is computed from them but what reductions give of nothing.
fn empty_tensors(cases: &mut Cases) {
    let mut net = Net::new();
    let n = net.symbol("n", 0, 9, 1);
    let x = net.input(DType::F32, &[n.clone(), Dim::from(6)]);
    let y = net.input(DType::F32, &[Dim::from(4), n.clone()]);
    let w = net.weight(&[6, 5]);
    let rows = net.op(Op::MatMul, &[x, w]);
    let inner = net.op(Op::MatMul, &[y, x]);
    let weights = net.op(Op::Softmax { axis: 1, log: false }, &[y]);
    let sums = Op::Reduce { op: ReduceOp::Sum, axes: vec![0], keep_dims: false };
    let sums = net.op(sums, &[x]);
    let most = Op::Reduce { op: ReduceOp::Max, axes: vec![1], keep_dims: true };
    let most = net.op(most, &[y]);
    let mean = Op::Reduce { op: ReduceOp::Mean, axes: vec![0, 1], keep_dims: false };
    let mean = net.op(mean, &[x]);
    let turned = net.op(Op::Transpose { perm: vec![1, 0] }, &[y]);
    let all = net.op(Op::Concat { axis: 1 }, &[x, turned, rows]);
    let all = net.unary(UnaryOp::Abs, all);
    let two = net.ints(&[3], &[0, 1, -1]);
    let picked = net.op(Op::Gather { axis: 1 }, &[all, two]);
    let four = net.op(
        Op::Pad {
            low: dims(&[1, 0]),
            high: dims(&[2, 0]),
            mode: PadMode::Constant(Scalar::Float(0.5)),
        },
        &[x],
    );
    for v in [rows, inner, weights, sums, most, mean, all, picked, four] {
        net.output(v);
    }
    cases.at(net, &[0, 1, 9].map(|size| vec![("n", size)]));
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

/// Decision trees, all at once: where a row is after a level decides what is read at the next one, many times over.
fn walks(cases: &mut Cases) {
    for (levels, nodes) in [(3, 7), (20, 61)] {
        let mut net = Net::new();
        let n = net.symbol("n", 1, 40, 1);
        let x = net.input(DType::F32, &[n.clone(), 5.into()]);
        let table = |net: &mut Net, factor: i64, below: i64| {
            let values: Vec<i64> = (0..nodes).map(|i| (i * factor + 3) % below).collect();
            net.ints(&[nodes as usize], &values)
        };
        let features = table(&mut net, 3, 5);
        let next = [table(&mut net, 5, nodes), table(&mut net, 11, nodes)];
        let splits = net.weight(&[nodes as usize]);
        let weights = net.weight(&[nodes as usize]);
        let roots = net.ints(&[4], &[0, 1, 2, 5]);
        let mut at = net.op(Op::Expand { shape: vec![n, 4.into()] }, &[roots]);
        let gather = Op::Gather { axis: 0 };
        for _ in 0..levels {
            let feature = net.op(gather.clone(), &[features, at]);
            let value = net.op(Op::GatherElements { axis: 1 }, &[x, feature]);
            let split = net.op(gather.clone(), &[splits, at]);
            let holds = net.op(Op::Binary(BinaryOp::Le), &[value, split]);
            let sides = next.map(|next| net.op(gather.clone(), &[next, at]));
            at = net.op(Op::Select, &[holds, sides[0], sides[1]]);
        }
        let own = net.op(gather, &[weights, at]);
        let sum = Op::Reduce { op: ReduceOp::Sum, axes: vec![1], keep_dims: false };
        let sum = net.op(sum, &[own]);
        net.output(sum);
        net.output(at);
        cases.at(net, &[1, 40].map(|n| vec![("n", n)]));
    }
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
    cases.family("gathers_of_several_axes_at_once", gathers_of_several_axes_at_once);
    cases.family("parts_of_odd_sizes_change_places", parts_of_odd_sizes_change_places);
    cases.family("paddings_of_sizes_known_late", paddings_of_sizes_known_late);
    cases.family("empty_tensors", empty_tensors);
    cases.family("scatters_replace_and_combine", scatters_replace_and_combine);
    cases.family(
        "outputs_may_be_inputs_constants_or_named_twice",
        outputs_may_be_inputs_constants_or_named_twice,
    );
    cases.family(
        "causal_masks_from_coordinates_need_no_memory",
        causal_masks_from_coordinates_need_no_memory,
    );
    cases.family("walks", walks);
}
