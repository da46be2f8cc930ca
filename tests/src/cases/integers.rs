//! Integer arithmetic that wraps, on coordinates and on data.

use super::Cases;
use crate::net::Net;
use aot_ir::op::{BinaryOp, UnaryOp};
use aot_ir::{DType, Dim, Op, Scalar, ValueId};

const TYPES: [DType; 8] =
    [DType::I64, DType::U64, DType::I32, DType::U32, DType::I16, DType::U16, DType::I8, DType::U8];

fn coordinate(net: &mut Net, shape: &[Dim], axis: usize, dtype: DType) -> ValueId {
    let at = net.op(Op::Iota { shape: shape.to_vec(), axis, dtype: DType::I64 }, &[]);
    net.op(Op::Cast(dtype), &[at])
}

fn number(net: &mut Net, value: i64, dtype: DType) -> ValueId {
    net.op(Op::Fill { shape: Vec::new(), value: Scalar::Int(value), dtype }, &[])
}

/// Coordinates times numbers as large as the type has, then whatever shows the high bits.
fn coordinates(cases: &mut Cases) {
    for dtype in TYPES {
        let mut net = Net::new();
        let n = net.symbol("n", 1, 300, 1);
        let x = net.input(DType::I64, std::slice::from_ref(&n));
        let shape = [n, Dim::from(20)];
        let bits = i64::from(dtype.bits());
        let odd = 0x9e37_79b9_7f4a_7c15_u64.cast_signed() >> (64 - bits);
        let odd = if dtype.is_signed_int() || bits == 64 { odd } else { odd & ((1 << bits) - 1) };
        let (row, column) =
            (coordinate(&mut net, &shape, 0, dtype), coordinate(&mut net, &shape, 1, dtype));
        let (odd, shift) = (number(&mut net, odd, dtype), number(&mut net, bits / 2 - 1, dtype));
        let rows = net.mul(row, odd);
        let columns = net.mul(column, odd);
        let columns = net.mul(columns, odd);
        let sum = net.add(rows, columns);
        let high = net.op(Op::Binary(BinaryOp::Shr), &[sum, shift]);
        let mixed = net.op(Op::Binary(BinaryOp::BitXor), &[sum, high]);
        let mixed = net.mul(mixed, odd);
        net.output(mixed);
        let data = net.op(Op::Cast(dtype), &[x]);
        let data = net.mul(data, odd);
        net.output(data);
        let less = net.op(Op::Binary(BinaryOp::Lt), &[rows, columns]);
        net.output(less);
        if dtype.is_signed_int() {
            let turned = net.unary(UnaryOp::Neg, rows);
            net.output(turned);
        }
        cases.at(net, &[1, 3, 300].map(|size| vec![("n", size)]));
    }
}

pub(super) fn all(cases: &mut Cases) {
    cases.family("integers_that_wrap", coordinates);
}
