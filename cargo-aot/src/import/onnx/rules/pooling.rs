//! Pooling.

use super::super::builder::{OpResult, Tensor, wrong};
use super::super::call::Call;
use super::convolution::{Window, window};
use super::table::{Entry, onnx};
use aot_ir::op::{BinaryOp, PoolAttrs, PoolKind, ReduceOp, UnaryOp};
use aot_ir::{Dim, Op};

pub(super) const RULES: &[Entry] = &[
    onnx("MaxPool", max_pool),
    onnx("MaxUnpool", super::pool_indices::max_unpool),
    onnx("AveragePool", |c| {
        let x = c.x(0)?;
        Ok(vec![average_pool_of(c, x)?])
    }),
    onnx("LpPool", |c| {
        let p = c.int("p", 2);
        pool(c, PoolKind::Lp(p))
    }),
    onnx("GlobalMaxPool", |c| global(c, ReduceOp::Max)),
    onnx("GlobalAveragePool", |c| global(c, ReduceOp::Mean)),
    onnx("GlobalLpPool", global_lp),
];

/// The attribute `kernel_shape`.
pub(super) fn kernel_shape(c: &Call<'_>) -> OpResult<Vec<i64>> {
    match c.ints_attr("kernel_shape") {
        Some(k) if k.iter().all(|&k| (1..=1 << 24).contains(&k)) => Ok(k),
        other => wrong(format!("kernel_shape is {other:?}")),
    }
}

fn attributes(c: &Call<'_>, x: Tensor, kind: PoolKind) -> OpResult<PoolAttrs> {
    let kernel = kernel_shape(c)?.into_iter().map(Dim::from).collect();
    let Window { kernel, strides, dilations, mut pads } = window(c, x, kernel)?;
    // A window larger than the padded axis still gives one result, as in onnxruntime.
    let scope = c.scope();
    for (i, (low, high)) in pads.iter_mut().enumerate() {
        let reach = (&kernel[i] - 1).scaled(dilations[i]) + 1;
        let lack = reach - (&c.shape(x)[2 + i] + &*low + &*high);
        *high = &*high + scope.max(&lack, &Dim::ZERO);
    }
    let same = c.text("auto_pad", "NOTSET").starts_with("SAME");
    let ceil_mode = c.flag("ceil_mode", false) && !same;
    Ok(PoolAttrs { kind, kernel, strides, pads, dilations, ceil_mode })
}

/// Average pooling of `x` with the node's attributes.
pub(super) fn average_pool_of(c: &mut Call<'_>, x: Tensor) -> OpResult {
    let count_include_pad = c.flag("count_include_pad", false);
    let attrs = attributes(c, x, PoolKind::Average { count_include_pad })?;
    c.op(Op::Pool(attrs), &[x])
}

/// Maximum pooling of `x` with the node's attributes.
pub(super) fn max_pool_of(c: &mut Call<'_>, x: Tensor) -> OpResult {
    let attrs = attributes(c, x, PoolKind::Max)?;
    c.op(Op::Pool(attrs), &[x])
}

fn pool(c: &mut Call<'_>, kind: PoolKind) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let attrs = attributes(c, x, kind)?;
    Ok(vec![c.op(Op::Pool(attrs), &[x])?])
}

fn max_pool(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let attrs = attributes(c, x, PoolKind::Max)?;
    let y = c.op(Op::Pool(attrs.clone()), &[x])?;
    if !c.wants(1) {
        return Ok(vec![y]);
    }
    Ok(vec![y, super::pool_indices::of_max_pool(c, x, y, &attrs)?])
}

fn spatial(c: &Call<'_>, x: Tensor) -> OpResult<Vec<usize>> {
    match c.rank(x) {
        rank @ 3.. => Ok((2..rank).collect()),
        rank => wrong(format!("rank {rank}, expected at least 3")),
    }
}

fn global(c: &mut Call<'_>, op: ReduceOp) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let axes = spatial(c, x)?;
    Ok(vec![c.reduce(op, x, &axes, true)?])
}

fn global_lp(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (x, p) = (c.x(0)?, c.int("p", 2) as f64);
    let axes = spatial(c, x)?;
    let x = c.unary(UnaryOp::Abs, x)?;
    let x = c.with(BinaryOp::Pow, x, p)?;
    let x = c.reduce(ReduceOp::Sum, x, &axes, true)?;
    Ok(vec![c.with(BinaryOp::Pow, x, 1.0 / p)?])
}
