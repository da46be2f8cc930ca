//! Comparisons and predicates: results are `Bool`.

use super::super::error::ExecError;
use super::super::support::{Rows, broadcast_strides, parts};
use super::super::tensor::{Data, Tensor, elements};
use super::float::Float;
use crate::DType;
use crate::op::{BinaryOp, UnaryOp};

pub(super) fn predicate<T: Float>(op: UnaryOp, v: &[T]) -> Vec<u8> {
    let infinity = -T::NEG_INFINITY;
    let test = |x: T| match op {
        UnaryOp::IsPosInf => x == infinity,
        UnaryOp::IsNegInf => x == -infinity,
        _ => x.nan(),
    };
    v.iter().map(|&x| u8::from(test(x))).collect()
}

pub(super) fn compare(
    op: BinaryOp,
    a: &Tensor,
    b: &Tensor,
    shape: &[usize],
) -> Result<Tensor, ExecError> {
    let strides = [a, b].map(|x| broadcast_strides(x.shape(), shape));
    let rows = Rows::new(shape, [&strides[0], &strides[1]]);
    let mut out = vec![0u8; elements(shape)?];
    match (a.data(), b.data()) {
        (Data::F32(a), Data::F32(b)) => by_op(op, a, b, &rows, &mut out),
        (Data::F64(a), Data::F64(b)) => by_op(op, a, b, &rows, &mut out),
        _ if a.dtype() == DType::U64 => {
            let unsigned =
                |x: &Tensor| -> Vec<u64> { x.to_i64().into_iter().map(|v| v as u64).collect() };
            by_op(op, &unsigned(a), &unsigned(b), &rows, &mut out);
        }
        _ => by_op(op, &a.to_i64(), &b.to_i64(), &rows, &mut out),
    }
    Ok(Tensor::raw(DType::Bool, shape.to_vec(), Data::B8(out)))
}

fn by_op<T: Copy + PartialOrd + Sync>(
    op: BinaryOp,
    a: &[T],
    b: &[T],
    rows: &Rows<2>,
    out: &mut [u8],
) {
    match op {
        BinaryOp::Eq => fill(a, b, rows, out, |a, b| a == b),
        BinaryOp::Ne => fill(a, b, rows, out, |a, b| a != b),
        BinaryOp::Lt => fill(a, b, rows, out, |a, b| a < b),
        BinaryOp::Le => fill(a, b, rows, out, |a, b| a <= b),
        BinaryOp::Gt => fill(a, b, rows, out, |a, b| a > b),
        _ => fill(a, b, rows, out, |a, b| a >= b),
    }
}

fn fill<T: Copy + Sync>(
    a: &[T],
    b: &[T],
    rows: &Rows<2>,
    out: &mut [u8],
    f: impl Fn(T, T) -> bool + Sync,
) {
    let [p, q] = rows.strides;
    parts(out, rows.len, rows.len, |first, part| {
        let mut part = part.chunks_mut(rows.len.max(1));
        rows.for_each(first, part.len(), |_, [mut i, mut j]| {
            for out in part.next().into_iter().flatten() {
                *out = u8::from(f(a[i as usize], b[j as usize]));
                (i, j) = (i + p, j + q);
            }
        });
    });
}
