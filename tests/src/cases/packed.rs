//! Integers of four bits, two to a byte.

use super::Cases;
use crate::net::{Net, dims};
use aot_ir::op::UnaryOp;
use aot_ir::{DType, Dim, Op};

/// Odd and even counts, known late, of rows that lie together, turned round, and side by side in one buffer.
fn packed_integers_are_written(cases: &mut Cases) {
    for dtype in [DType::I4, DType::U4] {
        for width in [1, 3, 4] {
            let mut net = Net::new();
            let n = net.symbol("n", 1, 60_000, 1);
            let x = net.input(DType::F32, &[n.clone(), Dim::from(width)]);
            let five = net.floats(&[], &[5.0]);
            let x = net.mul(x, five);
            let y = net.op(Op::Cast(dtype), &[x]);
            let turned = net.op(Op::Transpose { perm: vec![1, 0] }, &[y]);
            let other = net.unary(UnaryOp::Abs, x);
            let other = net.op(Op::Cast(dtype), &[other]);
            let both = net.op(Op::Concat { axis: 1 }, &[other, y, other]);
            let read = net.op(Op::Cast(DType::F32), &[both]);
            let read = net.unary(UnaryOp::Neg, read);
            for v in [y, turned, both, read] {
                net.output(v);
            }
            cases.at(net, &[1, 2, 7, 10, 401].map(|size| vec![("n", size)]));
        }
    }
}

fn packed_integers_of_known_sizes(cases: &mut Cases) {
    for (dtype, count) in [(DType::I4, 15), (DType::U4, 20), (DType::U4, 140_003)] {
        let mut net = Net::new();
        let x = net.input(DType::U8, &dims(&[count]));
        let y = net.op(Op::Cast(dtype), &[x]);
        net.output(y);
        net.groups(1);
        cases.add(net);
    }
}

pub(super) fn all(cases: &mut Cases) {
    cases.family("packed_integers_are_written", packed_integers_are_written);
    cases.family("packed_integers_of_known_sizes", packed_integers_of_known_sizes);
}
