//! Rules for arithmetic.

use super::super::matching::{is, node, scalar, unary as unary_of};
use super::super::rewriter::Candidate;
use aot_ir::op::{BinaryOp, UnaryOp};
use aot_ir::{Graph, GraphError, Op, Scalar, ValueId};

type Result = std::result::Result<Option<ValueId>, GraphError>;

/// Whether broadcasting `other` to `x` leaves the extents of `x` as they are.
fn keeps_shape(g: &Graph, x: ValueId, other: ValueId) -> bool {
    let (x, other) = (&g[x].shape, &g[other].shape);
    other.len() <= x.len()
        && other.iter().zip(&x[x.len() - other.len()..]).all(|(o, x)| o.is(1) || o == x)
}

pub(super) fn binary(g: &mut Graph, op: BinaryOp, c: Candidate<'_>) -> Result {
    let [a, b] = *c.inputs else { return Ok(None) };
    let neutral = |g: &Graph, x: ValueId, other: ValueId, number: f64| {
        is(g, other, number) && keeps_shape(g, x, other)
    };
    let flag = |g: &Graph, v: ValueId| match scalar(g, v) {
        Some(Scalar::Bool(b)) => Some(b),
        _ => None,
    };
    match op {
        BinaryOp::Add if neutral(g, a, b, 0.0) => return Ok(Some(a)),
        BinaryOp::Add if neutral(g, b, a, 0.0) => return Ok(Some(b)),
        BinaryOp::Sub if neutral(g, a, b, 0.0) => return Ok(Some(a)),
        BinaryOp::Mul if neutral(g, a, b, 1.0) => return Ok(Some(a)),
        BinaryOp::Mul if neutral(g, b, a, 1.0) => return Ok(Some(b)),
        BinaryOp::Div | BinaryOp::Pow if neutral(g, a, b, 1.0) => return Ok(Some(a)),
        BinaryOp::And | BinaryOp::Or => {
            let keeps = op == BinaryOp::And;
            for (x, other) in [(a, b), (b, a)] {
                if flag(g, other) == Some(keeps) && keeps_shape(g, x, other) {
                    return Ok(Some(x));
                }
            }
        }
        BinaryOp::Sub if is(g, a, 0.0) && keeps_shape(g, b, a) => {
            return g.add1(Op::Unary(UnaryOp::Neg), &[b], c.name).map(Some);
        }
        BinaryOp::Div if is(g, a, 1.0) && keeps_shape(g, b, a) && g[b].dtype.is_float() => {
            return g.add1(Op::Unary(UnaryOp::Reciprocal), &[b], c.name).map(Some);
        }
        BinaryOp::Pow if g[a].dtype.is_float() && keeps_shape(g, a, b) => {
            return power(g, a, b, c.name);
        }
        BinaryOp::Add => {
            if let Some(x) = unary_of(g, b, UnaryOp::Neg) {
                return g.add1(Op::Binary(BinaryOp::Sub), &[a, x], c.name).map(Some);
            }
        }
        BinaryOp::Mul => return product(g, a, b, c.name),
        _ => {}
    }
    Ok(None)
}

/// Small constant exponents without a power.
fn power(g: &mut Graph, x: ValueId, exponent: ValueId, name: &str) -> Result {
    let mul = Op::Binary(BinaryOp::Mul);
    let Some(exponent) = scalar(g, exponent).map(Scalar::as_f64) else { return Ok(None) };
    let value = if exponent == 2.0 {
        g.add1(mul, &[x, x], name)?
    } else if exponent == 3.0 {
        let square = g.add1(mul.clone(), &[x, x], name)?;
        g.add1(mul, &[square, x], name)?
    } else if exponent == 0.5 {
        g.add1(Op::Unary(UnaryOp::Sqrt), &[x], name)?
    } else if exponent == -1.0 {
        g.add1(Op::Unary(UnaryOp::Reciprocal), &[x], name)?
    } else if exponent == -0.5 {
        let root = g.add1(Op::Unary(UnaryOp::Sqrt), &[x], name)?;
        g.add1(Op::Unary(UnaryOp::Reciprocal), &[root], name)?
    } else {
        return Ok(None);
    };
    Ok(Some(value))
}

/// `x * (1 / y)` becomes `x / y`, except that the normalisation's reciprocal root stays as it is.
fn product(g: &mut Graph, a: ValueId, b: ValueId, name: &str) -> Result {
    for (x, other) in [(a, b), (b, a)] {
        let Some(y) = unary_of(g, other, UnaryOp::Reciprocal) else { continue };
        let root = node(g, y).is_some_and(|n| n.op == Op::Unary(UnaryOp::Sqrt));
        if !root && keeps_shape(g, x, y) && g[x].shape.len() >= g[y].shape.len() {
            return g.add1(Op::Binary(BinaryOp::Div), &[x, y], name).map(Some);
        }
    }
    Ok(None)
}

pub(super) fn unary(g: &mut Graph, op: UnaryOp, c: Candidate<'_>) -> Result {
    let [x] = *c.inputs else { return Ok(None) };
    let Some(Op::Unary(inner)) = node(g, x).map(|n| n.op.clone()) else {
        return sigmoid(g, op, x, c.name);
    };
    let operand = node(g, x).map(|n| n.inputs[0]);
    Ok(match (op, inner) {
        (UnaryOp::Neg, UnaryOp::Neg) | (UnaryOp::Not, UnaryOp::Not) => operand,
        (UnaryOp::Relu, UnaryOp::Relu | UnaryOp::Sigmoid)
        | (UnaryOp::Abs, UnaryOp::Abs | UnaryOp::Relu)
        | (UnaryOp::Floor, UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round)
        | (UnaryOp::Ceil, UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round)
        | (UnaryOp::Round, UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round) => Some(x),
        _ => None,
    })
}

/// `1 / (1 + exp(-x))` written out.
fn sigmoid(g: &mut Graph, op: UnaryOp, x: ValueId, name: &str) -> Result {
    if op != UnaryOp::Reciprocal {
        return Ok(None);
    }
    let Some((a, b)) = super::super::matching::binary(g, x, BinaryOp::Add) else {
        return Ok(None);
    };
    for (one, exp) in [(a, b), (b, a)] {
        let argument = unary_of(g, exp, UnaryOp::Exp).and_then(|n| unary_of(g, n, UnaryOp::Neg));
        if let Some(argument) = argument
            && is(g, one, 1.0)
            && keeps_shape(g, argument, one)
        {
            return g.add1(Op::Unary(UnaryOp::Sigmoid), &[argument], name).map(Some);
        }
    }
    Ok(None)
}

pub(super) fn select(g: &mut Graph, c: Candidate<'_>) -> Result {
    let [condition, a, b] = *c.inputs else { return Ok(None) };
    let fits = |g: &Graph, x: ValueId| {
        keeps_shape(g, x, a) && keeps_shape(g, x, b) && keeps_shape(g, x, condition)
    };
    if let Some(Scalar::Bool(holds)) = scalar(g, condition) {
        let chosen = if holds { a } else { b };
        if fits(g, chosen) {
            return Ok(Some(chosen));
        }
    }
    if a == b && fits(g, a) {
        return Ok(Some(a));
    }
    if let Some(inner) = unary_of(g, condition, UnaryOp::Not) {
        return g.add1(Op::Select, &[inner, b, a], c.name).map(Some);
    }
    Ok(None)
}

/// Over one element every reduction is that element.
pub(super) fn reduce(g: &mut Graph, axes: &[usize], keep_dims: bool, c: Candidate<'_>) -> Result {
    let [x] = *c.inputs else { return Ok(None) };
    if !axes.iter().all(|&axis| g[x].shape[axis].is(1)) {
        return Ok(None);
    }
    if keep_dims || axes.is_empty() {
        return Ok(Some(x));
    }
    let kept = g[x].shape.iter().enumerate().filter(|(i, _)| !axes.contains(i));
    let shape = kept.map(|(_, dim)| dim.clone()).collect();
    g.add1(Op::Reshape { shape }, &[x], c.name).map(Some)
}
