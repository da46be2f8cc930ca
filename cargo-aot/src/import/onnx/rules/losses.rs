//! Losses, forward.

use super::super::builder::{OpResult, Tensor, wrong};
use super::super::call::Call;
use super::table::{Entry, onnx};
use aot_ir::op::{BinaryOp, ReduceOp, UnaryOp};
use aot_ir::{DType, Op};

pub(super) const RULES: &[Entry] = &[
    onnx("NegativeLogLikelihoodLoss", |c| {
        let x = c.x(0)?;
        Ok(vec![likelihood(c, x)?])
    }),
    onnx("SoftmaxCrossEntropyLoss", |c| {
        let x = c.x(0)?;
        if c.rank(x) < 2 {
            return wrong(format!("rank {}, expected at least 2", c.rank(x)));
        }
        let log = c.op(Op::Softmax { axis: 1, log: true }, &[x])?;
        Ok(vec![likelihood(c, log)?, log])
    }),
];

/// What classes `input 1 [n, ..]` cost by their log-probabilities `x [n, classes, ..]`, weighted by
/// `input 2 [classes]`; the class `ignore_index`, which need not exist, costs nothing and has no weight.
fn likelihood(c: &mut Call<'_>, x: Tensor) -> OpResult {
    let (target, weight) = (c.x(1)?, c.opt(2));
    if c.rank(x) < 2 || c.rank(target) != c.rank(x) - 1 {
        let ranks = (c.rank(target), c.rank(x));
        return wrong(format!("labels have rank {}, scores {}", ranks.0, ranks.1));
    }
    let reduction = c.text("reduction", "mean");
    if !matches!(reduction.as_str(), "none" | "sum" | "mean") {
        return wrong(format!("reduction is `{reduction}`"));
    }
    let mut target = c.cast(target, DType::I64)?;
    let zero = c.scalar_like(0.0, x);
    let counts = match c.int_opt("ignore_index") {
        None => None,
        Some(ignored) => {
            let ignored = c.scalar(ignored as f64, DType::I64);
            let counts = c.binary(BinaryOp::Ne, target, ignored)?;
            let first = c.scalar(0.0, DType::I64);
            target = c.select(counts, target, first)?;
            Some(counts)
        }
    };
    let places = c.unsqueeze(target, &[1])?;
    let picked = c.gather_elements(x, places, 1)?;
    let picked = c.squeeze(picked, &[1])?;
    let mut loss = c.unary(UnaryOp::Neg, picked)?;
    let mut weights = match weight {
        Some(weight) => Some(c.gather(weight, target, 0)?),
        None => None,
    };
    if let Some(given) = weights {
        loss = c.product(loss, given)?;
    }
    if let Some(counts) = counts {
        loss = c.select(counts, loss, zero)?;
        let given = match weights {
            Some(given) => given,
            None => c.scalar_like(1.0, x),
        };
        weights = Some(c.select(counts, given, zero)?);
    }
    let axes: Vec<usize> = (0..c.rank(loss)).collect();
    match (reduction.as_str(), weights) {
        ("none", _) => Ok(loss),
        ("mean", Some(weights)) => {
            let total = c.reduce(ReduceOp::Sum, loss, &axes, false)?;
            let weights = c.reduce(ReduceOp::Sum, weights, &axes, false)?;
            c.quotient(total, weights)
        }
        ("mean", None) => c.reduce(ReduceOp::Mean, loss, &axes, false),
        _ => c.reduce(ReduceOp::Sum, loss, &axes, false),
    }
}
