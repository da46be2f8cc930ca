//! Attention that is written out, or that has more operands than it needs.

use super::mask::{Masking, combine};
use super::matching::{
    binary, broadcast, float, is, node, same_extents, same_shape, scalar, swap_last_two, unary,
};
use super::rewriter::{Candidate, Rewritten, rewrite};
use aot_ir::op::{AttentionAttrs, BinaryOp, UnaryOp};
use aot_ir::{Dim, Graph, GraphError, Op, Scalar, ValueId};

/// Recognises `softmax(scale * q kᵀ + mask) v`: the scale on the scores, the queries or the keys, before or
/// after a mask; masks that are added or selected; results of fully masked rows replaced by zeros; keys and
/// values repeated over groups of heads. Of attention that is whole, masks that mask nothing and repeated heads go.
pub(super) fn run(source: &Graph) -> Result<Rewritten, GraphError> {
    rewrite(source, &mut |g, c| match c.op {
        Op::MatMul => recognize(g, c),
        Op::Attention(attrs) => reduced(g, attrs, c),
        _ => Ok(None),
    })
}

/// The product under a softmax.
struct Scores {
    q: ValueId,
    /// Keys, transposed.
    kt: ValueId,
    scale: f64,
    maskings: Vec<Masking>,
}

/// How deep chains of scales, masks and movement may be.
const DEPTH: u32 = 8;

/// Takes scores apart; `factor` is what they are multiplied with afterwards.
fn scores(g: &Graph, value: ValueId, factor: f64, depth: u32) -> Option<Scores> {
    let depth = depth.checked_sub(1)?;
    let producer = node(g, value)?;
    match (&producer.op, producer.inputs.as_slice()) {
        (Op::MatMul, &[q, kt]) => Some(Scores { q, kt, scale: factor, maskings: Vec::new() }),
        (Op::Binary(op @ (BinaryOp::Mul | BinaryOp::Div)), _) => {
            let (x, number) = scaled(g, value, *op)?;
            scores(g, x, factor * number, depth)
        }
        (Op::Binary(BinaryOp::Add), &[a, b]) => {
            [(a, b), (b, a)].into_iter().find_map(|(inner, mask)| {
                if !same_extents(g, inner, value) {
                    return None;
                }
                let mut found = scores(g, inner, factor, depth)?;
                found.maskings.push(Masking::Add { value: mask, factor });
                Some(found)
            })
        }
        (Op::Select, &[condition, a, b]) => {
            let (inner, masking) = Masking::of_select(g, [condition, a, b], factor)?;
            if !same_extents(g, inner, value) {
                return None;
            }
            let mut found = scores(g, inner, factor, depth)?;
            found.maskings.push(masking);
            Some(found)
        }
        _ => None,
    }
}

/// A product or quotient with a number: the other operand and the factor.
fn scaled(g: &Graph, value: ValueId, op: BinaryOp) -> Option<(ValueId, f64)> {
    let (a, b) = binary(g, value, op)?;
    let (x, factor) = match (op, float(g, a), float(g, b)) {
        (BinaryOp::Mul, _, Some(c)) => (a, c),
        (BinaryOp::Mul, Some(c), None) => (b, c),
        (BinaryOp::Div, _, Some(c)) => (a, 1.0 / c),
        _ => return None,
    };
    (same_extents(g, x, value) && factor.is_finite()).then_some((x, factor))
}

/// The value without the numbers it is multiplied with, which go to `scale`.
fn without_scale(
    g: &mut Graph,
    value: ValueId,
    scale: &mut f64,
    depth: u32,
) -> Result<ValueId, GraphError> {
    let Some(depth) = depth.checked_sub(1) else { return Ok(value) };
    for op in [BinaryOp::Mul, BinaryOp::Div] {
        if let Some((x, factor)) = scaled(g, value, op) {
            *scale *= factor;
            return without_scale(g, x, scale, depth);
        }
    }
    let Some(producer) = node(g, value) else { return Ok(value) };
    if !matches!(producer.op, Op::Transpose { .. } | Op::Reshape { .. }) {
        return Ok(value);
    }
    let (op, operand, name) = (producer.op.clone(), producer.inputs[0], producer.name.clone());
    let inner = without_scale(g, operand, scale, depth)?;
    if inner == operand { Ok(value) } else { g.add1(op, &[inner], name) }
}

fn recognize(g: &mut Graph, c: Candidate<'_>) -> Result<Option<ValueId>, GraphError> {
    let [weights, v] = *c.inputs else { return Ok(None) };
    let (softmax, zero_rows) = match without_nan(g, weights) {
        Some(softmax) => (softmax, true),
        None => (weights, false),
    };
    let Some(producer) = node(g, softmax) else { return Ok(None) };
    let rank = g[softmax].shape.len();
    if producer.op != (Op::Softmax { axis: rank - 1, log: false }) {
        return Ok(None);
    }
    let Some(mut found) = scores(g, producer.inputs[0], 1.0, DEPTH) else { return Ok(None) };
    let name = c.name;
    let q = without_scale(g, found.q, &mut found.scale, DEPTH)?;
    let kt = without_scale(g, found.kt, &mut found.scale, DEPTH)?;
    let perm = swap_last_two(g[kt].shape.len());
    let k = match node(g, kt).map(|n| (n.op.clone(), n.inputs.clone())) {
        Some((Op::Transpose { perm: inner }, inputs)) => {
            let both: Vec<usize> = perm.iter().map(|&axis| inner[axis]).collect();
            match both.iter().enumerate().all(|(i, &axis)| i == axis) {
                true => inputs[0],
                false => g.add1(Op::Transpose { perm: both }, &inputs, name)?,
            }
        }
        _ => g.add1(Op::Transpose { perm }, &[kt], name)?,
    };
    let dtype = g[q].dtype;
    let mask = combine(g, dtype, &found.maskings, name)?;
    let op = Op::Attention(AttentionAttrs {
        scale: Scalar::Float(found.scale),
        causal: false,
        masked_row_is_zero: zero_rows,
        has_mask: mask.is_some(),
    });
    if let Some(value) = grouped(g, &op, [q, k, v], mask, name)? {
        return Ok(Some(value));
    }
    let mut operands = vec![q, k, v];
    operands.extend(mask);
    let values: Vec<&aot_ir::Value> = operands.iter().map(|&v| &g[v]).collect();
    match op.infer(&values, &g.symbols) {
        Ok(inferred) if inferred.guards.iter().all(|(a, b)| known(g, a, b)) => {
            g.add1(op, &operands, name).map(Some)
        }
        _ => Ok(None),
    }
}

/// The same attention of what it needs.
fn reduced(
    g: &mut Graph,
    attrs: &AttentionAttrs,
    c: Candidate<'_>,
) -> Result<Option<ValueId>, GraphError> {
    let &[q, k, v, ref mask @ ..] = c.inputs else { return Ok(None) };
    let mask = mask.first().copied();
    let without = Op::Attention(AttentionAttrs { has_mask: false, ..attrs.clone() });
    let needless = mask.filter(|&mask| {
        let shape_of = |op: &Op, operands: &[ValueId]| {
            let operands: Vec<&aot_ir::Value> = operands.iter().map(|&v| &g[v]).collect();
            let inferred = op.infer(&operands, &g.symbols).ok()?;
            let known = inferred.guards.iter().all(|(a, b)| known(g, a, b));
            known.then(|| inferred.outputs[0].1.clone())
        };
        let shapes = (shape_of(c.op, c.inputs), shape_of(&without, &[q, k, v]));
        masks_nothing(g, mask) && matches!(&shapes, (Some(a), Some(b)) if same_shape(g, a, b))
    });
    let (op, mask) = match needless {
        Some(_) => (&without, None),
        None => (c.op, mask),
    };
    match grouped(g, op, [q, k, v], mask, c.name)? {
        None if needless.is_some() => g.add1(without, &[q, k, v], c.name).map(Some),
        found => Ok(found),
    }
}

fn masks_nothing(g: &Graph, mask: ValueId) -> bool {
    scalar(g, mask) == Some(Scalar::Bool(true)) || float(g, mask) == Some(0.0)
}

/// Whether the graph requires this equality already.
fn known(g: &Graph, a: &Dim, b: &Dim) -> bool {
    g.guards.iter().any(|x| (&x.lhs, &x.rhs) == (a, b) || (&x.lhs, &x.rhs) == (b, a))
}

/// The softmax whose NaN rows are replaced by zeros.
fn without_nan(g: &Graph, value: ValueId) -> Option<ValueId> {
    let producer = node(g, value).filter(|n| n.op == Op::Select)?;
    let [condition, zero, x] = *producer.inputs.as_slice() else { return None };
    (unary(g, condition, UnaryOp::IsNan)? == x && is(g, zero, 0.0) && same_extents(g, x, value))
        .then_some(x)
}

/// Heads that were repeated: the value before, `[.., heads, 1, t, d]`, and how often.
fn repeated(g: &Graph, value: ValueId) -> Option<(ValueId, Dim)> {
    let outer = node(g, value).filter(|n| matches!(n.op, Op::Reshape { .. }))?;
    let inner = node(g, outer.inputs[0]).filter(|n| matches!(n.op, Op::Expand { .. }))?;
    let (base, wide) = (inner.inputs[0], &g[outer.inputs[0]].shape);
    let rank = wide.len();
    if rank < 4 || g[base].shape.len() != rank || g[value].shape.len() != rank - 1 {
        return None;
    }
    let mut merged = wide.clone();
    let times = merged.remove(rank - 3);
    merged[rank - 4] = &merged[rank - 4] * &times;
    let mut single = wide.clone();
    single[rank - 3] = Dim::ONE;
    let fits = same_shape(g, &merged, &g[value].shape) && same_shape(g, &single, &g[base].shape);
    fits.then_some((base, times))
}

/// Attention whose keys and values are shared by groups of heads: the group becomes an axis that they broadcast
/// over.
fn grouped(
    g: &mut Graph,
    op: &Op,
    [q, k, v]: [ValueId; 3],
    mask: Option<ValueId>,
    name: &str,
) -> Result<Option<ValueId>, GraphError> {
    let (Some((k0, times)), Some((v0, again))) = (repeated(g, k), repeated(g, v)) else {
        return Ok(None);
    };
    let q_shape = g[q].shape.clone();
    let rank = g[k0].shape.len();
    if times != again || q_shape.len() + 1 != rank {
        return Ok(None);
    }
    let heads = g[k0].shape[rank - 4].clone();
    // `[.., heads * times, m, n]` as `[.., heads, times, m, n]`.
    let split = |shape: &[Dim]| -> Option<Vec<Dim>> {
        let at = shape.len().checked_sub(3)?;
        let mut split = shape.to_vec();
        let pair = match shape[at].is(1) {
            true => [Dim::ONE, Dim::ONE],
            false if same_shape(g, &[&heads * &times], &shape[at..=at]) => {
                [heads.clone(), times.clone()]
            }
            false => return None,
        };
        split.splice(at..=at, pair);
        Some(split)
    };
    let Some(split_q) = split(&q_shape) else { return Ok(None) };
    let split_mask = match mask {
        Some(mask) if g[mask].shape.len() >= 3 => match split(&g[mask].shape.clone()) {
            Some(shape) => Some(shape),
            None => return Ok(None),
        },
        _ => None,
    };
    let q = g.add1(Op::Reshape { shape: split_q }, &[q], name)?;
    let mut operands = vec![q, k0, v0];
    if let Some(mask) = mask {
        operands.push(match split_mask {
            Some(shape) => g.add1(Op::Reshape { shape }, &[mask], name)?,
            None => mask,
        });
    }
    let y = g.add1(op.clone(), &operands, name)?;
    let v_shape = g[v].shape.clone();
    let lead = broadcast(g, &q_shape[..rank - 3], &v_shape[..rank - 3]);
    let Some(mut shape) = lead else { return Ok(None) };
    shape.extend([q_shape[rank - 3].clone(), v_shape[rank - 2].clone()]);
    g.add1(Op::Reshape { shape }, &[y], name).map(Some)
}

#[cfg(test)]
#[path = "attention_tests.rs"]
mod tests;
