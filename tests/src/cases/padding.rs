//! Values with extents that are not whole accesses, which lowering pads.

use super::Cases;
use crate::net::{Net, dims};
use aot_ir::op::{
    BinaryOp, ConvAttrs, CoordinateMap, NearestRounding, PoolAttrs, PoolKind, ReduceOp,
    ResizeAttrs, ResizeMode, UnaryOp,
};
use aot_ir::{DType, Dim, Op, Scalar, ValueId};

/// A convolution that keeps sizes: `width` wide along every spatial axis.
fn conv(net: &mut Net, x: ValueId, channels: [usize; 2], width: usize, groups: usize) -> ValueId {
    let rank = net.graph[x].shape.len();
    let spatial = rank - 2;
    let mut kernel = vec![channels[1], channels[0] / groups];
    kernel.extend(vec![width; spatial]);
    let w = net.weight(&kernel);
    let pad = Dim::from(width as i64 / 2);
    let attrs = ConvAttrs {
        strides: vec![1; spatial],
        pads: vec![(pad.clone(), pad); spatial],
        dilations: vec![1; spatial],
        groups: groups as i64,
    };
    let y = net.op(Op::Conv(attrs), &[x, w]);
    let mut bias = vec![channels[1]];
    bias.extend(vec![1; spatial]);
    let bias = net.weight(&bias);
    net.add(y, bias)
}

/// What is not zero at zero, so that padding is not zero by chance.
fn bent(net: &mut Net, x: ValueId) -> ValueId {
    let y = net.unary(UnaryOp::Sigmoid, x);
    net.add(y, x)
}

fn slice(net: &mut Net, x: ValueId, first: i64, count: i64) -> ValueId {
    let shape = net.graph[x].shape.clone();
    let mut starts = vec![Dim::ZERO; shape.len()];
    starts[1] = first.into();
    let mut sizes = shape;
    sizes[1] = count.into();
    let steps = vec![1; sizes.len()];
    net.op(Op::Slice { starts, sizes, steps }, &[x])
}

fn concat(net: &mut Net, parts: &[ValueId], axis: usize) -> ValueId {
    net.op(Op::Concat { axis }, parts)
}

fn padded_channels_between_convolutions(cases: &mut Cases) {
    for (i, [a, b, c]) in
        [[3, 18, 5], [5, 12, 22], [1, 5, 3], [22, 3, 1], [8, 26, 18]].into_iter().enumerate()
    {
        let mut net = Net::new();
        let x = net.input(DType::F32, &dims(&[2, a as i64, 6, 7]));
        let y = conv(&mut net, x, [a, b], 3, 1);
        let y = bent(&mut net, y);
        let y = conv(&mut net, y, [b, c], 1, 1);
        let y = net.unary(UnaryOp::Exp, y);
        let y = conv(&mut net, y, [c, b], 3, 1);
        net.output(y);
        net.groups(3);
        net.loosen(2.0);
        net.on_gpus(i < 3);
        cases.add(net);
    }
}

fn padded_channels_of_signals_of_any_length(cases: &mut Cases) {
    let mut net = Net::new();
    let (batch, n) = (net.symbol("batch", 1, 3, 1), net.symbol("n", 5, 64, 1));
    let x = net.input(DType::F32, &[batch, 5.into(), n]);
    let y = conv(&mut net, x, [5, 18], 5, 1);
    let y = bent(&mut net, y);
    let y = conv(&mut net, y, [18, 18], 3, 18);
    let y = bent(&mut net, y);
    let y = conv(&mut net, y, [18, 5], 3, 1);
    net.output(y);
    net.loosen(2.0);
    let sizes = [(1, 5), (2, 6), (3, 17), (3, 64)];
    cases.at(net, &sizes.map(|(b, n)| vec![("batch", b), ("n", n)]));
}

fn padded_channels_in_groups(cases: &mut Cases) {
    // Groups of eleven, of three, depthwise, and two results a channel.
    for (i, [a, b, groups]) in
        [[22, 22, 2], [18, 36, 6], [22, 22, 22], [18, 36, 18]].into_iter().enumerate()
    {
        let mut net = Net::new();
        let x = net.input(DType::F32, &dims(&[2, 5, 6, 5]));
        let y = conv(&mut net, x, [5, a], 1, 1);
        let y = bent(&mut net, y);
        let y = conv(&mut net, y, [a, b], 3, groups);
        let y = bent(&mut net, y);
        let y = conv(&mut net, y, [b, 5], 1, 1);
        net.output(y);
        net.loosen(2.0);
        net.on_gpus(i % 2 == 0);
        cases.add(net);
    }
}

fn padded_channels_of_concatenations(cases: &mut Cases) {
    // Parts of one and of two that are computed in place, of an input, and nested ones.
    for (i, widths) in
        [vec![5, 13], vec![12, 13, 1], vec![18, 8], vec![7, 0, 11]].into_iter().enumerate()
    {
        let mut net = Net::new();
        let x = net.input(DType::F32, &dims(&[2, 18, 5, 4]));
        let parts = widths.iter().enumerate().map(|(j, &n)| match n {
            0 => slice(&mut net, x, 2, 5),
            n => {
                let y = conv(&mut net, x, [18, n], if j == 0 { 3 } else { 1 }, 1);
                bent(&mut net, y)
            }
        });
        let parts: Vec<ValueId> = parts.collect();
        let whole = concat(&mut net, &parts, 1);
        let count: usize = widths.iter().map(|n| if *n == 0 { 5 } else { *n }).sum();
        let y = conv(&mut net, whole, [count, 18], 3, 1);
        let y = bent(&mut net, y);
        let sum = net.add(y, x);
        let again = concat(&mut net, &[sum, parts[0]], 1);
        let y = conv(&mut net, again, [18 + widths[0], 3], 1, 1);
        net.output(y);
        net.loosen(3.0);
        net.on_gpus(i == 1 || i == 3);
        cases.add(net);
    }
    // Along another axis every part has padding of its own.
    let mut net = Net::new();
    let x = net.input(DType::F32, &dims(&[2, 5, 5, 4]));
    let parts = [1, 3, 1].map(|width| {
        let y = conv(&mut net, x, [5, 18], width, 1);
        bent(&mut net, y)
    });
    let whole = concat(&mut net, &parts, 2);
    let y = conv(&mut net, whole, [18, 6], 3, 1);
    net.output(y);
    net.loosen(2.0);
    cases.add(net);
}

fn padded_channels_of_views(cases: &mut Cases) {
    let mut net = Net::new();
    let x = net.input(DType::F32, &dims(&[2, 5, 6, 5]));
    let y = conv(&mut net, x, [5, 22], 3, 1);
    let y = bent(&mut net, y);
    let (low, high) = (slice(&mut net, y, 0, 9), slice(&mut net, y, 9, 13));
    let low = conv(&mut net, low, [9, 13], 1, 1);
    let high = conv(&mut net, high, [13, 13], 3, 1);
    let sum = net.add(low, high);
    let scaled = net.mul(sum, high);
    net.output(scaled);
    net.loosen(2.0);
    cases.add(net);

    // Positions become rows of a matrix, channels what is summed over.
    let mut net = Net::new();
    let x = net.input(DType::F32, &dims(&[2, 5, 6, 5]));
    let y = conv(&mut net, x, [5, 18], 3, 1);
    let y = bent(&mut net, y);
    let rows = net.op(Op::Reshape { shape: dims(&[2, 18, 30]) }, &[y]);
    let rows = net.op(Op::Transpose { perm: vec![0, 2, 1] }, &[rows]);
    let w = net.weight(&[18, 26]);
    let z = net.op(Op::MatMul, &[rows, w]);
    let z = bent(&mut net, z);
    let w = net.weight(&[26, 10]);
    let z = net.op(Op::MatMul, &[z, w]);
    net.output(z);
    net.loosen(2.0);
    cases.add(net);
}

fn padded_channels_meet_outputs_and_constants(cases: &mut Cases) {
    // A value that the caller gets too, in another layout, and one that is added to a constant image.
    let mut net = Net::new();
    let x = net.input(DType::F32, &dims(&[2, 3, 6, 5]));
    let y = conv(&mut net, x, [3, 18], 3, 1);
    let y = bent(&mut net, y);
    let image = net.weight(&[1, 18, 6, 5]);
    let z = net.add(y, image);
    let z = net.unary(UnaryOp::Exp, z);
    let again = conv(&mut net, z, [18, 18], 3, 1);
    let again = bent(&mut net, again);
    let other = conv(&mut net, again, [18, 5], 1, 1);
    net.output(z);
    net.output(other);
    net.loosen(3.0);
    cases.add(net);
}

fn padded_channels_of_squeezed_and_residual_blocks(cases: &mut Cases) {
    let mut net = Net::new();
    let (h, w) = (net.symbol("h", 4, 16, 4), net.symbol("w", 4, 16, 4));
    let x = net.input(DType::F32, &[2.into(), 3.into(), h, w]);
    let x = conv(&mut net, x, [3, 18], 3, 1);
    let x = bent(&mut net, x);
    let mean = Op::Reduce { op: ReduceOp::Mean, axes: vec![2, 3], keep_dims: true };
    let s = net.op(mean, &[x]);
    let s = conv(&mut net, s, [18, 5], 1, 1);
    let s = net.unary(UnaryOp::Relu, s);
    let s = conv(&mut net, s, [5, 18], 1, 1);
    let s = net.unary(UnaryOp::Sigmoid, s);
    let y = net.mul(x, s);
    let y = conv(&mut net, y, [18, 18], 3, 1);
    let y = net.add(y, x);
    let y = net.unary(UnaryOp::Relu, y);
    let y = conv(&mut net, y, [18, 2], 1, 1);
    net.output(y);
    net.loosen(3.0);
    cases.at(net, &[(4, 4), (8, 4), (12, 16)].map(|(h, w)| vec![("h", h), ("w", w)]));
}

fn padded_channels_of_pools_and_resizes(cases: &mut Cases) {
    let kinds = [PoolKind::Max, PoolKind::Average { count_include_pad: false }];
    let modes = [ResizeMode::Nearest(NearestRounding::Floor), ResizeMode::Linear];
    for (kind, mode) in kinds.into_iter().zip(modes) {
        let mut net = Net::new();
        let x = net.input(DType::F32, &dims(&[2, 5, 6, 8]));
        let y = conv(&mut net, x, [5, 18], 3, 1);
        let y = bent(&mut net, y);
        let attrs = PoolAttrs {
            kind,
            kernel: dims(&[3, 3]),
            strides: vec![2, 2],
            pads: vec![(1.into(), 1.into()); 2],
            dilations: vec![1, 1],
            ceil_mode: false,
        };
        let y = net.op(Op::Pool(attrs), &[y]);
        let y = conv(&mut net, y, [18, 18], 1, 1);
        let attrs = ResizeAttrs {
            mode,
            coordinates: CoordinateMap::ALL[0],
            sizes: dims(&[2, 18, 6, 8]),
            scales: vec![None; 4],
            exclude_outside: false,
        };
        let y = net.op(Op::Resize(attrs), &[y]);
        let y = conv(&mut net, y, [18, 6], 3, 1);
        net.output(y);
        net.loosen(2.0);
        cases.add(net);
    }
}

fn padded_channels_of_transposed_convolutions(cases: &mut Cases) {
    for (i, (stride, groups)) in [(1, 1), (2, 1), (2, 2)].into_iter().enumerate() {
        let mut net = Net::new();
        let x = net.input(DType::F32, &dims(&[2, 3, 5, 3]));
        let y = conv(&mut net, x, [3, 18], 3, 1);
        let y = bent(&mut net, y);
        let w = net.weight(&[18, 10 / groups, 2, 3]);
        let conv_attrs = ConvAttrs {
            strides: vec![stride; 2],
            pads: vec![(0.into(), 0.into()), (1.into(), 1.into())],
            dilations: vec![1; 2],
            groups: groups as i64,
        };
        let transposed = Op::ConvTranspose { conv: conv_attrs, output_padding: vec![0; 2] };
        let y = net.op(transposed, &[y, w]);
        let y = bent(&mut net, y);
        let y = conv(&mut net, y, [10, 3], 1, 1);
        net.output(y);
        net.loosen(2.0);
        net.on_gpus(i == 1);
        cases.add(net);
    }
}

fn padded_channels_around_norms(cases: &mut Cases) {
    // Over channels, over positions, and softmax over channels.
    let norm =
        |axes: Vec<usize>| Op::Normalize { axes, epsilon: Scalar::Float(1e-5), centered: true };
    for op in [norm(vec![1]), norm(vec![2, 3]), Op::Softmax { axis: 1, log: false }] {
        let mut net = Net::new();
        let x = net.input(DType::F32, &dims(&[2, 3, 4, 5]));
        let y = conv(&mut net, x, [3, 18], 3, 1);
        let y = net.op(op, &[y]);
        let scale = net.weight(&[18, 1, 1]);
        let y = net.mul(y, scale);
        let y = bent(&mut net, y);
        let y = conv(&mut net, y, [18, 6], 3, 1);
        net.output(y);
        net.loosen(3.0);
        cases.add(net);
    }
}

fn padded_sums_of_matrix_products(cases: &mut Cases) {
    // Weights as they lie or transposed; rows of any number; a product of what is computed twice.
    for transposed in [false, true] {
        let mut net = Net::new();
        let n = net.symbol("n", 1, 40, 1);
        let x = net.input(DType::F32, &[2.into(), n.clone(), 40.into()]);
        let w = net.weight(&[40, 50]);
        let b = net.weight(&[50]);
        let y = net.op(Op::MatMul, &[x, w]);
        let y = net.add(y, b);
        let y = bent(&mut net, y);
        let w = if transposed {
            let w = net.weight(&[30, 50]);
            net.op(Op::Transpose { perm: vec![1, 0] }, &[w])
        } else {
            net.weight(&[50, 30])
        };
        let z = net.op(Op::MatMul, &[y, w]);
        let z = bent(&mut net, z);
        let flat = net.op(Op::Reshape { shape: vec![n.scaled(2), 30.into()] }, &[z]);
        let w = net.weight(&[30, 7]);
        let out = net.op(Op::MatMul, &[flat, w]);
        net.output(out);
        net.loosen(3.0);
        cases.at(net, &[1, 7, 40].map(|size| vec![("n", size)]));
    }
    let mut net = Net::new();
    let x = net.input(DType::F32, &dims(&[3, 9, 20]));
    let y = net.input(DType::F32, &dims(&[3, 11, 20]));
    let project = |net: &mut Net, x: ValueId| {
        let w = net.weight(&[20, 50]);
        let x = net.op(Op::MatMul, &[x, w]);
        bent(net, x)
    };
    let (x, y) = (project(&mut net, x), project(&mut net, y));
    let y = net.op(Op::Transpose { perm: vec![0, 2, 1] }, &[y]);
    let z = net.op(Op::MatMul, &[x, y]);
    net.output(z);
    net.loosen(3.0);
    cases.add(net);

    // Rows of a norm, which sums over the same axis, keep their extent.
    let mut net = Net::new();
    let x = net.input(DType::F32, &dims(&[9, 50]));
    let op = Op::Normalize { axes: vec![1], epsilon: Scalar::Float(1e-5), centered: true };
    let y = net.op(op, &[x]);
    let w = net.weight(&[50, 50]);
    let z = net.op(Op::MatMul, &[y, w]);
    let z = net.op(Op::Binary(BinaryOp::Max), &[z, y]);
    let z = bent(&mut net, z);
    let w = net.weight(&[50, 6]);
    let z = net.op(Op::MatMul, &[z, w]);
    net.output(z);
    net.loosen(3.0);
    cases.add(net);
}

pub(super) fn all(cases: &mut Cases) {
    cases.family("padded_channels_between_convolutions", padded_channels_between_convolutions);
    cases.family(
        "padded_channels_of_signals_of_any_length",
        padded_channels_of_signals_of_any_length,
    );
    cases.family("padded_channels_in_groups", padded_channels_in_groups);
    cases.family("padded_channels_of_concatenations", padded_channels_of_concatenations);
    cases.family("padded_channels_of_views", padded_channels_of_views);
    cases.family(
        "padded_channels_meet_outputs_and_constants",
        padded_channels_meet_outputs_and_constants,
    );
    cases.family(
        "padded_channels_of_squeezed_and_residual_blocks",
        padded_channels_of_squeezed_and_residual_blocks,
    );
    cases.family("padded_channels_of_pools_and_resizes", padded_channels_of_pools_and_resizes);
    cases.family(
        "padded_channels_of_transposed_convolutions",
        padded_channels_of_transposed_convolutions,
    );
    cases.family("padded_channels_around_norms", padded_channels_around_norms);
    cases.family("padded_sums_of_matrix_products", padded_sums_of_matrix_products);
}
