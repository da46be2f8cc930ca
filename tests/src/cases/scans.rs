//! Running combinations.

use super::Cases;
use crate::net::{Net, dims};
use aot_ir::op::{ScanOp, UnaryOp};
use aot_ir::{DType, Dim, Op};

const OPS: [ScanOp; 4] = [ScanOp::Sum, ScanOp::Prod, ScanOp::Max, ScanOp::Min];

/// Along every axis, in both directions, with and without the element itself.
fn scans_of_every_kind(cases: &mut Cases) {
    for op in OPS {
        for axis in 0..3 {
            for (exclusive, reverse) in [(false, false), (false, true), (true, false), (true, true)]
            {
                let mut net = Net::new();
                let x = net.input(DType::F32, &dims(&[3, 4, 5]));
                let x = net.unary(UnaryOp::Tanh, x);
                let y = net.op(Op::Scan { op, axis, exclusive, reverse }, &[x]);
                let y = net.unary(UnaryOp::Neg, y);
                net.output(y);
                net.groups(1);
                net.on_gpus(axis != 0 && (op == ScanOp::Sum || exclusive != reverse));
                cases.add(net);
            }
        }
    }
}

fn scans_of_every_type(cases: &mut Cases) {
    let types = [
        DType::I64,
        DType::U64,
        DType::I32,
        DType::U32,
        DType::I16,
        DType::I8,
        DType::U8,
        DType::F64,
        DType::F16,
        DType::Bf16,
    ];
    for dtype in types {
        for op in OPS {
            let mut net = Net::new();
            let x = net.input(dtype, &dims(&[4, 9]));
            let exclusive = matches!(op, ScanOp::Max | ScanOp::Min);
            let y = net.op(Op::Scan { op, axis: 1, exclusive, reverse: false }, &[x]);
            net.output(y);
            if matches!(dtype, DType::F16 | DType::Bf16) {
                net.loosen(500.0);
            }
            net.on_gpus(exclusive == (dtype.bits() < 32) || dtype.bits() == 64);
            cases.add(net);
        }
    }
}

/// Rows of every length that schedules share among threads differently: rows that lie together, and rows
/// whose neighbours do.
fn scans_of_every_length(cases: &mut Cases) {
    for n in [1, 31, 32, 33, 128, 257, 2048, 5000] {
        for shape in [[3, n, 1], [2, n, 12], [1, n, 300]] {
            if shape[2] == 300 && n > 257 {
                continue;
            }
            let mut net = Net::new();
            let (x, z) =
                (net.input(DType::F32, &dims(&shape)), net.input(DType::I64, &dims(&shape)));
            let sum = |reverse| Op::Scan { op: ScanOp::Sum, axis: 1, exclusive: reverse, reverse };
            let x = net.op(sum(false), &[x]);
            let z = net.op(sum(true), &[z]);
            net.output(x);
            net.output(z);
            cases.add(net);
        }
    }
}

fn scans_of_sizes_at_run_time(cases: &mut Cases) {
    for last in [false, true] {
        let mut net = Net::new();
        let n = net.symbol("n", 1, 700, 1);
        let inner = if last { Dim::ONE } else { Dim::from(6) };
        let x = net.input(DType::F32, &[Dim::from(2), n, inner]);
        let scan = Op::Scan { op: ScanOp::Sum, axis: 1, exclusive: false, reverse: false };
        let y = net.op(scan, &[x]);
        let y = net.mul(y, x);
        net.output(y);
        net.groups(1);
        cases.at(net, &[1, 40, 700].map(|size| vec![("n", size)]));
    }
}

pub(super) fn all(cases: &mut Cases) {
    cases.family("scans_of_every_kind", scans_of_every_kind);
    cases.family("scans_of_every_type", scans_of_every_type);
    cases.family("scans_of_every_length", scans_of_every_length);
    cases.family("scans_of_sizes_at_run_time", scans_of_sizes_at_run_time);
}
