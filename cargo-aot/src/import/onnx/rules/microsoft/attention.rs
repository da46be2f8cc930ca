//! Attention over heads that lie side by side, with padding masks and past keys and values.

use super::super::super::builder::{OpResult, Tensor, unsupported, wrong};
use super::super::super::call::Call;
use super::super::attention::{Heads, Rotation, attend, join_heads, rotate, split_heads};
use super::super::matmul::matmul;
use super::super::table::{Entry, microsoft};
use super::linear::real;
use super::with_bias;
use aot_ir::op::BinaryOp;
use aot_ir::{DType, Dim};

pub(in super::super) const RULES: &[Entry] = &[
    microsoft("RotaryEmbedding", rotary),
    microsoft("MultiHeadAttention", multi_head),
    microsoft("Attention", |c| {
        let (x, weights, bias) = (c.x(0)?, c.x(1)?, c.opt(2));
        let packed = matmul(c, x, weights)?;
        let packed = with_bias(c, packed, bias)?;
        packed_attention(c, packed, c.opt(3), c.opt(4), c.opt(5))
    }),
    microsoft("QAttention", |c| {
        // Inputs: x, weights, bias, scales of both, mask, zero points of both, past.
        let (x, weights, bias) = (c.x(0)?, c.x(1)?, c.x(2)?);
        let x = real(c, x, c.opt(3), c.opt(6))?;
        let weights = real(c, weights, c.opt(4), c.opt(7))?;
        let packed = matmul(c, x, weights)?;
        let packed = c.sum(packed, bias)?;
        packed_attention(c, packed, c.opt(5), c.opt(8), None)
    }),
];

/// Inputs: x, positions, cosines, sines. Positions are `[n, s]`, or the one of the first token.
fn rotary(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (x, mut positions, caches) = (c.x(0)?, c.x(1)?, [c.x(2)?, c.x(3)?]);
    if c.flag("is_packed_batching", false) {
        return unsupported("sequences of one batch packed behind each other");
    }
    let rank = c.rank(x);
    if c.rank(positions) < 2 {
        let axis = if rank == 4 { 2 } else { 1 };
        let Some(steps) = c.shape(x).get(axis).cloned() else { return wrong("rank below 3") };
        let first = c.reshape(positions, &[Dim::ONE, Dim::ONE])?;
        let first = c.cast(first, DType::I64)?;
        let at = super::super::generate::coordinates(c, &[Dim::ONE, steps], 1, DType::I64)?;
        positions = c.sum(at, first)?;
    }
    let rotation = Rotation::of(c);
    let y = rotate(c, &rotation, x, caches, Some(positions))?;
    let scale = c.float("scale", 1.0);
    Ok(vec![c.with(BinaryOp::Mul, y, scale)?])
}

/// A mask where 1 keeps, as a `Bool` mask over `[n, h, s, t]`: lengths `[n]`, or of rank 2 to 4 over
/// keys; twice `n` numbers are ends and, after them, starts.
fn keep_mask(c: &mut Call<'_>, mask: Tensor, batch: &Dim, keys: &Dim) -> OpResult {
    match c.rank(mask) {
        1 => {
            let row = [Dim::ONE, Dim::ONE, Dim::ONE, keys.clone()];
            let at = super::super::generate::coordinates(c, &row, 3, DType::I64)?;
            let extent = c.shape(mask)[0].clone();
            let bound = |c: &mut Call<'_>, first: Dim| -> OpResult {
                let part = c.slice_axis(mask, 0, first, batch.clone(), 1)?;
                let part = c.cast(part, DType::I64)?;
                c.reshape(part, &[batch.clone(), Dim::ONE, Dim::ONE, Dim::ONE])
            };
            let end = bound(c, Dim::ZERO)?;
            let before = c.binary(BinaryOp::Lt, at, end)?;
            if c.scope().proves_eq(&extent, batch) {
                return Ok(before);
            }
            if !c.scope().proves_eq(&extent, &batch.scaled(2)) {
                return unsupported("a mask that is neither lengths nor ends and starts");
            }
            let start = bound(c, batch.clone())?;
            let after = c.binary(BinaryOp::Ge, at, start)?;
            c.binary(BinaryOp::And, before, after)
        }
        rank @ 2..=4 => {
            let mask = c.cast(mask, DType::Bool)?;
            match rank {
                2 => c.unsqueeze(mask, &[1, 2]),
                3 => c.unsqueeze(mask, &[1]),
                _ => Ok(mask),
            }
        }
        rank => unsupported(format!("a mask of rank {rank}")),
    }
}

/// A mask of either kind: what is kept, and what is added to the scores.
fn both_masks(
    c: &mut Call<'_>,
    keep: Option<Tensor>,
    added: Option<Tensor>,
    (q, k): (Tensor, Tensor),
) -> OpResult<Option<Tensor>> {
    let Some(keep) = keep else { return Ok(added) };
    let (batch, keys) = (c.shape(q)[0].clone(), c.shape(k)[2].clone());
    let keep = keep_mask(c, keep, &batch, &keys)?;
    // onnxruntime adds its filter value to what is masked out, not -∞.
    let filter = c.float("mask_filter_value", -10000.0);
    let (zero, filter) = (c.scalar_like(0.0, q), c.scalar_like(filter, q));
    let mask = c.select(keep, zero, filter)?;
    match added {
        Some(added) => Ok(Some(c.sum(mask, added)?)),
        None => Ok(Some(mask)),
    }
}

pub(super) fn scale_of(c: &Call<'_>, q: Tensor) -> OpResult<f64> {
    match c.shape(q).last().and_then(Dim::as_const) {
        _ if c.float("scale", 0.0) != 0.0 => Ok(c.float("scale", 0.0)),
        Some(size) if size > 0 => Ok(1.0 / (size as f64).sqrt()),
        _ => unsupported("a head size that is no constant"),
    }
}

/// Entry `part` of axis 3 of `[n, s, h, parts, d]`, as `[n, h, s, d]`.
fn unpacked(c: &mut Call<'_>, x: Tensor, part: i64) -> OpResult {
    let x = c.pick(x, 3, part.into())?;
    c.transpose(x, &[0, 2, 1, 3])
}

/// Inputs: q, k, v, bias, key padding mask, added bias, past key, past value. Everything may be packed in q
/// `[n, s, h, 3, d]`, or keys and values in k `[n, t, h, 2, d]`; keys that have heads already are not split.
fn multi_head(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (mut q, k, v) = (c.x(0)?, c.opt(1), c.opt(2));
    let heads = c.int("num_heads", 0);
    let mut biases = [None; 3];
    if let Some(bias) = c.opt(3) {
        if c.rank(q) != 3 {
            return unsupported("a bias of packed queries, keys and values");
        }
        let width = c.shape(q)[2].clone();
        let rest = &c.shape(bias)[0].clone() - &width.scaled(2);
        let parts = c.split(bias, 0, &[width.clone(), width, rest])?;
        biases = [Some(parts[0]), Some(parts[1]), Some(parts[2])];
    }
    let own = |c: &mut Call<'_>, x: Tensor, bias: Option<Tensor>| -> OpResult {
        if c.rank(x) == 4 {
            return Ok(x);
        }
        let x = with_bias(c, x, bias)?;
        split_heads(c, x, heads)
    };
    let (mut k, mut v) = match (k, v) {
        (Some(k), Some(v)) => (own(c, k, biases[1])?, own(c, v, biases[2])?),
        (Some(kv), None) if c.rank(kv) == 5 => (unpacked(c, kv, 0)?, unpacked(c, kv, 1)?),
        (None, None) if c.rank(q) == 5 => (unpacked(c, q, 1)?, unpacked(c, q, 2)?),
        _ => return wrong("queries, keys and values are neither separate nor packed"),
    };
    q = if c.rank(q) == 5 { unpacked(c, q, 0)? } else { own(c, q, biases[0])? };
    let mut past = Dim::ZERO;
    if let (Some(past_k), Some(past_v)) = (c.opt(6), c.opt(7)) {
        past = c.shape(past_k).get(2).cloned().unwrap_or_default();
        k = c.concat(&[past_k, k], 2)?;
        v = c.concat(&[past_v, v], 2)?;
    }
    let mask = both_masks(c, c.opt(4), c.opt(5), (q, k))?;
    let scale = scale_of(c, q)?;
    let causal = c.flag("unidirectional", false).then_some(past);
    let y = attend(c, Heads { q, k, v, mask, scale, causal, empty_is_zero: false })?;
    Ok(vec![join_heads(c, y)?, k, v])
}

/// Of queries, keys and values side by side, `[n, s, 3·h·d]`.
fn packed_attention(
    c: &mut Call<'_>,
    packed: Tensor,
    mask: Option<Tensor>,
    past: Option<Tensor>,
    added: Option<Tensor>,
) -> OpResult<Vec<Tensor>> {
    if c.flag("do_rotary", false) {
        return unsupported("rotary positions in com.microsoft's Attention");
    }
    if c.rank(packed) != 3 {
        return wrong(format!("rank {}, expected 3", c.rank(packed)));
    }
    let heads = c.int("num_heads", 0);
    let sizes: Vec<Dim> = match c.ints_attr("qkv_hidden_sizes").filter(|s| !s.is_empty()) {
        Some(sizes) if sizes.len() == 3 => sizes.into_iter().map(Dim::from).collect(),
        Some(sizes) => return wrong(format!("qkv_hidden_sizes is {sizes:?}")),
        None => {
            let third = c.scope().floor_div(&c.shape(packed)[2], &3.into());
            vec![third; 3]
        }
    };
    let parts = c.split(packed, 2, &sizes)?;
    let mut split = Vec::new();
    for part in parts {
        split.push(split_heads(c, part, heads)?);
    }
    let (q, mut k, mut v) = (split[0], split[1], split[2]);
    let mut shift = Dim::ZERO;
    if let Some(past) = past {
        // [2, n, h, past, d]
        shift = c.shape(past).get(3).cloned().unwrap_or_default();
        let (past_k, past_v) = (c.pick(past, 0, Dim::ZERO)?, c.pick(past, 0, Dim::ONE)?);
        k = c.concat(&[past_k, k], 2)?;
        v = c.concat(&[past_v, v], 2)?;
    }
    let mask = both_masks(c, mask, added, (q, k))?;
    let scale = scale_of(c, q)?;
    let causal = c.flag("unidirectional", false).then_some(shift);
    let y = attend(c, Heads { q, k, v, mask, scale, causal, empty_is_zero: false })?;
    let mut out = vec![join_heads(c, y)?];
    if c.wants(1) {
        let pair = [c.unsqueeze(k, &[0])?, c.unsqueeze(v, &[0])?];
        out.push(c.concat(&pair, 0)?);
    }
    Ok(out)
}
