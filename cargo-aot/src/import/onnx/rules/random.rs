//! Operators that draw random numbers.

use super::super::builder::{OpResult, Seed, Tensor, wrong};
use super::super::call::Call;
use super::table::{Entry, onnx, since};
use super::twister;
use aot_ir::op::{BinaryOp, ReduceOp, ScanOp, UnaryOp};
use aot_ir::{Bytes, Constant, DType, Dim, Op};
use std::f64::consts::TAU;

pub(super) const RULES: &[Entry] = &[
    onnx("RandomUniform", |c| shaped(c, between)),
    onnx("RandomNormal", |c| shaped(c, around)),
    onnx("RandomUniformLike", |c| like(c, between)),
    onnx("RandomNormalLike", |c| like(c, around)),
    onnx("Bernoulli", bernoulli),
    onnx("Multinomial", multinomial),
    onnx("Dropout", idle_dropout),
    since(12, "Dropout", dropout),
];

/// Most elements whose numbers are stored.
const STORED: i64 = 1 << 16;

/// A distribution's numbers of a type over a shape.
type Draw = fn(&mut Call<'_>, &[Dim], DType) -> OpResult;

fn shaped(c: &mut Call<'_>, draw: Draw) -> OpResult<Vec<Tensor>> {
    let dtype = c.dtype_attr("dtype")?.unwrap_or(DType::F32);
    let Some(extents) = c.ints_attr("shape") else { return wrong("the shape is missing") };
    if extents.iter().any(|&extent| extent < 0) {
        return wrong(format!("the shape {extents:?} has a negative extent"));
    }
    let shape: Vec<Dim> = extents.into_iter().map(Dim::from).collect();
    Ok(vec![draw(c, &shape, dtype)?])
}

fn like(c: &mut Call<'_>, draw: Draw) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let dtype = c.dtype_attr("dtype")?.unwrap_or(c.dtype(x));
    let shape = c.shape(x).to_vec();
    Ok(vec![draw(c, &shape, dtype)?])
}

/// Evenly between `low` and `high`, the latter left out.
fn between(c: &mut Call<'_>, shape: &[Dim], dtype: DType) -> OpResult {
    let (low, high) = (c.float("low", 0.0), c.float("high", 1.0));
    let drawn = fractions(c, shape, dtype)?;
    let drawn = c.with(BinaryOp::Mul, drawn, high - low)?;
    c.with(BinaryOp::Add, drawn, low)
}

/// Normally distributed, by the transform of Box and Muller: `√(-2 ln u) cos 2πv` for `u`, `v` between 0 and 1.
fn around(c: &mut Call<'_>, shape: &[Dim], dtype: DType) -> OpResult {
    let (mean, deviation) = (c.float("mean", 0.0), c.float("scale", 1.0));
    let wide = wide(dtype)?;
    // Each of the two gets a half of the bits, as many of them as the type holds.
    let digits = if wide == DType::F64 { 32 } else { 24 };
    let seed = seed(c);
    let bits = c.random_bits(shape, seed)?;
    let u = c.with(BinaryOp::Shr, bits, f64::from(64 - digits))?;
    let u = fraction(c, u, digits, 0.5, wide)?;
    let u = c.unary(UnaryOp::Log, u)?;
    let u = c.with(BinaryOp::Mul, u, -2.0)?;
    let radius = c.unary(UnaryOp::Sqrt, u)?;
    let low = c.scalar(((1_u64 << digits) - 1) as f64, DType::U64);
    let v = c.binary(BinaryOp::BitAnd, bits, low)?;
    let v = fraction(c, v, digits, 0.0, wide)?;
    let v = c.with(BinaryOp::Mul, v, TAU)?;
    let v = c.unary(UnaryOp::Cos, v)?;
    let drawn = c.product(radius, v)?;
    let drawn = c.with(BinaryOp::Mul, drawn, deviation)?;
    let drawn = c.with(BinaryOp::Add, drawn, mean)?;
    c.cast(drawn, dtype)
}

/// True where a number below the probability is drawn.
fn bernoulli(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let chance = c.x(0)?;
    let dtype = c.dtype_attr("dtype")?.unwrap_or(c.dtype(chance));
    let shape = c.shape(chance).to_vec();
    let drawn = fractions(c, &shape, c.dtype(chance))?;
    let drawn = c.binary(BinaryOp::Lt, drawn, chance)?;
    Ok(vec![c.cast(drawn, dtype)?])
}

/// The class of each sample is the first whose probability, with those of all before, is above what is drawn.
fn multinomial(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let scores = c.x(0)?;
    let [batch, classes] = c.shape(scores) else {
        return wrong(format!("rank {}, expected 2", c.rank(scores)));
    };
    let (batch, classes) = (batch.clone(), classes.clone());
    let samples = Dim::from(c.int("sample_size", 1));
    let dtype = c.dtype_attr("dtype")?.unwrap_or(DType::I32);
    let chances = c.op(Op::Softmax { axis: 1, log: false }, &[scores])?;
    let scan = Op::Scan { op: ScanOp::Sum, axis: 1, exclusive: false, reverse: false };
    let reached = c.op(scan, &[chances])?;
    let reached = c.unsqueeze(reached, &[1])?;
    let drawn = fractions(c, &[batch, samples], c.dtype(scores))?;
    let drawn = c.unsqueeze(drawn, &[2])?;
    let passed = c.binary(BinaryOp::Le, reached, drawn)?;
    let passed = c.cast(passed, DType::I64)?;
    let class = c.reduce(ReduceOp::Sum, passed, &[2], false)?;
    // The last sum may be a little below 1.
    let last = c.dims(&[classes - 1]);
    let last = c.reshape(last, &[])?;
    let class = c.binary(BinaryOp::Min, class, last)?;
    Ok(vec![c.cast(class, dtype)?])
}

/// Dropout as it is at inference.
fn idle_dropout(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let dtype = if c.opset < 10 { c.dtype(x) } else { DType::Bool };
    let one = c.scalar(1.0, dtype);
    let shape = c.shape(x).to_vec();
    let mask = c.expand(one, &shape)?;
    Ok(vec![x, mask])
}

/// Elements for which less than the ratio is drawn are dropped, where the model says that it trains.
fn dropout(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let ratio = c.opt(1);
    let known = match ratio {
        Some(ratio) => c.uniform(ratio),
        None => Some(0.5),
    };
    let training = match c.opt(2) {
        Some(training) if known != Some(0.0) && c.uniform(training) != Some(0.0) => training,
        _ => return idle_dropout(c),
    };
    let dtype = c.dtype(x);
    let shape = c.shape(x).to_vec();
    let ratio = ratio.unwrap_or_else(|| c.scalar(0.5, DType::F32));
    let drawn = fractions(c, &shape, c.dtype(ratio))?;
    let kept = c.binary(BinaryOp::Ge, drawn, ratio)?;
    let idle = c.unary(UnaryOp::Not, training)?;
    let kept = c.binary(BinaryOp::Or, kept, idle)?;
    let ratio = c.cast(ratio, dtype)?;
    let one = c.scalar(1.0, dtype);
    let rest = c.difference(one, ratio)?;
    let scaled = c.quotient(x, rest)?;
    let scaled = c.select(training, scaled, x)?;
    let zero = c.scalar(0.0, dtype);
    let y = c.select(kept, scaled, zero)?;
    let kept = c.expand(kept, &shape)?;
    Ok(vec![y, kept])
}

/// Numbers from 0 up to 1, the latter left out, evenly distributed. Of a seed that the model has, over a few elements,
/// they are those of ONNX's reference implementation.
fn fractions(c: &mut Call<'_>, shape: &[Dim], dtype: DType) -> OpResult {
    let wide = wide(dtype)?;
    let seed = seed(c);
    let extents: Option<Vec<i64>> = shape.iter().map(Dim::as_const).collect();
    let count = |extents: &Vec<i64>| extents.iter().try_fold(1_i64, |n, &d| n.checked_mul(d));
    if let Seed::Given(seed) = seed
        && let Some(extents) = extents
        && let Some(count) = count(&extents).filter(|&n| n <= STORED)
    {
        let drawn = twister::fractions(seed as u32).take(count as usize);
        let bytes: Vec<u8> = drawn.flat_map(f64::to_le_bytes).collect();
        let (name, shape) = (String::new(), extents.iter().map(|&d| d as usize).collect());
        let drawn =
            c.constant(Constant { name, dtype: DType::F64, shape, bytes: Bytes::from(bytes) });
        return c.cast(drawn, dtype);
    }
    let digits = if wide == DType::F64 { 53 } else { 24 };
    let bits = c.random_bits(shape, seed)?;
    let bits = c.with(BinaryOp::Shr, bits, f64::from(64 - digits))?;
    let drawn = fraction(c, bits, digits, 0.0, wide)?;
    c.cast(drawn, dtype)
}

/// `(n + offset) / 2^digits`.
fn fraction(c: &mut Call<'_>, n: Tensor, digits: i32, offset: f64, dtype: DType) -> OpResult {
    let n = c.cast(n, dtype)?;
    let n = if offset == 0.0 { n } else { c.with(BinaryOp::Add, n, offset)? };
    c.with(BinaryOp::Mul, n, 0.5_f64.powi(digits))
}

/// The type to draw in.
fn wide(dtype: DType) -> OpResult<DType> {
    match dtype {
        DType::F64 => Ok(DType::F64),
        dtype if dtype.is_float() => Ok(DType::F32),
        dtype => wrong(format!("random numbers of type {dtype}, expected floats")),
    }
}

fn seed(c: &Call<'_>) -> Seed {
    // An attribute of an integer (Dropout) or of a float (the others).
    match c.int_opt("seed") {
        Some(0) => Seed::Given(c.float("seed", 0.0) as u64),
        Some(seed) => Seed::Given(seed as u64),
        None => Seed::Input,
    }
}
