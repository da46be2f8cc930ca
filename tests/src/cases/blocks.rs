//! Blocks of real networks.

use super::Cases;
use crate::net::{Net, dims};
use aot_ir::op::{AttentionAttrs, BinaryOp, ConvAttrs, ReduceOp, UnaryOp};
use aot_ir::{DType, Dim, Op, Scalar, ValueId};

fn linear(net: &mut Net, x: ValueId, width: [usize; 2]) -> ValueId {
    let w = net.weight(&width);
    let b = net.weight(&[width[1]]);
    let y = net.op(Op::MatMul, &[x, w]);
    net.add(y, b)
}

fn layer_norm(net: &mut Net, x: ValueId, width: usize) -> ValueId {
    let op = Op::Normalize { axes: vec![2], epsilon: Scalar::Float(1e-5), centered: true };
    let y = net.op(op, &[x]);
    let g = net.weight(&[width]);
    let y = net.mul(y, g);
    let b = net.weight(&[width]);
    net.add(y, b)
}

fn gelu(net: &mut Net, x: ValueId) -> ValueId {
    let root = net.floats(&[], &[std::f32::consts::FRAC_1_SQRT_2]);
    let (one, half) = (net.floats(&[], &[1.0]), net.floats(&[], &[0.5]));
    let e = net.mul(x, root);
    let e = net.unary(UnaryOp::Erf, e);
    let e = net.add(e, one);
    let y = net.mul(x, e);
    net.mul(y, half)
}

/// One encoder layer with a key-padding mask: 16 wide, 2 heads.
fn encoder_layer() -> Net {
    let mut net = Net::new();
    let b = net.symbol("batch", 1, 4, 1);
    let s = net.symbol("sequence", 1, 24, 1);
    let x = net.input(DType::F32, &[b.clone(), s.clone(), 16.into()]);
    let mask = net.input(DType::I64, &[b.clone(), s.clone()]);
    let mask = net.op(Op::Cast(DType::F32), &[mask]);
    let mask =
        net.op(Op::Reshape { shape: vec![b.clone(), Dim::ONE, Dim::ONE, s.clone()] }, &[mask]);
    let (one, low) = (net.floats(&[], &[1.0]), net.floats(&[], &[-10000.0]));
    let mask = net.op(Op::Binary(BinaryOp::Sub), &[one, mask]);
    let mask = net.mul(mask, low);
    let qkv = linear(&mut net, x, [16, 48]);
    let heads: Vec<ValueId> = (0..3)
        .map(|i| {
            let part = net.op(
                Op::Slice {
                    starts: dims(&[0, 0, 16 * i]),
                    sizes: vec![b.clone(), s.clone(), 16.into()],
                    steps: vec![1; 3],
                },
                &[qkv],
            );
            let split = vec![b.clone(), s.clone(), 2.into(), 8.into()];
            let part = net.op(Op::Reshape { shape: split }, &[part]);
            net.op(Op::Transpose { perm: vec![0, 2, 1, 3] }, &[part])
        })
        .collect();
    let attrs = AttentionAttrs {
        scale: Scalar::Float(8f64.sqrt().recip()),
        causal: false,
        masked_row_is_zero: false,
        has_mask: true,
    };
    let a = net.op(Op::Attention(attrs), &[heads[0], heads[1], heads[2], mask]);
    let a = net.op(Op::Transpose { perm: vec![0, 2, 1, 3] }, &[a]);
    let a = net.op(Op::Reshape { shape: vec![b, s, 16.into()] }, &[a]);
    let a = linear(&mut net, a, [16, 16]);
    let a = net.add(a, x);
    let h = layer_norm(&mut net, a, 16);
    let f = linear(&mut net, h, [16, 64]);
    let f = gelu(&mut net, f);
    let f = linear(&mut net, f, [64, 16]);
    let f = net.add(f, h);
    let y = layer_norm(&mut net, f, 16);
    net.output(y);
    net
}

fn an_encoder_layer_is_seven_groups(cases: &mut Cases) {
    let mut net = encoder_layer();
    net.groups(7);
    // The mask's tens of thousands leave scores few bits in f32.
    net.loosen(10.0);
    cases.at(net, &[(1, 1), (2, 5), (4, 24)].map(|(b, s)| vec![("batch", b), ("sequence", s)]));
}

fn a_squeeze_excite_block_pools_scales_and_adds(cases: &mut Cases) {
    let mut net = Net::new();
    let h = net.symbol("h", 4, 32, 4);
    let x = net.input(DType::F32, &[Dim::from(2), Dim::from(8), h, Dim::from(6)]);
    let attrs = |pad: i64| ConvAttrs {
        strides: vec![1, 1],
        pads: vec![(pad.into(), pad.into()); 2],
        dilations: vec![1, 1],
        groups: 1,
    };
    let w = net.weight(&[12, 8, 3, 3]);
    let y = net.op(Op::Conv(attrs(1)), &[x, w]);
    let mean = Op::Reduce { op: ReduceOp::Mean, axes: vec![2, 3], keep_dims: true };
    let p = net.op(mean, &[y]);
    let w1 = net.weight(&[4, 12, 1, 1]);
    let p = net.op(Op::Conv(attrs(0)), &[p, w1]);
    let p = net.unary(UnaryOp::Relu, p);
    let w2 = net.weight(&[12, 4, 1, 1]);
    let p = net.op(Op::Conv(attrs(0)), &[p, w2]);
    let p = net.unary(UnaryOp::Sigmoid, p);
    let scaled = net.mul(y, p);
    let out = net.add(scaled, y);
    net.output(out);
    net.groups(5);
    cases.at(net, &[4, 32].map(|size| vec![("h", size)]));
}

/// A diffusion network's: a group norm, scaled and shifted by an embedding, and a gate.
fn a_group_norm_with_an_embedding_is_one_group(cases: &mut Cases) {
    let mut net = Net::new();
    let batch = net.symbol("batch", 1, 3, 1);
    let x = net.input(DType::F32, &[batch.clone(), 12.into(), 6.into(), 5.into()]);
    let time = net.input(DType::F32, &[batch.clone(), 8.into()]);
    let scale_shift = linear(&mut net, time, [8, 24]);
    let shape = vec![batch.clone(), 24.into(), Dim::ONE, Dim::ONE];
    let scale_shift = net.op(Op::Reshape { shape }, &[scale_shift]);
    let [scale, shift] = [0, 12].map(|start| {
        let starts = dims(&[0, start, 0, 0]);
        let sizes = vec![batch.clone(), 12.into(), Dim::ONE, Dim::ONE];
        net.op(Op::Slice { starts, sizes, steps: vec![1; 4] }, &[scale_shift])
    });
    let grouped = vec![batch.clone(), 4.into(), (3 * 6 * 5).into()];
    let y = net.op(Op::Reshape { shape: grouped }, &[x]);
    let epsilon = Scalar::Float(1e-5);
    let y = net.op(Op::Normalize { axes: vec![2], epsilon, centered: true }, &[y]);
    let y = net.op(Op::Reshape { shape: vec![batch, 12.into(), 6.into(), 5.into()] }, &[y]);
    let (gain, bias, one) =
        (net.weight(&[12, 1, 1]), net.weight(&[12, 1, 1]), net.floats(&[], &[1.0]));
    let y = net.mul(y, gain);
    let y = net.add(y, bias);
    let scale = net.add(scale, one);
    let y = net.mul(y, scale);
    let y = net.add(y, shift);
    let gate = net.unary(UnaryOp::Sigmoid, y);
    let y = net.mul(y, gate);
    net.output(y);
    // The embedding's product is the other.
    net.groups(2);
    cases.at(net, &[1, 3].map(|size| vec![("batch", size)]));
}

pub(super) fn all(cases: &mut Cases) {
    cases.family("an_encoder_layer_is_seven_groups", an_encoder_layer_is_seven_groups);
    cases.family(
        "a_squeeze_excite_block_pools_scales_and_adds",
        a_squeeze_excite_block_pools_scales_and_adds,
    );
    cases.family(
        "a_group_norm_with_an_embedding_is_one_group",
        a_group_norm_with_an_embedding_is_one_group,
    );
}
