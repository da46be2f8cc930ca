//! Operators of onnxruntime's own domain, as its optimisers and exporters write them
//! (<https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md>).

use super::super::builder::{OpResult, Tensor, unsupported, wrong};
use super::super::call::Call;
use super::activation::{gelu, gelu_tanh, leaky, swish};
use super::attention::{Heads, attend, join_heads, rotary, split_heads};
use super::convolution::conv;
use super::matmul::{matmul, rsqrt};
use super::norm::{normalize, rms_norm};
use super::table::{Entry, microsoft};
use aot_ir::op::{BinaryOp, ReduceOp, UnaryOp};
use aot_ir::{DType, Dim, Op};

pub(super) const RULES: &[Entry] = &[
    microsoft("Gelu", |c| {
        let x = c.x(0)?;
        Ok(vec![gelu(c, x)?])
    }),
    microsoft("BiasGelu", |c| {
        let x = biased(c, 0, 1)?;
        Ok(vec![gelu(c, x)?])
    }),
    microsoft("FastGelu", |c| {
        let x = biased(c, 0, 1)?;
        Ok(vec![gelu_tanh(c, x)?])
    }),
    microsoft("QuickGelu", |c| {
        let x = c.x(0)?;
        let alpha = c.float("alpha", 1.702);
        Ok(vec![swish(c, x, alpha)?])
    }),
    microsoft("BiasSplitGelu", |c| {
        let x = biased(c, 0, 1)?;
        let axis = c.rank(x).saturating_sub(1);
        let half = c.scope().floor_div(&c.shape(x)[axis], &2.into());
        let parts = c.split(x, axis, &[half.clone(), half])?;
        let gate = gelu(c, parts[1])?;
        Ok(vec![c.product(parts[0], gate)?])
    }),
    microsoft("FusedMatMul", fused_matmul),
    microsoft("TransposeMatMul", fused_matmul),
    microsoft("FusedGemm", fused_gemm),
    microsoft("FusedConv", fused_conv),
    microsoft("SkipLayerNormalization", |c| skip_norm(c, true)),
    microsoft("SkipSimplifiedLayerNormalization", |c| skip_norm(c, false)),
    microsoft("SimplifiedLayerNormalization", simplified),
    // onnxruntime registers this one in ONNX's own domain too.
    super::table::onnx("SimplifiedLayerNormalization", simplified),
    microsoft("EmbedLayerNormalization", embed),
    microsoft("RotaryEmbedding", |c| {
        // Inputs: x, positions, cosines, sines.
        let (positions, caches) = (c.x(1)?, [c.x(2)?, c.x(3)?]);
        if c.rank(positions) != 2 {
            return unsupported("positions of rank other than 2");
        }
        Ok(vec![rotary(c, caches, Some(positions))?])
    }),
    microsoft("MultiHeadAttention", multi_head),
    microsoft("Attention", packed_attention),
    microsoft("MatMulIntegerToFloat", integer_to_float),
    microsoft("DynamicQuantizeMatMul", |c| {
        let (a, b, scale) = (c.x(0)?, c.x(1)?, c.x(2)?);
        let [a, a_scale, a_zero] = super::quantized::dynamic(c, a)?;
        let a = dequantized(c, a, Some(a_scale), Some(a_zero))?;
        let b = dequantized(c, b, Some(scale), c.opt(3))?;
        let out = matmul(c, a, b)?;
        with_bias(c, out, c.opt(4)).map(|t| vec![t])
    }),
    microsoft("DequantizeLinear", |c| relay(c, "DequantizeLinear")),
    microsoft("QuantizeLinear", |c| relay(c, "QuantizeLinear")),
];

/// ONNX's own rule of the same name.
fn relay(c: &mut Call<'_>, operator: &str) -> OpResult<Vec<Tensor>> {
    match super::find("", operator, super::LATEST_OPSET) {
        Some(rule) => rule(c),
        None => unsupported(format!("{operator} has no rule")),
    }
}

fn with_bias(c: &mut Call<'_>, x: Tensor, bias: Option<Tensor>) -> OpResult {
    match bias {
        Some(bias) => c.sum(x, bias),
        None => Ok(x),
    }
}

fn biased(c: &mut Call<'_>, x: usize, bias: usize) -> OpResult {
    let (x, bias) = (c.x(x)?, c.opt(bias));
    with_bias(c, x, bias)
}

/// `alpha · a' b'`, with the last two axes, or the first (batch) ones, exchanged.
fn fused_matmul(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (mut a, mut b) = (c.x(0)?, c.x(1)?);
    if c.flag("transBatchA", false) || c.flag("transBatchB", false) {
        return unsupported("transBatchA and transBatchB");
    }
    if c.flag("transA", false) && c.rank(a) > 1 {
        a = c.transpose_last(a)?;
    }
    if c.flag("transB", false) && c.rank(b) > 1 {
        b = c.transpose_last(b)?;
    }
    let out = matmul(c, a, b)?;
    let alpha = c.float("alpha", 1.0);
    Ok(vec![c.with(BinaryOp::Mul, out, alpha)?])
}

fn activated(c: &mut Call<'_>, x: Tensor, name: &str, alpha: f64, beta: f64) -> OpResult {
    match name {
        "" => Ok(x),
        "Relu" => c.unary(UnaryOp::Relu, x),
        "Tanh" => c.unary(UnaryOp::Tanh, x),
        "Sigmoid" => c.unary(UnaryOp::Sigmoid, x),
        "LeakyRelu" => {
            let slope = c.scalar_like(alpha, x);
            leaky(c, x, slope)
        }
        "HardSigmoid" => super::activation::hard_sigmoid(c, x, alpha, beta),
        "Clip" => {
            let x = c.with(BinaryOp::Max, x, alpha)?;
            c.with(BinaryOp::Min, x, beta)
        }
        other => unsupported(format!("activation {other}")),
    }
}

fn fused_gemm(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let out = relay(c, "Gemm")?[0];
    let (name, alpha) = (c.text("activation", ""), c.float("activation_alpha", 0.01));
    let beta = c.float("activation_beta", 0.5);
    Ok(vec![activated(c, out, &name, alpha, beta)?])
}

fn fused_conv(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (x, w, bias) = (c.x(0)?, c.x(1)?, c.opt(2));
    let mut out = conv(c, x, w, bias)?;
    if let Some(residual) = c.opt(3) {
        out = c.sum(out, residual)?;
    }
    let name = c.text("activation", "");
    let parameters = c.floats_attr("activation_params").unwrap_or_default();
    let at = |i: usize, default: f64| parameters.get(i).map_or(default, |&v| f64::from(v));
    Ok(vec![activated(c, out, &name, at(0, 0.01), at(1, 0.5))?])
}

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

/// Inputs: ids, segments, word, position and segment tables, gamma, beta, mask, positions.
fn embed(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (ids, segments) = (c.x(0)?, c.opt(1));
    let (words, places, kinds) = (c.x(2)?, c.x(3)?, c.opt(4));
    let (gamma, beta, positions) = (c.x(5)?, c.x(6)?, c.opt(8));
    if c.wants(1) {
        return unsupported("the mask index as an output");
    }
    let mut sum = c.gather(words, ids, 0)?;
    let positions = match positions {
        Some(positions) => positions,
        None => {
            let last = c.rank(ids).saturating_sub(1);
            let shape = [Dim::ONE, c.shape(ids)[last].clone()];
            super::generate::coordinates(c, &shape, 1, DType::I64)?
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
    Ok(vec![y, y, sum])
}

/// A key padding mask `[n, t]` (1 keeps), or one of rank 3 or 4, as a `Bool` mask over `[n, h, s, t]`.
fn keep_mask(c: &mut Call<'_>, mask: Tensor) -> OpResult {
    let mask = c.cast(mask, DType::Bool)?;
    match c.rank(mask) {
        2 => c.unsqueeze(mask, &[1, 2]),
        3 => c.unsqueeze(mask, &[1]),
        4 => Ok(mask),
        _ => unsupported("masks by sequence length"),
    }
}

/// A mask of either kind: what is kept, and what is added to the scores.
fn both_masks(
    c: &mut Call<'_>,
    keep: Option<Tensor>,
    added: Option<Tensor>,
) -> OpResult<Option<Tensor>> {
    let keep = match keep {
        Some(mask) => Some(keep_mask(c, mask)?),
        None => None,
    };
    let Some(keep) = keep else { return Ok(added) };
    // onnxruntime gives what is masked out its filter value, not -∞.
    let x = c.x(0)?;
    let added = match added {
        Some(added) => added,
        None => c.scalar_like(0.0, x),
    };
    let filter = c.float("mask_filter_value", -10000.0);
    let filter = c.scalar_like(filter, added);
    Ok(Some(c.select(keep, added, filter)?))
}

fn scale_of(c: &Call<'_>, q: Tensor) -> OpResult<f64> {
    match c.shape(q).last().and_then(Dim::as_const) {
        _ if c.float("scale", 0.0) != 0.0 => Ok(c.float("scale", 0.0)),
        Some(size) if size > 0 => Ok(1.0 / (size as f64).sqrt()),
        _ => unsupported("a head size that is no constant"),
    }
}

/// Inputs: q, k, v, bias, key padding mask, added bias, past key, past value.
fn multi_head(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let q = c.x(0)?;
    let (Some(mut k), Some(mut v)) = (c.opt(1), c.opt(2)) else {
        return unsupported("queries, keys and values packed in one tensor");
    };
    let heads = c.int("num_heads", 0);
    let mut q = q;
    if let Some(bias) = c.opt(3) {
        let sizes: Vec<Dim> =
            [q, k, v].iter().filter_map(|&t| c.shape(t).last().cloned()).collect();
        let parts = c.split(bias, 0, &sizes)?;
        if let [a, b, d] = parts[..] {
            (q, k, v) = (c.sum(q, a)?, c.sum(k, b)?, c.sum(v, d)?);
        }
    }
    q = split_heads(c, q, heads)?;
    if c.rank(k) == 3 {
        k = split_heads(c, k, heads)?;
        v = split_heads(c, v, heads)?;
    }
    let mut past = Dim::ZERO;
    if let (Some(past_k), Some(past_v)) = (c.opt(6), c.opt(7)) {
        past = c.shape(past_k).get(2).cloned().unwrap_or_default();
        k = c.concat(&[past_k, k], 2)?;
        v = c.concat(&[past_v, v], 2)?;
    }
    let (keep, added) = (c.opt(4), c.opt(5));
    let mask = both_masks(c, keep, added)?;
    let scale = scale_of(c, q)?;
    let causal = c.flag("unidirectional", false).then_some(past);
    let y = attend(c, Heads { q, k, v, mask, scale, causal })?;
    Ok(vec![join_heads(c, y)?, k, v])
}

/// Inputs: x, weights `[in, 3·h·d]`, bias, mask, past, added bias.
fn packed_attention(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (x, weights, bias) = (c.x(0)?, c.x(1)?, c.opt(2));
    if c.opt(4).is_some() {
        return unsupported("a past state in com.microsoft's Attention");
    }
    let heads = c.int("num_heads", 0);
    let packed = matmul(c, x, weights)?;
    let packed = with_bias(c, packed, bias)?;
    let sizes: Vec<Dim> = match c.ints_attr("qkv_hidden_sizes") {
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
    let (q, k, v) = (split[0], split[1], split[2]);
    let (keep, added) = (c.opt(3), c.opt(5));
    let mask = both_masks(c, keep, added)?;
    let scale = scale_of(c, q)?;
    let causal = c.flag("unidirectional", false).then_some(Dim::ZERO);
    let y = attend(c, Heads { q, k, v, mask, scale, causal })?;
    Ok(vec![join_heads(c, y)?])
}

/// `(x - zero) · scale` in f32; scale and zero per tensor or per column.
fn dequantized(
    c: &mut Call<'_>,
    x: Tensor,
    scale: Option<Tensor>,
    zero: Option<Tensor>,
) -> OpResult {
    let mut x = c.cast(x, DType::F32)?;
    if let Some(zero) = zero {
        let zero = c.cast(zero, DType::F32)?;
        x = c.difference(x, zero)?;
    }
    match scale {
        Some(scale) => c.product(x, scale),
        None => Ok(x),
    }
}

/// Inputs: a, b, a scale, b scale, a zero, b zero, bias.
fn integer_to_float(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (a, b, a_scale, b_scale) = (c.x(0)?, c.x(1)?, c.x(2)?, c.x(3)?);
    let (a_zero, b_zero, bias) = (c.opt(4), c.opt(5), c.opt(6));
    let a = dequantized(c, a, None, a_zero)?;
    let b = dequantized(c, b, None, b_zero)?;
    let out = c.op(Op::MatMul, &[a, b])?;
    let scale = c.product(a_scale, b_scale)?;
    let out = c.product(out, scale)?;
    Ok(vec![with_bias(c, out, bias)?])
}
