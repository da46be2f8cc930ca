//! Reductions, running sums, extrema and their places.

use super::super::builder::{Most, OpResult, Tensor, unsupported, wrong};
use super::super::call::Call;
use super::table::{Entry, onnx};
use aot_ir::op::{BinaryOp, ReduceOp, ScanOp, UnaryOp};
use aot_ir::{DType, Dim, Op};

pub(super) const RULES: &[Entry] = &[
    onnx("ReduceSum", |c| plain(c, ReduceOp::Sum, 13)),
    onnx("ReduceMean", |c| plain(c, ReduceOp::Mean, 18)),
    onnx("ReduceMax", |c| plain(c, ReduceOp::Max, 18)),
    onnx("ReduceMin", |c| plain(c, ReduceOp::Min, 18)),
    onnx("ReduceProd", |c| plain(c, ReduceOp::Prod, 18)),
    onnx("ReduceL1", |c| around(c, |c, x| c.unary(UnaryOp::Abs, x), |_, y| Ok(y))),
    onnx("ReduceL2", |c| around(c, |c, x| c.product(x, x), |c, y| c.unary(UnaryOp::Sqrt, y))),
    onnx("ReduceSumSquare", |c| around(c, |c, x| c.product(x, x), |_, y| Ok(y))),
    onnx("ReduceLogSum", |c| around(c, |_, x| Ok(x), |c, y| c.unary(UnaryOp::Log, y))),
    onnx("ReduceLogSumExp", log_sum_exp),
    onnx("ArgMax", |c| arg(c, true)),
    onnx("ArgMin", |c| arg(c, false)),
    onnx("CumSum", |c| cumulate(c, ScanOp::Sum)),
    onnx("CumProd", |c| cumulate(c, ScanOp::Prod)),
    onnx("TopK", top_k),
];

/// Axes, and whether they stay; `None` when nothing is to be reduced.
fn axes(c: &mut Call<'_>, x: Tensor, input_since: i64) -> OpResult<(Option<Vec<usize>>, bool)> {
    let rank = c.rank(x);
    let keep = c.flag("keepdims", true);
    let axes = c.ints_moved("axes", 1, input_since)?.filter(|a| !a.is_empty());
    let axes = match axes {
        Some(axes) => Some(c.axes_of(&axes, rank)?),
        None if c.flag("noop_with_empty_axes", false) => None,
        None => Some((0..rank).collect()),
    };
    Ok((axes, keep))
}

fn plain(c: &mut Call<'_>, op: ReduceOp, input_since: i64) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let (axes, keep) = axes(c, x, input_since)?;
    Ok(vec![match axes {
        Some(axes) => c.reduce(op, x, &axes, keep)?,
        None => x,
    }])
}

/// `after(Σ before(x))`.
fn around(
    c: &mut Call<'_>,
    before: fn(&mut Call<'_>, Tensor) -> OpResult,
    after: fn(&mut Call<'_>, Tensor) -> OpResult,
) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let (axes, keep) = axes(c, x, 18)?;
    let mut y = before(c, x)?;
    if let Some(axes) = axes {
        y = c.reduce(ReduceOp::Sum, y, &axes, keep)?;
    }
    Ok(vec![after(c, y)?])
}

/// `m + ln Σ e^(x - m)` with `m` the largest finite element.
fn log_sum_exp(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let (Some(axes), keep) = axes(c, x, 18)? else {
        return Ok(vec![x]);
    };
    let most = c.reduce(ReduceOp::Max, x, &axes, true)?;
    let size = c.unary(UnaryOp::Abs, most)?;
    let finite = c.with(BinaryOp::Lt, size, f64::INFINITY)?;
    let zero = c.scalar_like(0.0, x);
    let most = c.select(finite, most, zero)?;
    let y = c.difference(x, most)?;
    let y = c.unary(UnaryOp::Exp, y)?;
    let y = c.reduce(ReduceOp::Sum, y, &axes, true)?;
    let y = c.unary(UnaryOp::Log, y)?;
    let y = c.sum(y, most)?;
    Ok(vec![if keep { y } else { c.squeeze(y, &axes)? }])
}

fn arg(c: &mut Call<'_>, max: bool) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let axis = c.axis(x, 0)?;
    let keep_dims = c.flag("keepdims", true);
    let last = c.flag("select_last_index", false);
    Ok(vec![c.op(Op::ArgReduce { max, axis, keep_dims, last }, &[x])?])
}

fn cumulate(c: &mut Call<'_>, op: ScanOp) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let Some([axis]) = c.input_ints(1, "the axis")?.map(<[i64; 1]>::try_from).and_then(Result::ok)
    else {
        return wrong("the axis has to be a scalar");
    };
    let axis = c.axis_of(axis, c.rank(x))?;
    let (exclusive, reverse) = (c.flag("exclusive", false), c.flag("reverse", false));
    // A running sum of a constant is a multiple of the coordinate.
    if let (ScanOp::Sum, Some(step), t) = (op, c.uniform(x), c.dtype(x))
        && t.is_int()
        && step.abs() < 1e9
    {
        let shape = c.shape(x).to_vec();
        let mut at = super::generate::coordinates(c, &shape, axis, DType::I64)?;
        if reverse {
            let last = c.dims(&[&shape[axis] - 1]);
            at = c.difference(last, at)?;
        }
        if !exclusive {
            at = c.with(BinaryOp::Add, at, 1.0)?;
        }
        let out = c.with(BinaryOp::Mul, at, step)?;
        return Ok(vec![c.cast(out, t)?]);
    }
    Ok(vec![c.op(Op::Scan { op, axis, exclusive, reverse }, &[x])?])
}

/// Most elements that are ranked.
pub(super) const MAX_RANKED: i64 = 4096;

/// By ranks: an element's place in the result is the number of elements that come before it.
fn top_k(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let rank = c.rank(x);
    let axis = c.axis(x, -1)?;
    let k = if c.opset < 10 {
        Dim::from(c.int("k", 1))
    } else {
        let most = Most::Valid(c.shape(x)[axis].clone());
        match c.input_sizes(1, "k of TopK", 0, &most)?.as_deref() {
            Some([k]) => k.clone(),
            _ => return wrong("k has to be a scalar"),
        }
    };
    let largest = c.flag("largest", true);
    if k.is(1) {
        let best =
            c.op(Op::ArgReduce { max: largest, axis, keep_dims: true, last: false }, &[x])?;
        let value = c.gather_elements(x, best, axis)?;
        return Ok(vec![value, best]);
    }
    let shape = c.shape(x).to_vec();
    if c.scope().interval(&shape[axis]).hi > MAX_RANKED {
        return unsupported(format!(
            "TopK with k > 1 over more than {MAX_RANKED} elements is not supported yet"
        ));
    }
    // rank[i] = #{j: x[j] before x[i]}, ties by index.
    let (column, row) = (c.unsqueeze(x, &[axis + 1])?, c.unsqueeze(x, &[axis])?);
    let order = if largest { BinaryOp::Gt } else { BinaryOp::Lt };
    let before = c.binary(order, row, column)?;
    let equal = c.binary(BinaryOp::Eq, row, column)?;
    let mut square = vec![Dim::ONE; rank + 1];
    (square[axis], square[axis + 1]) = (shape[axis].clone(), shape[axis].clone());
    let i = super::generate::coordinates(c, &square, axis, DType::I64)?;
    let j = super::generate::coordinates(c, &square, axis + 1, DType::I64)?;
    let earlier = c.binary(BinaryOp::Lt, j, i)?;
    let tie = c.binary(BinaryOp::And, equal, earlier)?;
    let before = c.binary(BinaryOp::Or, before, tie)?;
    let before = c.cast(before, DType::I64)?;
    let place = c.reduce(ReduceOp::Sum, before, &[axis + 1], false)?;
    // out[p] = the i with rank[i] = p.
    let i = super::generate::coordinates(c, &shape, axis, DType::I64)?;
    let reduction = aot_ir::op::ScatterReduction::None;
    let order = c.op(Op::ScatterElements { axis, reduction }, &[i, place, i])?;
    let order = c.slice_axis(order, axis, Dim::ZERO, k, 1)?;
    let values = c.gather_elements(x, order, axis)?;
    Ok(vec![values, order])
}
