//! Early operators of the domain: those that ONNX has taken over since, and some linear algebra.

use super::super::super::builder::{OpResult, Tensor, unsupported, wrong};
use super::super::super::call::Call;
use super::super::matmul::{minor, square_sum};
use super::super::signal::transform;
use super::super::table::{Entry, microsoft};
use super::relay;
use aot_ir::op::{BinaryOp, UnaryOp};
use aot_ir::{Dim, Op};

pub(in super::super) const RULES: &[Entry] = &[
    microsoft("Pad", |c| relay(c, "Pad")),
    microsoft("Trilu", |c| relay(c, "Trilu")),
    microsoft("GatherND", |c| relay(c, "GatherND")),
    microsoft("GridSample", |c| relay(c, "GridSample")),
    microsoft("Range", |c| {
        if c.opt(2).is_none() {
            return unsupported("Range without a step");
        }
        relay(c, "Range")
    }),
    microsoft("ExpandDims", |c| {
        let x = c.x(0)?;
        let axis = match c.input_ints(1, "the axis of ExpandDims")?.as_deref() {
            Some(&[axis]) => axis,
            _ => return wrong("the axis has to be one number"),
        };
        let axis = c.axis_of(axis, c.rank(x) + 1)?;
        Ok(vec![c.unsqueeze(x, &[axis])?])
    }),
    microsoft("CDist", distances),
    microsoft("Inverse", inverse),
    microsoft("Rfft", |c| {
        let x = c.x(0)?;
        let Some(length) = c.shape(x).last().cloned() else { return wrong("a scalar") };
        check_transform(c)?;
        let axis = c.rank(x);
        let x = c.unsqueeze(x, &[axis])?;
        Ok(vec![transform(c, x, &length, false, true)?])
    }),
    microsoft("Irfft", inverse_real),
];

/// Distances of the rows of `a [m, k]` and `b [n, k]`: `[m, n]`.
fn distances(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (a, b) = (c.x(0)?, c.x(1)?);
    if c.rank(a) != 2 || c.rank(b) != 2 {
        return wrong(format!("ranks {} and {}, expected 2", c.rank(a), c.rank(b)));
    }
    let root = match c.text("metric", "sqeuclidean").as_str() {
        "euclidean" => true,
        "sqeuclidean" => false,
        other => return unsupported(format!("metric {other}")),
    };
    // |a|² + |b|² - 2 a·b
    let rows = square_sum(c, a, &[1])?;
    let columns = square_sum(c, b, &[1])?;
    let columns = c.transpose_last(columns)?;
    let b = c.transpose_last(b)?;
    let product = c.op(Op::MatMul, &[a, b])?;
    let product = c.with(BinaryOp::Mul, product, 2.0)?;
    let sum = c.sum(rows, columns)?;
    let squares = c.difference(sum, product)?;
    let squares = c.with(BinaryOp::Max, squares, 0.0)?;
    Ok(vec![if root { c.unary(UnaryOp::Sqrt, squares)? } else { squares }])
}

/// Largest matrix that is inverted.
const MAX_INVERSE: i64 = 4;

/// The adjugate over the determinant.
fn inverse(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let rank = c.rank(x);
    let size = rank.checked_sub(2).and_then(|i| c.shape(x)[i].as_const());
    let size = match size {
        Some(n @ 1..=MAX_INVERSE) if c.shape(x)[rank - 1].is(n) => n,
        _ => return unsupported(format!("Inverse for sizes other than 1 to {MAX_INVERSE}")),
    };
    let all: Vec<i64> = (0..size).collect();
    let determinant = minor(c, x, &all, &all)?;
    let mut elements = Vec::new();
    for i in 0..size {
        for j in 0..size {
            // Row i, column j of the inverse: the cofactor of row j, column i.
            let without = |k: i64| all.iter().copied().filter(|&i| i != k).collect::<Vec<_>>();
            let (rows, columns) = (without(j), without(i));
            let mut cofactor = if rows.is_empty() {
                let one = c.scalar_like(1.0, determinant);
                let shape = c.shape(determinant).to_vec();
                c.expand(one, &shape)?
            } else {
                minor(c, x, &rows, &columns)?
            };
            if (i + j) % 2 == 1 {
                cofactor = c.unary(UnaryOp::Neg, cofactor)?;
            }
            let element = c.quotient(cofactor, determinant)?;
            elements.push(c.unsqueeze(element, &[rank - 2])?);
        }
    }
    let flat = c.concat(&elements, rank - 2)?;
    let shape = c.shape(x).to_vec();
    Ok(vec![c.reshape(flat, &shape)?])
}

/// The attributes that all files have.
fn check_transform(c: &Call<'_>) -> OpResult<()> {
    let (dims, onesided) = (c.int("signal_ndim", 1), c.flag("onesided", true));
    if dims != 1 || !onesided || c.flag("normalized", false) {
        return unsupported("transforms over several axes, of all frequencies, or normalised");
    }
    Ok(())
}

/// `[.., k, 2]` to `[.., 2·(k - 1)]`.
fn inverse_real(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    check_transform(c)?;
    let x = c.x(0)?;
    let Some(axis) = c.rank(x).checked_sub(2) else { return wrong("rank below 2") };
    let half = &c.shape(x)[axis].clone() - 1;
    let length = half.scaled(2);
    // The other frequencies are the conjugates of these, the other way round.
    let start = &half - 1;
    let other = c.slice_axis(x, axis, start.clone(), start, -1)?;
    let re = c.slice_axis(other, axis + 1, Dim::ZERO, Dim::ONE, 1)?;
    let im = c.slice_axis(other, axis + 1, Dim::ONE, Dim::ONE, 1)?;
    let im = c.unary(UnaryOp::Neg, im)?;
    let other = c.concat(&[re, im], axis + 1)?;
    let whole = c.concat(&[x, other], axis)?;
    let y = transform(c, whole, &length, true, false)?;
    Ok(vec![c.pick(y, axis + 1, Dim::ZERO)?])
}
