//! Fourier transforms, as products with matrices of roots of unity.

use super::super::builder::{Most, OpResult, Tensor, unsupported, wrong};
use super::super::call::Call;
use super::super::known::{Content, Elem};
use super::table::{Entry, onnx};
use aot_ir::op::{BinaryOp, PadMode, UnaryOp};
use aot_ir::{DType, Dim, Op, Scalar};
use std::f64::consts::PI;

pub(super) const RULES: &[Entry] = &[onnx("DFT", dft), onnx("STFT", stft)];

/// Longest transform that is one product; longer ones are split into two where the length has divisors.
const MAX_DIRECT: i64 = 1024;

/// A transform of signals `[.., n, parts]`, real (1 part) or complex (2 parts), to `[.., k, 2]`.
#[derive(Clone)]
struct Transform {
    length: Dim,
    inverse: bool,
}

impl Transform {
    /// The first `count` frequencies of `x [.., length, parts]`, not divided by the length.
    fn apply(&self, c: &mut Call<'_>, x: Tensor, count: &Dim) -> OpResult {
        match self.length.as_const().filter(|&n| n > MAX_DIRECT).and_then(divisor) {
            Some((a, b)) => self.split(c, x, a, b, count),
            None => self.direct(c, x, count),
        }
    }

    /// The product with `cos(2π (n k / length + (part of the result - part of x) / 4))`; the inverse has
    /// the parts' difference the other way round.
    fn direct(&self, c: &mut Call<'_>, x: Tensor, count: &Dim) -> OpResult {
        let rank = c.rank(x);
        let parts = c.shape(x)[rank - 1].clone();
        let shape = [self.length.clone(), parts.clone(), count.clone(), Dim::from(2)];
        let wave = self.wave(c, &shape, |at| (&at[0] * &at[2], &at[3] - &at[1]))?;
        let wave = c.cast_like(wave, x)?;
        let rows = &self.length * &parts;
        let wave = c.reshape(wave, &[rows.clone(), count.scaled(2)])?;
        let mut flat = c.shape(x)[..rank - 2].to_vec();
        if flat.is_empty() {
            flat.push(Dim::ONE);
        }
        flat.push(rows);
        let mut result = c.shape(x)[..rank - 2].to_vec();
        result.extend([count.clone(), Dim::from(2)]);
        let x = c.reshape(x, &flat)?;
        let out = c.op(Op::MatMul, &[x, wave])?;
        c.reshape(out, &result)
    }

    /// `cos(2π (turn / length + quarter / 4))` of integers that depend on coordinates, as `F64`.
    fn wave(&self, c: &mut Call<'_>, shape: &[Dim], f: impl Fn(&[Dim]) -> (Dim, Dim)) -> OpResult {
        let whole = self.length.scaled(4);
        let sign = if self.inverse { -1 } else { 1 };
        let angle = Content::make(shape, c.symbols(), |at, scope| {
            let (turn, quarter) = f(at);
            let angle = turn.scaled(4) + &self.length * &quarter.scaled(sign);
            Some(Elem::Int(scope.modulo(&angle, &whole)))
        });
        let Some(angle) = angle else {
            return unsupported("a transform whose length is too complicated");
        };
        let angle = c.known(DType::I64, angle);
        let angle = c.op(Op::Cast(DType::F64), &[angle])?;
        let whole = c.dims(&[whole]);
        let whole = c.reshape(whole, &[])?;
        let whole = c.cast(whole, DType::F64)?;
        let angle = c.with(BinaryOp::Mul, angle, 2.0 * PI)?;
        let angle = c.quotient(angle, whole)?;
        c.unary(UnaryOp::Cos, angle)
    }

    /// For `length = a · b`: with `n = b n₁ + n₂` and `k = k₁ + a k₂`, transforms of length `a` over `n₁`,
    /// a rotation by `n₂ k₁`, and transforms of length `b` over `n₂`.
    fn split(&self, c: &mut Call<'_>, x: Tensor, a: i64, b: i64, count: &Dim) -> OpResult {
        let rank = c.rank(x);
        let lead = c.shape(x)[..rank - 2].to_vec();
        let parts = c.shape(x)[rank - 1].clone();
        let (a, b) = (Dim::from(a), Dim::from(b));
        let shaped = |tail: [&Dim; 3]| -> Vec<Dim> { lead.iter().chain(tail).cloned().collect() };
        let mut swap: Vec<usize> = (0..=rank).collect();
        swap.swap(rank - 2, rank - 1);
        let of = |length: &Dim| Self { length: length.clone(), inverse: self.inverse };
        let x = c.reshape(x, &shaped([&a, &b, &parts]))?;
        let x = c.transpose(x, &swap)?;
        // [.., n₂, k₁, 2]
        let x = of(&a).apply(c, x, &a)?;
        let turn = [b.clone(), a.clone()];
        let cos = self.wave(c, &turn, |at| (&at[0] * &at[1], Dim::ZERO))?;
        let sin = self.wave(c, &turn, |at| (&at[0] * &at[1], Dim::ONE))?;
        let (cos, sin) = (c.cast_like(cos, x)?, c.cast_like(sin, x)?);
        let (re, im) = (c.pick(x, rank, Dim::ZERO)?, c.pick(x, rank, Dim::ONE)?);
        let (p, q) = (c.product(re, cos)?, c.product(im, sin)?);
        let (r, s) = (c.product(re, sin)?, c.product(im, cos)?);
        let (re, im) = (c.difference(p, q)?, c.sum(r, s)?);
        let (re, im) = (c.unsqueeze(re, &[rank])?, c.unsqueeze(im, &[rank])?);
        let x = c.concat(&[re, im], rank)?;
        let x = c.transpose(x, &swap)?;
        // [.., k₁, k₂, 2]
        let x = of(&b).apply(c, x, &b)?;
        let x = c.transpose(x, &swap)?;
        let mut shape = lead.clone();
        shape.extend([self.length.clone(), Dim::from(2)]);
        let x = c.reshape(x, &shape)?;
        c.slice_axis(x, rank - 2, Dim::ZERO, count.clone(), 1)
    }
}

/// The factors of a number that are nearest to its square root, if it is not prime.
fn divisor(n: i64) -> Option<(i64, i64)> {
    (2..=n.isqrt()).rev().find(|a| n % a == 0).map(|a| (a, n / a))
}

/// The whole transform of `x [.., length, parts]`; half of the frequencies when `onesided`.
pub(super) fn transform(
    c: &mut Call<'_>,
    x: Tensor,
    length: &Dim,
    inverse: bool,
    onesided: bool,
) -> OpResult {
    let count = if onesided { c.scope().floor_div(length, &2.into()) + 1 } else { length.clone() };
    let dtype = c.dtype(x);
    let x = if dtype.bits() < 32 { c.cast(x, DType::F32)? } else { x };
    let mut out = Transform { length: length.clone(), inverse }.apply(c, x, &count)?;
    if inverse {
        let length = c.dims(std::slice::from_ref(length));
        let length = c.reshape(length, &[])?;
        let length = c.cast_like(length, out)?;
        out = c.quotient(out, length)?;
    }
    c.cast(out, dtype)
}

/// One integer, which may be an expression of run-time sizes.
fn one_dim(c: &mut Call<'_>, n: usize, what: &str) -> OpResult<Option<Dim>> {
    let found = c.input_dims(n, what)?;
    only(found.as_deref(), what)
}

fn only(found: Option<&[Dim]>, what: &str) -> OpResult<Option<Dim>> {
    match found {
        None => Ok(None),
        Some([one]) => Ok(Some(one.clone())),
        Some(_) => wrong(format!("{what} has to be one number")),
    }
}

/// `x` with an axis cut, or filled up with zeros, to an extent.
fn resized(c: &mut Call<'_>, x: Tensor, axis: usize, extent: &Dim) -> OpResult {
    let rank = c.rank(x);
    let mut high = vec![Dim::ZERO; rank];
    high[axis] = extent - &c.shape(x)[axis];
    c.pad(x, &vec![Dim::ZERO; rank], &high, PadMode::Constant(Scalar::Float(0.0)))
}

/// Requires a last axis that holds real numbers, or real and imaginary parts.
fn check_parts(c: &Call<'_>, x: Tensor, least_rank: usize) -> OpResult<()> {
    let shape = c.shape(x);
    let parts = shape.last().and_then(Dim::as_const);
    if shape.len() < least_rank || !matches!(parts, Some(1 | 2)) || !c.dtype(x).is_float() {
        return wrong("the signal has to have a last axis of 1 or 2 floats");
    }
    Ok(())
}

fn dft(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    check_parts(c, x, 2)?;
    let rank = c.rank(x);
    let axis = if c.opset < 20 {
        c.int("axis", 1)
    } else {
        match c.input_ints(2, "the axis of DFT")?.as_deref() {
            None => -2,
            Some(&[axis]) => axis,
            Some(_) => return wrong("the axis has to be one number"),
        }
    };
    let axis = c.axis_of(axis, rank)?;
    if axis == rank - 1 {
        return wrong("the axis can't be the last one, which holds the parts of numbers");
    }
    let what = "the length of DFT";
    let length = c.input_sizes(1, what, 0, &Most::Unknown)?;
    let length = match only(length.as_deref(), what)? {
        Some(length) => length,
        None => c.shape(x)[axis].clone(),
    };
    let (inverse, onesided) = (c.flag("inverse", false), c.flag("onesided", false));
    let x = resized(c, x, axis, &length)?;
    let mut perm: Vec<usize> = (0..rank).collect();
    perm.swap(axis, rank - 2);
    let x = c.transpose(x, &perm)?;
    let out = transform(c, x, &length, inverse, onesided)?;
    Ok(vec![c.transpose(out, &perm)?])
}

/// Transforms of overlapping frames of `input 0 [n, samples, parts]`: `[n, frames, frequencies, 2]`.
fn stft(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let mut x = c.x(0)?;
    if c.rank(x) == 2 {
        // As PyTorch's exporter writes it.
        x = c.unsqueeze(x, &[2])?;
    }
    check_parts(c, x, 3)?;
    let shape = c.shape(x).to_vec();
    let [batch, samples, parts] = shape.as_slice() else {
        return wrong(format!("rank {}, expected 3", shape.len()));
    };
    let Some(step) = one_dim(c, 1, "the frame step of STFT")? else {
        return wrong("the frame step is missing");
    };
    if step.as_const().is_some_and(|s| s < 1) {
        return wrong("the frame step has to be positive");
    }
    let window = c.opt(2);
    let given = one_dim(c, 3, "the frame length of STFT")?;
    let extent = match window {
        Some(w) if c.rank(w) != 1 => return wrong("the window has to have rank 1"),
        Some(w) => Some(c.shape(w)[0].clone()),
        None => None,
    };
    let Some(length) = given.or_else(|| extent.clone()) else {
        return wrong("window and frame length are missing");
    };
    let frames = c.scope().floor_div(&(samples - &length), &step) + 1;
    let places = Content::make(&[frames.clone(), length.clone()], c.symbols(), |at, _| {
        Some(Elem::Int(&at[0] * &step + &at[1]))
    });
    let Some(places) = places else { return unsupported("frames are too complicated") };
    let places = c.known(DType::I64, places);
    let mut x = c.gather(x, places, 1)?;
    if let Some(mut window) = window {
        window = resized(c, window, 0, &length)?;
        window = c.reshape(window, &[length.clone(), Dim::ONE])?;
        window = c.cast_like(window, x)?;
        x = c.product(x, window)?;
    }
    let shape = [batch.clone(), frames, length.clone(), parts.clone()];
    let x = c.reshape(x, &shape)?;
    let onesided = c.flag("onesided", true) && parts.is(1);
    Ok(vec![transform(c, x, &length, false, onesided)?])
}
