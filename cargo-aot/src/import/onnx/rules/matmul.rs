//! Matrix products.

use super::super::builder::{OpResult, Tensor, wrong};
use super::super::call::Call;
use super::table::{Entry, onnx};
use aot_ir::Op;
use aot_ir::op::{BinaryOp, ReduceOp, UnaryOp};

pub(super) const RULES: &[Entry] = &[
    onnx("MatMul", |c| {
        let (a, b) = (c.x(0)?, c.x(1)?);
        Ok(vec![matmul(c, a, b)?])
    }),
    onnx("Gemm", gemm),
    onnx("Det", det),
];

/// The product as NumPy defines it for ranks of 1 and more.
pub(super) fn matmul(c: &mut Call<'_>, a: Tensor, b: Tensor) -> OpResult {
    let (ra, rb) = (c.rank(a), c.rank(b));
    if ra == 0 || rb == 0 {
        return wrong("a matrix product of a scalar");
    }
    let a = if ra == 1 { c.unsqueeze(a, &[0])? } else { a };
    let b = if rb == 1 { c.unsqueeze(b, &[1])? } else { b };
    let out = c.op(Op::MatMul, &[a, b])?;
    let rank = c.rank(out);
    let mut gone = Vec::new();
    if ra == 1 {
        gone.push(rank - 2);
    }
    if rb == 1 {
        gone.push(rank - 1);
    }
    c.squeeze(out, &gone)
}

/// `alpha · a' b' + beta · c`.
fn gemm(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (mut a, mut b) = (c.x(0)?, c.x(1)?);
    if c.rank(a) != 2 || c.rank(b) != 2 {
        return wrong(format!("ranks {} and {}, expected 2", c.rank(a), c.rank(b)));
    }
    if c.flag("transA", false) {
        a = c.transpose_last(a)?;
    }
    if c.flag("transB", false) {
        b = c.transpose_last(b)?;
    }
    let mut out = c.op(Op::MatMul, &[a, b])?;
    let alpha = c.float("alpha", 1.0);
    out = c.with(BinaryOp::Mul, out, alpha)?;
    if let Some(bias) = c.opt(2) {
        let beta = c.float("beta", 1.0);
        let bias = c.with(BinaryOp::Mul, bias, beta)?;
        out = c.sum(out, bias)?;
    }
    Ok(vec![out])
}

/// Largest matrix whose determinant is expanded.
const MAX_DET: i64 = 4;

/// The determinant, by elimination without pivots replaced by expansion along the first row.
fn det(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let rank = c.rank(x);
    let size = rank.checked_sub(2).and_then(|i| c.shape(x)[i].as_const());
    match size {
        Some(n @ 1..=MAX_DET) if c.shape(x)[rank - 1].is(n) => {
            let all: Vec<i64> = (0..n).collect();
            Ok(vec![minor(c, x, &all, &all)?])
        }
        _ => super::super::builder::unsupported(format!(
            "Det is supported for constant sizes up to {MAX_DET}"
        )),
    }
}

/// The determinant of these rows and columns of `x [.., n, n]`, as many of one as of the other.
pub(super) fn minor(c: &mut Call<'_>, x: Tensor, rows: &[i64], columns: &[i64]) -> OpResult {
    let rank = c.rank(x);
    let Some((&row, below)) = rows.split_first() else { return wrong("an empty matrix") };
    let mut total: Option<Tensor> = None;
    for (i, &column) in columns.iter().enumerate() {
        let line = c.pick(x, rank - 2, row.into())?;
        let mut term = c.pick(line, rank - 2, column.into())?;
        if columns.len() > 1 {
            let rest: Vec<i64> = columns.iter().copied().filter(|&k| k != column).collect();
            let rest = minor(c, x, below, &rest)?;
            term = c.product(term, rest)?;
        }
        total = Some(match total {
            None => term,
            Some(t) if i % 2 == 0 => c.sum(t, term)?,
            Some(t) => c.difference(t, term)?,
        });
    }
    total.map_or_else(|| wrong("an empty matrix"), Ok)
}

/// `Σ x²` over axes that stay, and other small helpers of norms.
pub(super) fn square_sum(c: &mut Call<'_>, x: Tensor, axes: &[usize]) -> OpResult {
    let squares = c.product(x, x)?;
    c.reduce(ReduceOp::Sum, squares, axes, true)
}

/// `1 / sqrt(x)`.
pub(super) fn rsqrt(c: &mut Call<'_>, x: Tensor) -> OpResult {
    let root = c.unary(UnaryOp::Sqrt, x)?;
    c.unary(UnaryOp::Reciprocal, root)
}
