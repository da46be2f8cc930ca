//! Quantised operators, through the numbers that the integers stand for.

use super::super::builder::{OpResult, Tensor, unsupported, wrong};
use super::super::call::Call;
use super::convolution::{conv, per_channel};
use super::matmul::matmul;
use super::table::{Entry, onnx};
use aot_ir::op::{BinaryOp, ReduceOp, UnaryOp};
use aot_ir::{DType, Dim};

pub(super) const RULES: &[Entry] = &[
    onnx("QuantizeLinear", quantize),
    onnx("DequantizeLinear", dequantize),
    onnx("DynamicQuantizeLinear", dynamic_quantize),
    onnx("MatMulInteger", |c| {
        let (a, b) = (c.x(0)?, c.x(1)?);
        let a = offset(c, a, 2, Side::Rows)?;
        let b = offset(c, b, 3, Side::Columns)?;
        let out = matmul(c, a, b)?;
        Ok(vec![c.cast(out, DType::I32)?])
    }),
    onnx("ConvInteger", |c| {
        let (x, w) = (c.x(0)?, c.x(1)?);
        let x = offset(c, x, 2, Side::Rows)?;
        let w = offset(c, w, 3, Side::Filters)?;
        let out = conv(c, x, w, None)?;
        Ok(vec![c.cast(out, DType::I32)?])
    }),
    onnx("QLinearMatMul", qlinear_matmul),
    onnx("QLinearConv", |c| {
        let x = c.x(0)?;
        Ok(vec![qlinear_conv(c, x)?])
    }),
];

/// Which axis a vector of zero points or scales runs along.
#[derive(Clone, Copy)]
enum Side {
    Rows,
    Columns,
    Filters,
}

/// A vector laid along its axis of a tensor of this rank.
fn lay(c: &mut Call<'_>, v: Tensor, rank: usize, side: Side) -> OpResult {
    match (c.rank(v), side) {
        (1, _) if c.shape(v)[0].is(1) => c.reshape(v, &[]),
        (1, Side::Rows) if rank >= 2 => c.unsqueeze(v, &[1]),
        (1, Side::Filters) => per_channel(c, v, rank + 1),
        _ => Ok(v),
    }
}

/// `x - zero point` as f32, which holds every sum of 8-bit products that a layer makes.
fn offset(c: &mut Call<'_>, x: Tensor, zero_point: usize, side: Side) -> OpResult {
    let rank = c.rank(x);
    let x = c.cast(x, DType::F32)?;
    let Some(zero) = c.opt(zero_point) else { return Ok(x) };
    let zero = c.cast(zero, DType::F32)?;
    let zero = lay(c, zero, rank, side)?;
    c.difference(x, zero)
}

/// Scales or zero points spread over the tensor that they are for.
pub(super) fn spread(
    c: &mut Call<'_>,
    v: Tensor,
    shape: &[Dim],
    axis: i64,
    block: i64,
) -> OpResult {
    let rank = shape.len();
    if c.rank(v) == 0 || (c.rank(v) == 1 && c.shape(v)[0].is(1)) {
        return c.reshape(v, &[]);
    }
    let axis = c.axis_of(axis, rank)?;
    if c.rank(v) == 1 && block == 0 {
        let mut line = vec![Dim::ONE; rank];
        line[axis] = c.shape(v)[0].clone();
        return c.reshape(v, &line);
    }
    if c.rank(v) != rank || block < 1 {
        return wrong("scales fit neither a tensor, an axis, nor blocks");
    }
    // [.., n, ..] → [.., n, block, ..] → [.., n·block, ..], cut to the extent.
    let v = c.unsqueeze(v, &[axis + 1])?;
    let mut grown = c.shape(v).to_vec();
    grown[axis + 1] = block.into();
    let v = c.expand(v, &grown)?;
    let mut flat = shape.to_vec();
    flat[axis] = &grown[axis] * &grown[axis + 1];
    let v = c.reshape(v, &flat)?;
    c.slice_axis(v, axis, Dim::ZERO, shape[axis].clone(), 1)
}

/// `saturate(round(x) + zero point)` in `dtype`; floats are not rounded to integers.
pub(super) fn saturate(
    c: &mut Call<'_>,
    x: Tensor,
    zero: Option<Tensor>,
    dtype: DType,
) -> OpResult {
    let mut x = x;
    if dtype.is_int() {
        x = c.unary(UnaryOp::Round, x)?;
    }
    if let Some(zero) = zero {
        let zero = c.cast_like(zero, x)?;
        x = c.sum(x, zero)?;
    }
    super::elementwise::cast_saturated(c, x, dtype)
}

fn quantize(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (x, scale, zero) = (c.x(0)?, c.x(1)?, c.opt(2));
    let shape = c.shape(x).to_vec();
    let (axis, block) = (c.int("axis", 1), c.int("block_size", 0));
    let dtype = match (zero, c.dtype_attr("output_dtype")?) {
        (Some(zero), _) => c.dtype(zero),
        (None, Some(dtype)) => dtype,
        (None, None) => DType::U8,
    };
    let scale = spread(c, scale, &shape, axis, block)?;
    let wide = if c.dtype(scale).bits() < 32 { DType::F32 } else { c.dtype(scale) };
    let (x, scale) = (c.cast(x, wide)?, c.cast(scale, wide)?);
    let scaled = c.quotient(x, scale)?;
    let zero = match zero {
        Some(zero) => Some(spread(c, zero, &shape, axis, block)?),
        None => None,
    };
    Ok(vec![saturate(c, scaled, zero, dtype)?])
}

fn dequantize(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (x, scale, zero) = (c.x(0)?, c.x(1)?, c.opt(2));
    let shape = c.shape(x).to_vec();
    let (axis, block) = (c.int("axis", 1), c.int("block_size", 0));
    let dtype = c.dtype_attr("output_dtype")?.unwrap_or(c.dtype(scale));
    let wide = if c.dtype(scale).bits() < 32 { DType::F32 } else { c.dtype(scale) };
    let mut y = c.cast(x, wide)?;
    if let Some(zero) = zero {
        let zero = spread(c, zero, &shape, axis, block)?;
        let zero = c.cast(zero, wide)?;
        y = c.difference(y, zero)?;
    }
    let scale = spread(c, scale, &shape, axis, block)?;
    let scale = c.cast(scale, wide)?;
    y = c.product(y, scale)?;
    Ok(vec![c.cast(y, dtype)?])
}

fn dynamic_quantize(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    Ok(dynamic(c, x)?.to_vec())
}

/// To `u8`, over the range of the data with 0 in it: numbers, scale and zero point.
pub(super) fn dynamic(c: &mut Call<'_>, x: Tensor) -> OpResult<[Tensor; 3]> {
    let axes: Vec<usize> = (0..c.rank(x)).collect();
    let low = c.reduce(ReduceOp::Min, x, &axes, false)?;
    let low = c.with(BinaryOp::Min, low, 0.0)?;
    let high = c.reduce(ReduceOp::Max, x, &axes, false)?;
    let high = c.with(BinaryOp::Max, high, 0.0)?;
    let range = c.difference(high, low)?;
    let scale = c.with(BinaryOp::Div, range, 255.0)?;
    let flat = c.with(BinaryOp::Eq, scale, 0.0)?;
    let one = c.scalar_like(1.0, scale);
    let scale = c.select(flat, one, scale)?;
    let zero = c.quotient(low, scale)?;
    let zero = c.unary(UnaryOp::Neg, zero)?;
    let zero = saturate(c, zero, None, DType::U8)?;
    let scaled = c.quotient(x, scale)?;
    let y = saturate(c, scaled, Some(zero), DType::U8)?;
    Ok([y, scale, zero])
}

/// `saturate(round(acc · a_scale · b_scale / y_scale) + y_zero)`.
fn requantize(c: &mut Call<'_>, acc: Tensor, scales: [Tensor; 3], zero: Tensor) -> OpResult {
    let [a, b, y] = scales;
    let (a, b, y) = (c.cast(a, DType::F32)?, c.cast(b, DType::F32)?, c.cast(y, DType::F32)?);
    let factor = c.product(a, b)?;
    let factor = c.quotient(factor, y)?;
    let scaled = c.product(acc, factor)?;
    let dtype = c.dtype(zero);
    saturate(c, scaled, Some(zero), dtype)
}

fn qlinear_matmul(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (a, b) = (c.x(0)?, c.x(3)?);
    let (ra, rb) = (c.rank(a), c.rank(b));
    let (a_scale, b_scale) = (c.x(1)?, c.x(4)?);
    let a = offset(c, a, 2, Side::Rows)?;
    let b = offset(c, b, 5, Side::Columns)?;
    let acc = matmul(c, a, b)?;
    let a_scale = lay(c, a_scale, ra, Side::Rows)?;
    let b_scale = lay(c, b_scale, rb, Side::Columns)?;
    let (y_scale, y_zero) = (c.x(6)?, c.x(7)?);
    Ok(vec![requantize(c, acc, [a_scale, b_scale, y_scale], y_zero)?])
}

/// Of `x [n, c, spatial..]` with the node's other inputs.
pub(super) fn qlinear_conv(c: &mut Call<'_>, x: Tensor) -> OpResult {
    let (w, bias) = (c.x(3)?, c.opt(8));
    let rank = c.rank(x);
    let (x_scale, w_scale) = (c.x(1)?, c.x(4)?);
    let x = offset(c, x, 2, Side::Rows)?;
    let w = offset(c, w, 5, Side::Filters)?;
    let bias = match bias {
        Some(bias) => Some(c.cast(bias, DType::F32)?),
        None => None,
    };
    let acc = conv(c, x, w, bias)?;
    if c.rank(x_scale) > 1 || c.rank(w_scale) > 1 {
        return unsupported("scales of rank above 1");
    }
    let x_scale = c.reshape(x_scale, &[])?;
    let w_scale = if c.rank(w_scale) == 1 && !c.shape(w_scale)[0].is(1) {
        per_channel(c, w_scale, rank)?
    } else {
        c.reshape(w_scale, &[])?
    };
    let (y_scale, y_zero) = (c.x(6)?, c.x(7)?);
    requantize(c, acc, [x_scale, w_scale, y_scale], y_zero)
}
