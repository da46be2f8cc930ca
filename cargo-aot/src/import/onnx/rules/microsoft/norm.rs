//! Normalisation with what precedes it: residual sums and embeddings.

use super::super::super::builder::{OpResult, Tensor, unsupported, wrong};
use super::super::super::call::Call;
use super::super::activation::swish;
use super::super::convolution::per_channel;
use super::super::matmul::rsqrt;
use super::super::norm::{grouped_norm, normalize, rms_norm};
use super::super::table::{Entry, microsoft, onnx};
use super::linear::real;
use super::nhwc::{channels_last, channels_second};
use super::with_bias;
use aot_ir::op::{BinaryOp, ReduceOp};
use aot_ir::{DType, Dim};

pub(in super::super) const RULES: &[Entry] = &[
    microsoft("SkipLayerNormalization", |c| skip_norm(c, true)),
    microsoft("SkipSimplifiedLayerNormalization", |c| skip_norm(c, false)),
    microsoft("SimplifiedLayerNormalization", simplified),
    // onnxruntime registers this one in ONNX's own domain too.
    onnx("SimplifiedLayerNormalization", simplified),
    microsoft("EmbedLayerNormalization", |c| {
        let tables = [c.opt(2), c.opt(3), c.opt(4), c.opt(5), c.opt(6)];
        embed(c, tables, c.opt(8))
    }),
    microsoft("QEmbedLayerNormalization", |c| {
        let mut tables = [None; 5];
        for (i, table) in tables.iter_mut().enumerate() {
            if let Some(t) = c.opt(2 + i) {
                *table = Some(real(c, t, c.opt(8 + i), c.opt(13 + i))?);
            }
        }
        embed(c, tables, None)
    }),
    microsoft("GroupNorm", |c| {
        let x = c.x(0)?;
        Ok(vec![group_norm(c, x)?])
    }),
    microsoft("SkipGroupNorm", |c| {
        let (x, mut skip) = (c.x(0)?, c.x(3)?);
        if c.rank(skip) == 2 {
            // [n, c]
            skip = c.unsqueeze(skip, &[1, 2])?;
        }
        let sum = c.sum(x, skip)?;
        let sum = with_bias(c, sum, c.opt(4))?;
        Ok(vec![group_norm(c, sum)?, sum])
    }),
];

/// Inputs: x, skip, gamma, then beta (layer norm only), then bias. Fourth output: the sum.
fn skip_norm(c: &mut Call<'_>, centered: bool) -> OpResult<Vec<Tensor>> {
    let (x, skip, gamma) = (c.x(0)?, c.x(1)?, c.x(2)?);
    let (beta, bias) = if centered { (c.opt(3), c.opt(4)) } else { (None, c.opt(3)) };
    let epsilon = c.float("epsilon", 1e-12);
    let sum = c.sum(x, skip)?;
    let sum = with_bias(c, sum, bias)?;
    if c.wants(1) || c.wants(2) {
        return unsupported("mean and deviation as outputs");
    }
    let axis = c.rank(sum).saturating_sub(1);
    let y = if centered {
        let y = layer_norm(c, sum, gamma, epsilon)?;
        with_bias(c, y, beta)?
    } else {
        rms_norm(c, sum, gamma, axis, epsilon)?
    };
    Ok(vec![y, y, y, sum])
}

fn layer_norm(c: &mut Call<'_>, x: Tensor, gamma: Tensor, epsilon: f64) -> OpResult {
    let axis = c.rank(x).saturating_sub(1);
    let wide = if c.dtype(x).bits() < 32 { DType::F32 } else { c.dtype(x) };
    let y = c.cast(x, wide)?;
    let y = normalize(c, y, vec![axis], epsilon, true)?;
    let y = c.cast_like(y, gamma)?;
    let y = c.product(y, gamma)?;
    c.cast_like(y, x)
}

fn simplified(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (x, scale) = (c.x(0)?, c.x(1)?);
    let axis = c.axis(x, -1)?;
    let epsilon = c.float("epsilon", 1e-5);
    let mut out = vec![rms_norm(c, x, scale, axis, epsilon)?];
    if c.wants(1) {
        let axes: Vec<usize> = (axis..c.rank(x)).collect();
        let squares = c.product(x, x)?;
        let mean = c.reduce(ReduceOp::Mean, squares, &axes, true)?;
        let mean = c.with(BinaryOp::Add, mean, epsilon)?;
        out.push(rsqrt(c, mean)?);
    }
    Ok(out)
}

/// Inputs: ids, segments, tables of words, places and segments, gamma, beta, mask. The second output is
/// the mask's number of ones per row.
fn embed(
    c: &mut Call<'_>,
    tables: [Option<Tensor>; 5],
    positions: Option<Tensor>,
) -> OpResult<Vec<Tensor>> {
    let (ids, segments) = (c.x(0)?, c.opt(1));
    let [Some(words), Some(places), kinds, Some(gamma), Some(beta)] = tables else {
        return wrong("a table is missing");
    };
    if c.rank(ids) != 2 {
        return wrong(format!("ids of rank {}, expected 2", c.rank(ids)));
    }
    let mut sum = c.gather(words, ids, 0)?;
    let positions = match positions {
        Some(positions) => positions,
        None => {
            let shape = [Dim::ONE, c.shape(ids)[1].clone()];
            super::super::generate::coordinates(c, &shape, 1, DType::I64)?
        }
    };
    let place = c.gather(places, positions, 0)?;
    sum = c.sum(sum, place)?;
    if let (Some(segments), Some(kinds)) = (segments, kinds) {
        let kind = c.gather(kinds, segments, 0)?;
        sum = c.sum(sum, kind)?;
    }
    let epsilon = c.float("epsilon", 1e-12);
    let y = layer_norm(c, sum, gamma, epsilon)?;
    let y = c.sum(y, beta)?;
    let ones = match c.opt(7) {
        Some(mask) => c.reduce(ReduceOp::Sum, mask, &[1], false)?,
        None => {
            let zero = c.scalar(0.0, DType::I32);
            let batch = c.shape(ids)[0].clone();
            c.expand(zero, &[batch])?
        }
    };
    Ok(vec![y, ones, sum])
}

/// Over groups of channels, with SiLU after it where asked for.
fn group_norm(c: &mut Call<'_>, x: Tensor) -> OpResult {
    let (gamma, beta) = (c.x(1)?, c.x(2)?);
    let (last, epsilon) = (c.flag("channels_last", true), c.float("epsilon", 1e-5));
    let groups = c.int("groups", 0);
    let input = if last { channels_second(c, x)? } else { x };
    let wide = c.cast(input, DType::F32)?;
    let mut y = grouped_norm(c, wide, groups, epsilon)?;
    for (parameter, op) in [(gamma, BinaryOp::Mul), (beta, BinaryOp::Add)] {
        let parameter = c.cast(parameter, DType::F32)?;
        let parameter = per_channel(c, parameter, c.rank(y))?;
        y = c.binary(op, y, parameter)?;
    }
    match c.int("activation", 0) {
        0 => {}
        1 => y = swish(c, y, 1.0)?,
        other => return unsupported(format!("activation {other}")),
    }
    let y = if last { channels_last(c, y)? } else { y };
    c.cast_like(y, x)
}
