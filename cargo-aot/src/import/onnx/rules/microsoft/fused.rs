//! Products, convolutions and activations with what follows them.

use super::super::super::builder::{OpResult, Tensor, unsupported};
use super::super::super::call::Call;
use super::super::activation::{gelu, gelu_tanh, hard_sigmoid, leaky, softmax, swish};
use super::super::convolution::conv;
use super::super::matmul::matmul;
use super::super::table::{Entry, microsoft};
use super::{relay, with_bias};
use aot_ir::op::{BinaryOp, UnaryOp};

pub(in super::super) const RULES: &[Entry] = &[
    microsoft("Gelu", |c| {
        let x = c.x(0)?;
        Ok(vec![gelu(c, x)?])
    }),
    microsoft("BiasGelu", |c| {
        let x = biased(c)?;
        Ok(vec![gelu(c, x)?])
    }),
    microsoft("FastGelu", |c| {
        let x = biased(c)?;
        Ok(vec![gelu_tanh(c, x)?])
    }),
    microsoft("QuickGelu", |c| {
        let (x, alpha) = (c.x(0)?, c.float("alpha", 1.702));
        Ok(vec![swish(c, x, alpha)?])
    }),
    microsoft("BiasSplitGelu", |c| {
        let x = biased(c)?;
        let axis = c.rank(x).saturating_sub(1);
        let half = c.scope().floor_div(&c.shape(x)[axis], &2.into());
        let parts = c.split(x, axis, &[half.clone(), half])?;
        let gate = gelu(c, parts[1])?;
        Ok(vec![c.product(parts[0], gate)?])
    }),
    microsoft("BiasAdd", |c| {
        let (x, skip) = (biased(c)?, c.x(2)?);
        Ok(vec![c.sum(x, skip)?])
    }),
    microsoft("BiasSoftmax", |c| {
        let x = biased(c)?;
        let axis = c.axis(x, 1)?;
        if axis + 1 != c.rank(x) {
            return unsupported("an axis other than the last");
        }
        Ok(vec![softmax(c, x, axis)?])
    }),
    microsoft("FusedMatMul", fused_matmul),
    microsoft("TransposeMatMul", fused_matmul),
    microsoft("GemmFastGelu", |c| {
        let (x, w) = (c.x(0)?, c.x(1)?);
        let x = matmul(c, x, w)?;
        let x = with_bias(c, x, c.opt(2))?;
        Ok(vec![gelu_tanh(c, x)?])
    }),
    microsoft("FusedGemm", |c| {
        let out = relay(c, "Gemm")?[0];
        let (name, alpha) = (c.text("activation", ""), c.float("activation_alpha", 0.01));
        let beta = c.float("activation_beta", 0.5);
        Ok(vec![activated(c, out, &name, alpha, beta)?])
    }),
    microsoft("FusedConv", |c| {
        let (x, w, bias) = (c.x(0)?, c.x(1)?, c.opt(2));
        let mut out = conv(c, x, w, bias)?;
        if let Some(residual) = c.opt(3) {
            out = c.sum(out, residual)?;
        }
        Ok(vec![conv_activation(c, out)?])
    }),
];

/// Input 0 plus input 1, if that is there.
fn biased(c: &mut Call<'_>) -> OpResult {
    let (x, bias) = (c.x(0)?, c.opt(1));
    with_bias(c, x, bias)
}

/// `alpha · a' b'`, with the last two axes, or the first and the batch ones, exchanged.
fn fused_matmul(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let mut sides = Vec::new();
    for (n, batch, last) in [(0, "transBatchA", "transA"), (1, "transBatchB", "transB")] {
        let mut x = c.x(n)?;
        let rank = c.rank(x);
        if c.flag(batch, false) && rank > 2 {
            // [m, b.., k] → [b.., m, k]
            let order: Vec<usize> = (1..rank - 1).chain([0, rank - 1]).collect();
            x = c.transpose(x, &order)?;
        }
        if c.flag(last, false) && rank > 1 {
            x = c.transpose_last(x)?;
        }
        sides.push(x);
    }
    let out = matmul(c, sides[0], sides[1])?;
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
        "HardSigmoid" => hard_sigmoid(c, x, alpha, beta),
        "Clip" => {
            let x = c.with(BinaryOp::Max, x, alpha)?;
            c.with(BinaryOp::Min, x, beta)
        }
        other => unsupported(format!("activation {other}")),
    }
}

/// The activation that a fused convolution names.
pub(super) fn conv_activation(c: &mut Call<'_>, x: Tensor) -> OpResult {
    let name = c.text("activation", "");
    let parameters = c.floats_attr("activation_params").unwrap_or_default();
    let at = |i: usize, default: f64| parameters.get(i).map_or(default, |&v| f64::from(v));
    activated(c, x, &name, at(0, 0.01), at(1, 0.5))
}
