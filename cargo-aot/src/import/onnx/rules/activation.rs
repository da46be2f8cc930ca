//! Activations, composed of simpler functions.

use super::super::builder::{OpResult, Tensor, wrong};
use super::super::call::Call;
use super::table::{Entry, onnx, since};
use aot_ir::op::{BinaryOp, UnaryOp};
use aot_ir::{DType, Op};

pub(super) const RULES: &[Entry] = &[
    onnx("Celu", |c| {
        let (x, alpha) = (c.x(0)?, c.float("alpha", 1.0));
        let scaled = c.with(BinaryOp::Div, x, alpha)?;
        negative_exp(c, x, scaled, alpha, 1.0)
    }),
    onnx("Elu", |c| {
        let (x, alpha) = (c.x(0)?, c.float("alpha", 1.0));
        negative_exp(c, x, x, alpha, 1.0)
    }),
    onnx("Selu", |c| {
        let (x, alpha) = (c.x(0)?, c.float("alpha", 1.673_263_192_176_818_8));
        let gamma = c.float("gamma", 1.050_701_022_148_132_3);
        negative_exp(c, x, x, alpha, gamma)
    }),
    onnx("Gelu", |c| {
        let x = c.x(0)?;
        let tanh = c.text("approximate", "none") == "tanh";
        Ok(vec![if tanh { gelu_tanh(c, x)? } else { gelu(c, x)? }])
    }),
    onnx("HardSigmoid", |c| {
        let (x, alpha, beta) = (c.x(0)?, c.float("alpha", 0.2), c.float("beta", 0.5));
        Ok(vec![hard_sigmoid(c, x, alpha, beta)?])
    }),
    onnx("HardSwish", |c| {
        let x = c.x(0)?;
        let gate = hard_sigmoid(c, x, 1.0 / 6.0, 0.5)?;
        Ok(vec![c.product(x, gate)?])
    }),
    onnx("LeakyRelu", |c| {
        let x = c.x(0)?;
        let slope = c.float("alpha", 0.01);
        let slope = c.scalar_like(slope, x);
        Ok(vec![leaky(c, x, slope)?])
    }),
    onnx("Mish", |c| {
        let x = c.x(0)?;
        let gate = softplus(c, x)?;
        let gate = c.unary(UnaryOp::Tanh, gate)?;
        Ok(vec![c.product(x, gate)?])
    }),
    onnx("PRelu", |c| {
        let (x, slope) = (c.x(0)?, c.x(1)?);
        Ok(vec![leaky(c, x, slope)?])
    }),
    onnx("Shrink", shrink),
    onnx("Softplus", |c| {
        let x = c.x(0)?;
        Ok(vec![softplus(c, x)?])
    }),
    onnx("Softsign", |c| {
        let x = c.x(0)?;
        let size = c.unary(UnaryOp::Abs, x)?;
        let size = c.with(BinaryOp::Add, size, 1.0)?;
        Ok(vec![c.quotient(x, size)?])
    }),
    onnx("Swish", |c| {
        let (x, alpha) = (c.x(0)?, c.float("alpha", 1.0));
        Ok(vec![swish(c, x, alpha)?])
    }),
    onnx("ThresholdedRelu", |c| {
        let (x, alpha) = (c.x(0)?, c.float("alpha", 1.0));
        let above = c.with(BinaryOp::Gt, x, alpha)?;
        let zero = c.scalar_like(0.0, x);
        Ok(vec![c.select(above, x, zero)?])
    }),
    onnx("Softmax", |c| flat_along(c, Kind::Softmax)),
    onnx("LogSoftmax", |c| flat_along(c, Kind::LogSoftmax)),
    onnx("Hardmax", |c| flat_along(c, Kind::Hardmax)),
    since(13, "Softmax", |c| softmax_axis(c, Kind::Softmax)),
    since(13, "LogSoftmax", |c| softmax_axis(c, Kind::LogSoftmax)),
    since(13, "Hardmax", |c| softmax_axis(c, Kind::Hardmax)),
];

/// `gamma * x` where `x > 0`, else `gamma * alpha * (exp(inner) - 1)`.
fn negative_exp(
    c: &mut Call<'_>,
    x: Tensor,
    inner: Tensor,
    alpha: f64,
    gamma: f64,
) -> OpResult<Vec<Tensor>> {
    let positive = c.with(BinaryOp::Gt, x, 0.0)?;
    let below = c.unary(UnaryOp::Expm1, inner)?;
    let below = c.with(BinaryOp::Mul, below, alpha)?;
    let out = c.select(positive, x, below)?;
    Ok(vec![c.with(BinaryOp::Mul, out, gamma)?])
}

/// `x * 0.5 * (1 + erf(x / sqrt 2))`.
pub(super) fn gelu(c: &mut Call<'_>, x: Tensor) -> OpResult {
    let inner = c.with(BinaryOp::Mul, x, std::f64::consts::FRAC_1_SQRT_2)?;
    let inner = c.unary(UnaryOp::Erf, inner)?;
    let inner = c.with(BinaryOp::Add, inner, 1.0)?;
    let half = c.with(BinaryOp::Mul, x, 0.5)?;
    c.product(half, inner)
}

/// `x * 0.5 * (1 + tanh(sqrt(2/π) (x + 0.044715 x³)))`.
pub(super) fn gelu_tanh(c: &mut Call<'_>, x: Tensor) -> OpResult {
    let cube = c.product(x, x)?;
    let cube = c.product(cube, x)?;
    let cube = c.with(BinaryOp::Mul, cube, 0.044_715)?;
    let inner = c.sum(x, cube)?;
    let inner = c.with(BinaryOp::Mul, inner, (2.0 / std::f64::consts::PI).sqrt())?;
    let inner = c.unary(UnaryOp::Tanh, inner)?;
    let inner = c.with(BinaryOp::Add, inner, 1.0)?;
    let half = c.with(BinaryOp::Mul, x, 0.5)?;
    c.product(half, inner)
}

/// `x * sigmoid(alpha x)`.
pub(super) fn swish(c: &mut Call<'_>, x: Tensor, alpha: f64) -> OpResult {
    let inner = c.with(BinaryOp::Mul, x, alpha)?;
    let gate = c.unary(UnaryOp::Sigmoid, inner)?;
    c.product(x, gate)
}

/// `min(max(alpha x + beta, 0), 1)`.
pub(super) fn hard_sigmoid(c: &mut Call<'_>, x: Tensor, alpha: f64, beta: f64) -> OpResult {
    let x = c.with(BinaryOp::Mul, x, alpha)?;
    let x = c.with(BinaryOp::Add, x, beta)?;
    let x = c.with(BinaryOp::Max, x, 0.0)?;
    c.with(BinaryOp::Min, x, 1.0)
}

/// `x` where it is not negative, else `slope * x`; the slope broadcasts to `x`.
pub(super) fn leaky(c: &mut Call<'_>, x: Tensor, slope: Tensor) -> OpResult {
    let negative = c.with(BinaryOp::Lt, x, 0.0)?;
    let below = c.product(x, slope)?;
    c.select(negative, below, x)
}

/// `ln(1 + eˣ)`, without overflow: `max(x, 0) + ln(1 + e^-|x|)`.
pub(super) fn softplus(c: &mut Call<'_>, x: Tensor) -> OpResult {
    let tail = c.unary(UnaryOp::Abs, x)?;
    let tail = c.unary(UnaryOp::Neg, tail)?;
    let tail = c.unary(UnaryOp::Exp, tail)?;
    let tail = c.unary(UnaryOp::Log1p, tail)?;
    let head = c.unary(UnaryOp::Relu, x)?;
    c.sum(head, tail)
}

fn shrink(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (x, lambda, bias) = (c.x(0)?, c.float("lambd", 0.5), c.float("bias", 0.0));
    let below = c.with(BinaryOp::Lt, x, -lambda)?;
    let above = c.with(BinaryOp::Gt, x, lambda)?;
    let (up, down) = (c.with(BinaryOp::Add, x, bias)?, c.with(BinaryOp::Sub, x, bias)?);
    let zero = c.scalar_like(0.0, x);
    let out = c.select(above, down, zero)?;
    Ok(vec![c.select(below, up, out)?])
}

#[derive(Clone, Copy)]
enum Kind {
    Softmax,
    LogSoftmax,
    Hardmax,
}

pub(super) fn softmax(c: &mut Call<'_>, x: Tensor, axis: usize) -> OpResult {
    c.op(Op::Softmax { axis, log: false }, &[x])
}

fn along(c: &mut Call<'_>, x: Tensor, axis: usize, kind: Kind) -> OpResult {
    match kind {
        Kind::Softmax => softmax(c, x, axis),
        Kind::LogSoftmax => c.op(Op::Softmax { axis, log: true }, &[x]),
        Kind::Hardmax => {
            let best =
                c.op(Op::ArgReduce { max: true, axis, keep_dims: true, last: false }, &[x])?;
            let shape = c.shape(x).to_vec();
            let at = super::generate::coordinates(c, &shape, axis, DType::I64)?;
            let here = c.binary(BinaryOp::Eq, at, best)?;
            c.cast_like(here, x)
        }
    }
}

/// Before version 13.
fn flat_along(c: &mut Call<'_>, kind: Kind) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let rank = c.rank(x);
    let axis = match c.int("axis", 1) {
        a if a == rank as i64 => rank,
        a => c.axis_of(a, rank)?,
    };
    Ok(vec![from_axis(c, x, axis, kind)?])
}

/// Softmax over the axes from `axis` on, taken as one.
pub(super) fn softmax_flat(c: &mut Call<'_>, x: Tensor, axis: usize) -> OpResult {
    from_axis(c, x, axis, Kind::Softmax)
}

fn from_axis(c: &mut Call<'_>, x: Tensor, axis: usize, kind: Kind) -> OpResult {
    let rank = c.rank(x);
    let shape = c.shape(x).to_vec();
    if axis + 1 == rank || (axis < rank && shape[axis + 1..].iter().all(|d| d.is(1))) {
        return along(c, x, axis, kind);
    }
    if rank > 24 {
        return wrong("the rank is too large");
    }
    let product = |dims: &[aot_ir::Dim]| dims.iter().fold(aot_ir::Dim::ONE, |p, d| p * d);
    let flat = c.reshape(x, &[product(&shape[..axis]), product(&shape[axis..])])?;
    let out = along(c, flat, 1, kind)?;
    c.reshape(out, &shape)
}

fn softmax_axis(c: &mut Call<'_>, kind: Kind) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let axis = c.axis(x, -1)?;
    Ok(vec![along(c, x, axis, kind)?])
}
