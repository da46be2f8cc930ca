//! Matrix products, convolutions, pools and resizes.

use super::Cases;
use crate::net::{Net, dims};
use aot_ir::op::{
    ConvAttrs, CoordinateMap, NearestRounding, PoolAttrs, PoolKind, ResizeAttrs, ResizeMode,
};
use aot_ir::{DType, Dim, Op, Scalar};

fn matrix_products_broadcast_their_batches(cases: &mut Cases) {
    let shapes: [(&[i64], &[i64]); 7] = [
        (&[3, 5], &[5, 4]),
        (&[2, 3, 5], &[5, 4]),
        (&[3, 5], &[2, 5, 4]),
        (&[2, 1, 3, 5], &[1, 6, 5, 4]),
        (&[2, 6, 1, 5], &[2, 6, 5, 1]),
        (&[1, 1], &[1, 1]),
        (&[7, 2, 3, 1], &[1, 4]),
    ];
    for (a, b) in shapes {
        let mut net = Net::new();
        let x = net.input(DType::F32, &dims(a));
        let y = net.input(DType::F32, &dims(b));
        let out = net.op(Op::MatMul, &[x, y]);
        net.output(out);
        cases.add(net);
    }
}

fn a_product_takes_transposed_and_sliced_operands_as_they_lie(cases: &mut Cases) {
    let mut net = Net::new();
    let x = net.input(DType::F32, &dims(&[4, 6, 8]));
    let w = net.weight(&[10, 8]);
    let t = net.op(Op::Transpose { perm: vec![1, 0] }, &[w]);
    let part = net.op(
        Op::Slice { starts: dims(&[0, 2, 0]), sizes: dims(&[4, 3, 8]), steps: vec![1, 1, 1] },
        &[x],
    );
    let out = net.op(Op::MatMul, &[part, t]);
    net.output(out);
    net.groups(1);
    cases.add(net);
}

/// At most eight rows are multiplied by another schedule than more are; sizes lie on both sides.
fn products_of_few_and_of_many_rows(cases: &mut Cases) {
    // Columns and elements of a sum: aligned to whole accesses, to halves of one, and to nothing.
    for (n, k, transposed) in [
        (384, 256, false),
        (40, 1028, false),
        (37, 129, false),
        (48, 256, true),
        (20, 1028, true),
        (19, 131, true),
    ] {
        let mut net = Net::new();
        let rows = net.symbol("rows", 1, 40, 1);
        let x = net.input(DType::F32, &[rows, Dim::from(k as i64)]);
        let weight = if transposed { [n, k] } else { [k, n] };
        let mut w = net.weight(&weight);
        if transposed {
            w = net.op(Op::Transpose { perm: vec![1, 0] }, &[w]);
        }
        let bias = net.weight(&[n]);
        let product = net.op(Op::MatMul, &[x, w]);
        let out = net.add(product, bias);
        net.output(out);
        net.groups(1);
        cases.at(net, &[1, 2, 3, 4, 5, 7, 8, 9, 40].map(|m| vec![("rows", m)]));
    }
    // Batches of them, and an operand that is computed.
    let mut net = Net::new();
    let x = net.input(DType::F32, &dims(&[3, 2, 5, 64]));
    let y = net.input(DType::F32, &dims(&[3, 1, 64, 24]));
    let doubled = net.add(x, x);
    let out = net.op(Op::MatMul, &[doubled, y]);
    net.output(out);
    cases.add(net);
    // One place of an image, as after pooling, and one column.
    let mut net = Net::new();
    let x = net.input(DType::F32, &dims(&[1, 96, 1, 1]));
    let w = net.weight(&[24, 96, 1, 1]);
    let out = net.op(Op::Conv(conv_attrs([1, 1], [0, 0], [1, 1], 1)), &[x, w]);
    net.output(out);
    cases.add(net);
    let mut net = Net::new();
    let x = net.input(DType::F32, &dims(&[8, 200]));
    let w = net.weight(&[200, 1]);
    let out = net.op(Op::MatMul, &[x, w]);
    net.output(out);
    cases.add(net);
}

fn conv_attrs(strides: [i64; 2], pads: [i64; 2], dilations: [i64; 2], groups: i64) -> ConvAttrs {
    ConvAttrs {
        strides: strides.to_vec(),
        pads: pads.iter().map(|p| (Dim::from(*p), Dim::from(*p))).collect(),
        dilations: dilations.to_vec(),
        groups,
    }
}

fn convolutions_with_every_geometry(cases: &mut Cases) {
    let geometries = [
        (conv_attrs([1, 1], [1, 1], [1, 1], 1), [4, 3, 3, 3], 3),
        (conv_attrs([2, 1], [0, 2], [1, 2], 1), [5, 4, 2, 3], 4),
        (conv_attrs([1, 1], [0, 0], [1, 1], 1), [6, 4, 1, 1], 4),
        (conv_attrs([2, 2], [1, 1], [1, 1], 6), [6, 1, 3, 3], 6),
        (conv_attrs([1, 1], [1, 1], [1, 1], 3), [6, 2, 3, 3], 6),
        (conv_attrs([1, 2], [1, 1], [1, 1], 2), [6, 8, 3, 3], 16),
    ];
    for (attrs, kernel, channels) in geometries {
        let mut net = Net::new();
        let x = net.input(DType::F32, &dims(&[2, channels, 9, 8]));
        let w = net.weight(&kernel);
        let b = net.weight(&[kernel[0], 1, 1]);
        let y = net.op(Op::Conv(attrs), &[x, w]);
        let y = net.add(y, b);
        net.output(y);
        net.groups(1);
        cases.add(net);
    }
}

fn transposed_convolutions_gather(cases: &mut Cases) {
    for (stride, pad, dilation, extra, groups) in
        [(1, 0, 1, 0, 1), (2, 0, 1, 0, 1), (2, 1, 1, 1, 2), (3, 1, 2, 2, 1)]
    {
        let mut net = Net::new();
        let x = net.input(DType::F32, &dims(&[2, 4, 5, 3]));
        let w = net.weight(&[4, 3, 3, 2]);
        let conv = conv_attrs([stride; 2], [pad; 2], [dilation; 2], groups);
        let y = net.op(Op::ConvTranspose { conv, output_padding: vec![extra; 2] }, &[x, w]);
        net.output(y);
        cases.add(net);
    }
}

fn one_dimensional_convolutions_and_symbolic_lengths(cases: &mut Cases) {
    let mut net = Net::new();
    let n = net.symbol("n", 5, 64, 1);
    let x = net.input(DType::F32, &[Dim::from(2), Dim::from(3), n]);
    let w = net.weight(&[4, 3, 5]);
    let attrs = ConvAttrs {
        strides: vec![2],
        pads: vec![(2.into(), 2.into())],
        dilations: vec![1],
        groups: 1,
    };
    let y = net.op(Op::Conv(attrs), &[x, w]);
    net.output(y);
    cases.at(net, &[5, 6, 17, 64].map(|size| vec![("n", size)]));
}

fn pools_of_every_kind(cases: &mut Cases) {
    let kinds = [
        PoolKind::Max,
        PoolKind::Average { count_include_pad: false },
        PoolKind::Average { count_include_pad: true },
        PoolKind::Lp(2),
    ];
    for (i, kind) in kinds.into_iter().enumerate() {
        for ceil_mode in [false, true] {
            let mut net = Net::new();
            let x = net.input(DType::F32, &dims(&[2, 3, 8, 7]));
            let attrs = PoolAttrs {
                kind,
                kernel: dims(&[3, 2]),
                strides: vec![2, 3],
                pads: vec![(1.into(), 1.into()), (0.into(), 1.into())],
                dilations: vec![1, 2],
                ceil_mode,
            };
            let y = net.op(Op::Pool(attrs), &[x]);
            net.output(y);
            net.on_gpus(ceil_mode == i.is_multiple_of(2));
            cases.add(net);
        }
    }
}

fn resizes_of_every_kind(cases: &mut Cases) {
    let modes = [
        ResizeMode::Nearest(NearestRounding::PreferFloor),
        ResizeMode::Nearest(NearestRounding::PreferCeil),
        ResizeMode::Nearest(NearestRounding::Floor),
        ResizeMode::Nearest(NearestRounding::Ceil),
        ResizeMode::Linear,
        ResizeMode::Cubic(Scalar::Float(-0.75)),
    ];
    for (i, mode) in modes.into_iter().enumerate() {
        for (j, coordinates) in CoordinateMap::ALL.iter().enumerate() {
            let sizes = [[2, 3, 8, 10], [2, 3, 3, 4], [2, 3, 7, 1]];
            for (k, sizes) in sizes.into_iter().enumerate() {
                let mut net = Net::new();
                let x = net.input(DType::F32, &dims(&[2, 3, 4, 5]));
                let attrs = ResizeAttrs {
                    mode,
                    coordinates: *coordinates,
                    sizes: dims(&sizes),
                    scales: vec![None; 4],
                    exclude_outside: matches!(mode, ResizeMode::Cubic(_)),
                };
                let y = net.op(Op::Resize(attrs), &[x]);
                net.output(y);
                // Every mode with two of the coordinate maps, every map with some of the modes.
                let pair = (i + 2 * j) % CoordinateMap::ALL.len();
                net.on_gpus(pair < 2 && (i + j) % 3 == k);
                cases.add(net);
            }
        }
    }
}

pub(super) fn all(cases: &mut Cases) {
    cases
        .family("matrix_products_broadcast_their_batches", matrix_products_broadcast_their_batches);
    cases.family(
        "a_product_takes_transposed_and_sliced_operands_as_they_lie",
        a_product_takes_transposed_and_sliced_operands_as_they_lie,
    );
    cases.family("products_of_few_and_of_many_rows", products_of_few_and_of_many_rows);
    cases.family("convolutions_with_every_geometry", convolutions_with_every_geometry);
    cases.family("transposed_convolutions_gather", transposed_convolutions_gather);
    cases.family(
        "one_dimensional_convolutions_and_symbolic_lengths",
        one_dimensional_convolutions_and_symbolic_lengths,
    );
    cases.family("pools_of_every_kind", pools_of_every_kind);
    cases.family("resizes_of_every_kind", resizes_of_every_kind);
}
