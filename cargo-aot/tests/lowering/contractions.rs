//! Matrix products, convolutions, pools and resizes.

use super::support::{Net, check, check_at, dims};
use aot_ir::op::{
    ConvAttrs, CoordinateMap, NearestRounding, PoolAttrs, PoolKind, ResizeAttrs, ResizeMode,
};
use aot_ir::{DType, Dim, Op, Scalar};
use cargo_aot::lower::Precision;

#[test]
fn matrix_products_broadcast_their_batches() {
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
        check(&net);
        check_at(&net.graph, Precision::F16, 2e-3, &[]);
    }
}

#[test]
fn a_product_takes_transposed_and_sliced_operands_as_they_lie() {
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
    assert_eq!(super::support::steps(&net.graph), 1);
    check(&net);
}

fn conv_attrs(strides: [i64; 2], pads: [i64; 2], dilations: [i64; 2], groups: i64) -> ConvAttrs {
    ConvAttrs {
        strides: strides.to_vec(),
        pads: pads.iter().map(|p| (Dim::from(*p), Dim::from(*p))).collect(),
        dilations: dilations.to_vec(),
        groups,
    }
}

#[test]
fn convolutions_with_every_geometry() {
    let cases = [
        (conv_attrs([1, 1], [1, 1], [1, 1], 1), [4, 3, 3, 3], 3),
        (conv_attrs([2, 1], [0, 2], [1, 2], 1), [5, 4, 2, 3], 4),
        (conv_attrs([1, 1], [0, 0], [1, 1], 1), [6, 4, 1, 1], 4),
        (conv_attrs([2, 2], [1, 1], [1, 1], 6), [6, 1, 3, 3], 6),
        (conv_attrs([1, 1], [1, 1], [1, 1], 3), [6, 2, 3, 3], 6),
        (conv_attrs([1, 2], [1, 1], [1, 1], 2), [6, 8, 3, 3], 16),
    ];
    for (attrs, kernel, channels) in cases {
        let mut net = Net::new();
        let x = net.input(DType::F32, &dims(&[2, channels, 9, 8]));
        let w = net.weight(&kernel);
        let b = net.weight(&[kernel[0], 1, 1]);
        let y = net.op(Op::Conv(attrs), &[x, w]);
        let y = net.add(y, b);
        net.output(y);
        assert_eq!(super::support::steps(&net.graph), 1);
        check(&net);
        check_at(&net.graph, Precision::F16, 3e-3, &[]);
    }
}

#[test]
fn transposed_convolutions_gather() {
    for (stride, pad, dilation, extra, groups) in
        [(1, 0, 1, 0, 1), (2, 0, 1, 0, 1), (2, 1, 1, 1, 2), (3, 1, 2, 2, 1)]
    {
        let mut net = Net::new();
        let x = net.input(DType::F32, &dims(&[2, 4, 5, 3]));
        let w = net.weight(&[4, 3, 3, 2]);
        let conv = conv_attrs([stride; 2], [pad; 2], [dilation; 2], groups);
        let y = net.op(Op::ConvTranspose { conv, output_padding: vec![extra; 2] }, &[x, w]);
        net.output(y);
        check(&net);
    }
}

#[test]
fn one_dimensional_convolutions_and_symbolic_lengths() {
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
    for size in [5, 6, 17, 64] {
        check_at(&net.graph, Precision::F32, 1e-5, &[("n", size)]);
    }
}

#[test]
fn pools_of_every_kind() {
    let kinds = [
        PoolKind::Max,
        PoolKind::Average { count_include_pad: false },
        PoolKind::Average { count_include_pad: true },
        PoolKind::Lp(2),
    ];
    for kind in kinds {
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
            check(&net);
        }
    }
}

#[test]
fn resizes_of_every_kind() {
    let modes = [
        ResizeMode::Nearest(NearestRounding::PreferFloor),
        ResizeMode::Nearest(NearestRounding::PreferCeil),
        ResizeMode::Nearest(NearestRounding::Floor),
        ResizeMode::Nearest(NearestRounding::Ceil),
        ResizeMode::Linear,
        ResizeMode::Cubic(Scalar::Float(-0.75)),
    ];
    for mode in modes {
        for coordinates in CoordinateMap::ALL {
            for sizes in [[2, 3, 8, 10], [2, 3, 3, 4], [2, 3, 7, 1]] {
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
                check_at(&net.graph, Precision::F32, 1e-5, &[]);
            }
        }
    }
}
