//! Quantised operators: what they do to the numbers that the integers stand for.

use super::super::super::builder::{OpResult, Tensor, unsupported, wrong};
use super::super::super::call::Call;
use super::super::activation::{leaky, softmax, softmax_flat};
use super::super::matmul::matmul;
use super::super::pooling::average_pool_of;
use super::super::quantized::{dynamic, saturate};
use super::super::table::{Entry, microsoft};
use super::nhwc::{channels_last, channels_second};
use super::{relay, with_bias};
use aot_ir::op::{BinaryOp, ReduceOp, UnaryOp};
use aot_ir::{DType, Op};

pub(in super::super) const RULES: &[Entry] = &[
    microsoft("DequantizeLinear", |c| relay(c, "DequantizeLinear")),
    microsoft("QuantizeLinear", |c| relay(c, "QuantizeLinear")),
    microsoft("QLinearAdd", |c| two(c, BinaryOp::Add)),
    microsoft("QLinearMul", |c| two(c, BinaryOp::Mul)),
    microsoft("QLinearSigmoid", |c| one(c, |c, x| c.unary(UnaryOp::Sigmoid, x))),
    microsoft("QLinearLeakyRelu", |c| {
        one(c, |c, x| {
            let slope = c.float("alpha", 0.01);
            let slope = c.scalar_like(slope, x);
            leaky(c, x, slope)
        })
    }),
    microsoft("QLinearSoftmax", |c| {
        one(c, |c, x| {
            let axis = c.axis(x, -1)?;
            if c.int("opset", 13) < 13 { softmax_flat(c, x, axis) } else { softmax(c, x, axis) }
        })
    }),
    microsoft("QLinearReduceMean", |c| {
        one(c, |c, x| {
            let rank = c.rank(x);
            let axes = c.ints_attr("axes").unwrap_or_else(|| (0..rank as i64).collect());
            let axes = c.axes_of(&axes, rank)?;
            let keep = c.flag("keepdims", true);
            c.reduce(ReduceOp::Mean, x, &axes, keep)
        })
    }),
    microsoft("QLinearAveragePool", |c| one(c, |c, x| over_channels(c, x, average_pool_of))),
    microsoft("QLinearGlobalAveragePool", |c| {
        one(c, |c, x| {
            over_channels(c, x, |c, x| {
                let axes: Vec<usize> = (2..c.rank(x)).collect();
                c.reduce(ReduceOp::Mean, x, &axes, true)
            })
        })
    }),
    microsoft("QLinearConcat", concat),
    microsoft("QLinearWhere", |c| {
        let condition = c.x(0)?;
        let (x, y) = (real_input(c, 1)?, real_input(c, 4)?);
        let chosen = c.select(condition, x, y)?;
        Ok(vec![quantized(c, chosen, 7, DType::U8)?])
    }),
    microsoft("QGemm", gemm),
    microsoft("MatMulIntegerToFloat", |c| {
        // Inputs: a, b, a scale, b scale, a zero, b zero, bias.
        let (a, b, a_scale, b_scale) = (c.x(0)?, c.x(1)?, c.x(2)?, c.x(3)?);
        let (a_zero, b_zero, bias) = (c.opt(4), c.opt(5), c.opt(6));
        let a = real(c, a, None, a_zero)?;
        let b = real(c, b, None, b_zero)?;
        let out = c.op(Op::MatMul, &[a, b])?;
        let scale = c.product(a_scale, b_scale)?;
        let out = c.product(out, scale)?;
        Ok(vec![with_bias(c, out, bias)?])
    }),
    microsoft("DynamicQuantizeMatMul", |c| {
        let (a, b, scale) = (c.x(0)?, c.x(1)?, c.x(2)?);
        let [a, a_scale, a_zero] = dynamic(c, a)?;
        let a = real(c, a, Some(a_scale), Some(a_zero))?;
        let b = real(c, b, Some(scale), c.opt(3))?;
        let out = matmul(c, a, b)?;
        with_bias(c, out, c.opt(4)).map(|t| vec![t])
    }),
];

/// `(x - zero) · scale` in f32; scale and zero per tensor or per last axis.
pub(super) fn real(
    c: &mut Call<'_>,
    x: Tensor,
    scale: Option<Tensor>,
    zero: Option<Tensor>,
) -> OpResult {
    let mut x = c.cast(x, DType::F32)?;
    if let Some(zero) = zero {
        let zero = scalar_or_vector(c, zero)?;
        let zero = c.cast(zero, DType::F32)?;
        x = c.difference(x, zero)?;
    }
    match scale {
        Some(scale) => {
            let scale = scalar_or_vector(c, scale)?;
            let scale = c.cast(scale, DType::F32)?;
            c.product(x, scale)
        }
        None => Ok(x),
    }
}

/// One element is a scalar, whatever its rank.
fn scalar_or_vector(c: &mut Call<'_>, t: Tensor) -> OpResult {
    if c.shape(t).iter().all(|d| d.is(1)) { c.reshape(t, &[]) } else { Ok(t) }
}

/// Input `n` with the scale and the zero point that follow it.
fn real_input(c: &mut Call<'_>, n: usize) -> OpResult {
    let (x, scale) = (c.x(n)?, c.x(n + 1)?);
    real(c, x, Some(scale), c.opt(n + 2))
}

/// `saturate(round(x / scale) + zero)` with the inputs `n` and `n + 1`.
fn quantized(c: &mut Call<'_>, x: Tensor, n: usize, default: DType) -> OpResult {
    let scale = c.x(n)?;
    let scale = scalar_or_vector(c, scale)?;
    let zero = match c.opt(n + 1) {
        Some(zero) => Some(scalar_or_vector(c, zero)?),
        None => None,
    };
    let dtype = zero.map_or(default, |zero| c.dtype(zero));
    let x = c.quotient(x, scale)?;
    saturate(c, x, zero, dtype)
}

/// A function of input 0, with its scale and zero point, then those of the result.
fn one(
    c: &mut Call<'_>,
    f: impl FnOnce(&mut Call<'_>, Tensor) -> OpResult,
) -> OpResult<Vec<Tensor>> {
    let dtype = {
        let x = c.x(0)?;
        c.dtype(x)
    };
    let x = real_input(c, 0)?;
    let y = f(c, x)?;
    Ok(vec![quantized(c, y, 3, dtype)?])
}

fn two(c: &mut Call<'_>, op: BinaryOp) -> OpResult<Vec<Tensor>> {
    let dtype = {
        let x = c.x(0)?;
        c.dtype(x)
    };
    let (a, b) = (real_input(c, 0)?, real_input(c, 3)?);
    let y = c.binary(op, a, b)?;
    Ok(vec![quantized(c, y, 6, dtype)?])
}

/// Of `[n, c, spatial..]`, or of what has its channels last.
fn over_channels(
    c: &mut Call<'_>,
    x: Tensor,
    f: impl FnOnce(&mut Call<'_>, Tensor) -> OpResult,
) -> OpResult {
    if !c.flag("channels_last", false) {
        return f(c, x);
    }
    let x = channels_second(c, x)?;
    let y = f(c, x)?;
    channels_last(c, y)
}

/// Inputs: scale and zero point of the result, then those of each part after it.
fn concat(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let mut parts = Vec::new();
    let mut n = 2;
    while c.opt(n).is_some() {
        parts.push(real_input(c, n)?);
        n += 3;
    }
    let Some(&first) = parts.first() else { return wrong("an input is missing") };
    let axis = c.axis(first, 0)?;
    let y = c.concat(&parts, axis)?;
    Ok(vec![quantized(c, y, 0, DType::U8)?])
}

/// `alpha · a_scale · b_scale · (a' b' + c)`, quantised where a scale for that is given.
fn gemm(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (a, b) = (c.x(0)?, c.x(3)?);
    let (a_scale, b_scale) = (c.x(1)?, c.x(4)?);
    let mut a = real(c, a, None, c.opt(2))?;
    if c.flag("transA", false) {
        a = c.transpose_last(a)?;
    }
    // Zero points are per column of the product.
    let mut b = c.cast(b, DType::F32)?;
    if c.flag("transB", false) {
        b = c.transpose_last(b)?;
    }
    let b = real(c, b, None, c.opt(5))?;
    let mut y = matmul(c, a, b)?;
    if let Some(bias) = c.opt(6) {
        let bias = c.cast(bias, DType::F32)?;
        y = c.sum(y, bias)?;
    }
    let (a_scale, b_scale) = (scalar_or_vector(c, a_scale)?, scalar_or_vector(c, b_scale)?);
    let scale = c.product(a_scale, b_scale)?;
    let alpha = c.float("alpha", 1.0);
    let scale = c.with(BinaryOp::Mul, scale, alpha)?;
    y = c.product(y, scale)?;
    match (c.opt(7), c.opt(8)) {
        (None, None) => Ok(vec![y]),
        (Some(_), Some(_)) => Ok(vec![quantized(c, y, 7, DType::U8)?]),
        _ => unsupported("a scale of the result without a zero point"),
    }
}
