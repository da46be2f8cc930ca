//! Attention and rotary position embeddings.

use super::super::builder::{OpResult, Tensor, unsupported, wrong};
use super::super::call::Call;
use super::activation::softmax;
use super::table::{Entry, onnx};
use aot_ir::dim::Cmp;
use aot_ir::op::{AttentionAttrs, BinaryOp, ReduceOp, UnaryOp};
use aot_ir::{DType, Dim, Op, Scalar};

pub(super) const RULES: &[Entry] = &[
    onnx("Attention", attention),
    onnx("RotaryEmbedding", |c| {
        let (x, caches, positions) = (c.x(0)?, [c.x(1)?, c.x(2)?], c.opt(3));
        let rotation = Rotation::of(c);
        Ok(vec![rotate(c, &rotation, x, caches, positions)?])
    }),
];

/// `[n, s, h·d]` as `[n, h, s, d]`.
pub(super) fn split_heads(c: &mut Call<'_>, x: Tensor, heads: i64) -> OpResult {
    let [n, s, width] = <[Dim; 3]>::try_from(c.shape(x).to_vec())
        .or_else(|shape| wrong(format!("rank {} where 3 is needed", shape.len())))?;
    if heads < 1 {
        return wrong("the number of heads is missing");
    }
    let size = c.scope().floor_div(&width, &heads.into());
    let x = c.reshape(x, &[n, s, heads.into(), size])?;
    c.transpose(x, &[0, 2, 1, 3])
}

/// `[n, h, s, d]` as `[n, s, h·d]`.
pub(super) fn join_heads(c: &mut Call<'_>, x: Tensor) -> OpResult {
    let x = c.transpose(x, &[0, 2, 1, 3])?;
    let [n, s, h, d] = <[Dim; 4]>::try_from(c.shape(x).to_vec())
        .or_else(|shape| wrong(format!("rank {} where 4 is needed", shape.len())))?;
    c.reshape(x, &[n, s, &h * &d])
}

/// What attention computes, over `[n, h, s, d]`.
pub(super) struct Heads {
    pub(super) q: Tensor,
    pub(super) k: Tensor,
    pub(super) v: Tensor,
    /// Broadcasts to `[n, h, s, t]`: added, or false excludes.
    pub(super) mask: Option<Tensor>,
    pub(super) scale: f64,
    /// Row `i` sees columns up to `i` plus this.
    pub(super) causal: Option<Dim>,
    /// A row that sees nothing gives zeros, else NaN.
    pub(super) empty_is_zero: bool,
}

/// `softmax(scale · q kᵀ + mask) v` with heads of `k` and `v` shared by equal groups of `q`'s.
pub(super) fn attend(c: &mut Call<'_>, heads: Heads) -> OpResult {
    let Heads { mut q, mut k, mut v, mut mask, scale, causal, empty_is_zero } = heads;
    let out = c.shape(q).to_vec();
    let (hq, hk) = (c.shape(q)[1].clone(), c.shape(k)[1].clone());
    let grouped = !c.scope().proves_eq(&hq, &hk) && !hk.is(1);
    let (s, t) = (c.shape(q)[2].clone(), c.shape(k)[2].clone());
    let causal_op = causal.as_ref().is_some_and(|o| c.scope().proves_eq(o, &(&t - &s)));
    if let (Some(shift), false) = (&causal, causal_op) {
        let seen = causal_mask(c, &s, &t, shift)?;
        mask = Some(combine(c, mask, seen)?);
    }
    if grouped {
        let group = c.scope().floor_div(&hq, &hk);
        let split = |x: &[Dim], h: &Dim, g: Dim| {
            vec![x[0].clone(), h.clone(), g, x[2].clone(), x[3].clone()]
        };
        let shape = split(c.shape(q), &hk, group.clone());
        q = c.reshape(q, &shape)?;
        k = c.unsqueeze(k, &[2])?;
        v = c.unsqueeze(v, &[2])?;
        if let Some(m) = mask {
            let full = c.shape(m).to_vec();
            let per_head = full.len() >= 3 && !full[full.len() - 3].is(1);
            mask = Some(if per_head {
                let mut m4 = full;
                while m4.len() < 4 {
                    m4.insert(0, Dim::ONE);
                }
                c.reshape(m, &split(&m4, &hk, group))?
            } else if full.len() >= 3 {
                c.unsqueeze(m, &[full.len() - 3])?
            } else {
                m
            });
        }
    }
    let attrs = AttentionAttrs {
        scale: Scalar::Float(scale),
        causal: causal_op,
        masked_row_is_zero: empty_is_zero,
        has_mask: mask.is_some(),
    };
    let mut operands = vec![q, k, v];
    if let Some(m) = mask {
        let m = if c.dtype(m) == DType::Bool { m } else { c.cast_like(m, q)? };
        operands.push(m);
    }
    let y = c.op(Op::Attention(attrs), &operands)?;
    let mut shape = out;
    if let (Some(last), Some(size)) = (shape.last_mut(), c.shape(v).last()) {
        *last = size.clone();
    }
    c.reshape(y, &shape)
}

/// `Bool [s, t]`: whether column `j` is at most row `i` plus a shift.
fn causal_mask(c: &mut Call<'_>, s: &Dim, t: &Dim, shift: &Dim) -> OpResult {
    let square = [s.clone(), t.clone()];
    let row = super::generate::coordinates(c, &square, 0, DType::I64)?;
    let column = super::generate::coordinates(c, &square, 1, DType::I64)?;
    let shift = c.dims(std::slice::from_ref(shift));
    let row = c.sum(row, shift)?;
    c.binary(BinaryOp::Le, column, row)
}

/// A mask that also excludes where `seen` is false.
fn combine(c: &mut Call<'_>, mask: Option<Tensor>, seen: Tensor) -> OpResult {
    match mask {
        None => Ok(seen),
        Some(m) if c.dtype(m) == DType::Bool => c.binary(BinaryOp::And, m, seen),
        Some(m) => {
            let never = c.scalar_like(f64::NEG_INFINITY, m);
            c.select(seen, m, never)
        }
    }
}

fn attention(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (mut q, mut k, mut v) = (c.x(0)?, c.x(1)?, c.x(2)?);
    let flat = c.rank(q) == 3;
    let (q_heads, kv_heads) = (c.int("q_num_heads", 0), c.int("kv_num_heads", 0));
    if flat {
        q = split_heads(c, q, q_heads)?;
        k = split_heads(c, k, kv_heads)?;
        v = split_heads(c, v, kv_heads)?;
    }
    if [q, k, v].iter().any(|&t| c.rank(t) != 4) {
        return wrong("queries, keys and values have to have rank 3 or 4");
    }
    let mut past = Dim::ZERO;
    if let (Some(past_k), Some(past_v)) = (c.opt(4), c.opt(5)) {
        past = c.shape(past_k).get(2).cloned().unwrap_or_default();
        k = c.concat(&[past_k, k], 2)?;
        v = c.concat(&[past_v, v], 2)?;
    }
    let t = c.shape(k)[2].clone();
    let mut mask = c.opt(3);
    if let Some(m) = mask {
        mask = Some(widen_mask(c, m, &t)?);
    }
    if let Some(lengths) = c.opt(6) {
        let batch = c.shape(lengths).first().cloned().unwrap_or(Dim::ONE);
        let lengths = c.cast(lengths, DType::I64)?;
        let lengths = c.reshape(lengths, &[batch, Dim::ONE, Dim::ONE, Dim::ONE])?;
        let row = [Dim::ONE, Dim::ONE, Dim::ONE, t.clone()];
        let at = super::generate::coordinates(c, &row, 3, DType::I64)?;
        let seen = c.binary(BinaryOp::Lt, at, lengths)?;
        mask = Some(combine(c, mask, seen)?);
    }
    let size = c.shape(q)[3].as_const();
    let scale = match (c.has("scale"), size) {
        (true, _) => c.float("scale", 1.0),
        (false, Some(size)) if size > 0 => 1.0 / (size as f64).sqrt(),
        _ => return unsupported("a head size that is no constant"),
    };
    let causal = c.flag("is_causal", false).then_some(past);
    let softcap = c.float("softcap", 0.0);
    // As onnxruntime has it.
    let heads = Heads { q, k, v, mask, scale, causal, empty_is_zero: true };
    let (mut y, scores) = if softcap > 0.0 || c.wants(3) {
        let mode = c.int("qk_matmul_output_mode", 0);
        spelled_out(c, heads, Capped { softcap, sink: None, mode })?
    } else {
        (attend(c, heads)?, None)
    };
    if flat {
        y = join_heads(c, y)?;
    }
    let mut out = vec![y, k, v];
    out.extend(scores);
    Ok(out)
}

/// A mask shorter than the keys excludes the rest.
fn widen_mask(c: &mut Call<'_>, m: Tensor, t: &Dim) -> OpResult {
    let rank = c.rank(m);
    let Some(last) = rank.checked_sub(1).map(|i| c.shape(m)[i].clone()) else { return Ok(m) };
    if last.is(1) || c.scope().decide(Cmp::Lt, &last, t) != Some(true) {
        return Ok(m);
    }
    let (low, mut high) = (vec![Dim::ZERO; rank], vec![Dim::ZERO; rank]);
    high[rank - 1] = t - &last;
    let fill = if c.dtype(m) == DType::Bool {
        Scalar::Bool(false)
    } else {
        Scalar::Float(f64::NEG_INFINITY)
    };
    c.pad(m, &low, &high, aot_ir::op::PadMode::Constant(fill))
}

/// What only attention in steps can do.
pub(super) struct Capped {
    /// Scores are `softcap · tanh(score / softcap)`, unless it is 0.
    pub(super) softcap: f64,
    /// `[1, h, 1, 1]`: one more score per row that takes its share of the softmax and gives nothing.
    pub(super) sink: Option<Tensor>,
    /// Which scores are the second result: 0 products, 1 masked, 2 capped, 3 softmax.
    pub(super) mode: i64,
}

/// Attention in steps, where scores are capped or asked for.
pub(super) fn spelled_out(
    c: &mut Call<'_>,
    heads: Heads,
    Capped { softcap, sink, mode }: Capped,
) -> OpResult<(Tensor, Option<Tensor>)> {
    let Heads { q, mut k, mut v, mut mask, scale, causal, empty_is_zero } = heads;
    let (hq, hk) = (c.shape(q)[1].clone(), c.shape(k)[1].clone());
    if !c.scope().proves_eq(&hq, &hk) {
        let group = c.scope().floor_div(&hq, &hk);
        for x in [&mut k, &mut v] {
            let mut shape = c.shape(*x).to_vec();
            shape.insert(2, group.clone());
            let wide = c.unsqueeze(*x, &[2])?;
            let wide = c.expand(wide, &shape)?;
            shape.remove(2);
            shape[1] = hq.clone();
            *x = c.reshape(wide, &shape)?;
        }
    }
    let (s, t) = (c.shape(q)[2].clone(), c.shape(k)[2].clone());
    if let Some(shift) = &causal {
        let seen = causal_mask(c, &s, &t, shift)?;
        mask = Some(combine(c, mask, seen)?);
    }
    let turned = c.transpose_last(k)?;
    let scores = c.op(Op::MatMul, &[q, turned])?;
    let mut scores = c.with(BinaryOp::Mul, scores, scale)?;
    let mut asked = scores;
    if let Some(m) = mask {
        scores = if c.dtype(m) == DType::Bool {
            let never = c.scalar_like(f64::NEG_INFINITY, scores);
            c.select(m, scores, never)?
        } else {
            let m = c.cast_like(m, scores)?;
            c.sum(scores, m)?
        };
    }
    if mode == 1 {
        asked = scores;
    }
    if softcap > 0.0 {
        scores = c.with(BinaryOp::Div, scores, softcap)?;
        scores = c.unary(UnaryOp::Tanh, scores)?;
        scores = c.with(BinaryOp::Mul, scores, softcap)?;
    }
    if mode == 2 {
        asked = scores;
    }
    if let Some(sink) = sink {
        let mut shape = c.shape(scores).to_vec();
        shape[3] = Dim::ONE;
        let sink = c.cast_like(sink, scores)?;
        let sink = c.expand(sink, &shape)?;
        scores = c.concat(&[scores, sink], 3)?;
    }
    let mut weights = softmax(c, scores, 3)?;
    if empty_is_zero && mask.is_some() {
        let best = c.reduce(ReduceOp::Max, scores, &[3], true)?;
        let empty = c.unary(UnaryOp::IsNegInf, best)?;
        let zero = c.scalar_like(0.0, weights);
        weights = c.select(empty, zero, weights)?;
    }
    if sink.is_some() {
        weights = c.slice_axis(weights, 3, Dim::ZERO, t.clone(), 1)?;
    }
    if mode == 3 {
        asked = weights;
    }
    let y = c.op(Op::MatMul, &[weights, v])?;
    Ok((y, Some(asked)))
}

/// How features are rotated.
pub(super) struct Rotation {
    /// Number of heads in a tensor of rank 3, 0 where the caches' width says it.
    pub(super) heads: i64,
    /// How many features of a head are, 0 for all.
    pub(super) turned: i64,
    /// Pairs are neighbours, or else halves apart.
    pub(super) interleaved: bool,
}

impl Rotation {
    /// As the node's attributes say.
    pub(super) fn of(c: &Call<'_>) -> Self {
        Self {
            heads: c.int("num_heads", 0),
            turned: c.int("rotary_embedding_dim", 0),
            interleaved: c.flag("interleaved", false),
        }
    }
}

/// Rotates pairs of features of `x`, `[n, s, h·d]` or `[n, h, s, d]`, by angles per position. `caches` hold
/// cosines and sines, either `[positions, d/2]` looked up by `positions [n, s]`, or `[n, s, d/2]`.
pub(super) fn rotate(
    c: &mut Call<'_>,
    rotation: &Rotation,
    x: Tensor,
    caches: [Tensor; 2],
    positions: Option<Tensor>,
) -> OpResult {
    let original = c.shape(x).to_vec();
    let flat = original.len() == 3;
    let x = if flat {
        // Without a number of heads, the caches' width says how wide one is.
        let heads = match (rotation.heads, c.shape(caches[0]).last(), &original[2]) {
            (0, Some(half), width) => {
                let size = half.scaled(2);
                let positive = c.scope().proves_nonneg(&(&size - 1));
                if positive { c.scope().floor_div(width, &size).as_const().unwrap_or(0) } else { 0 }
            }
            (heads, ..) => heads,
        };
        split_heads(c, x, heads)?
    } else {
        x
    };
    let [n, _, s, size] = <[Dim; 4]>::try_from(c.shape(x).to_vec())
        .or_else(|shape| wrong(format!("rank {} where 3 or 4 is needed", shape.len())))?;
    let turned = match rotation.turned {
        0 => size.clone(),
        d => Dim::from(d),
    };
    let half = c.scope().floor_div(&turned, &2.into());
    let mut angles = Vec::new();
    for cache in caches {
        let mut cache = cache;
        if let Some(positions) = positions {
            cache = c.gather(cache, positions, 0)?;
        }
        // [n, 1, s, d/2]
        let lead = if c.rank(cache) == 3 { c.shape(cache)[0].clone() } else { n.clone() };
        angles.push(c.reshape(cache, &[lead, Dim::ONE, s.clone(), half.clone()])?);
    }
    let (cos, sin) = (angles[0], angles[1]);
    let rotated = c.slice_axis(x, 3, Dim::ZERO, turned.clone(), 1)?;
    let interleaved = rotation.interleaved;
    let (a, b) = if interleaved {
        (
            c.slice_axis(rotated, 3, Dim::ZERO, half.clone(), 2)?,
            c.slice_axis(rotated, 3, Dim::ONE, half.clone(), 2)?,
        )
    } else {
        (
            c.slice_axis(rotated, 3, Dim::ZERO, half.clone(), 1)?,
            c.slice_axis(rotated, 3, half.clone(), half.clone(), 1)?,
        )
    };
    let (ca, sb) = (c.product(cos, a)?, c.product(sin, b)?);
    let (sa, cb) = (c.product(sin, a)?, c.product(cos, b)?);
    let (real, imaginary) = (c.difference(ca, sb)?, c.sum(sa, cb)?);
    let rotated = if interleaved {
        let pair = [c.unsqueeze(real, &[4])?, c.unsqueeze(imaginary, &[4])?];
        let both = c.concat(&pair, 4)?;
        let mut shape = c.shape(x).to_vec();
        shape[3] = turned.clone();
        c.reshape(both, &shape)?
    } else {
        c.concat(&[real, imaginary], 3)?
    };
    let rest = &size - &turned;
    let y = if rest.is(0) {
        rotated
    } else {
        let rest = c.slice_axis(x, 3, turned, rest, 1)?;
        c.concat(&[rotated, rest], 3)?
    };
    if flat {
        let y = c.transpose(y, &[0, 2, 1, 3])?;
        return c.reshape(y, &original);
    }
    Ok(y)
}
