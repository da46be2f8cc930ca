//! Constant folding.

use super::matching::node;
use super::rewriter::{Candidate, Rewritten, rewrite};
use aot_ir::exec::{Tensor, evaluate};
use aot_ir::{Constant, DType, Graph, GraphError, Op, Scalar, ValueId};

/// Results of at most this many bytes are always folded; larger ones only where they take no more than what they are
/// made from (else they are made when the model is loaded).
const SMALL: u64 = 64 << 10;

/// Evaluates nodes whose operands are constants.
pub(super) fn run(source: &Graph) -> Result<Rewritten, GraphError> {
    rewrite(source, &mut |g, candidate| fold(g, candidate))
}

/// Bytes of a tensor of constant extents.
fn bytes(g: &Graph, value: ValueId) -> Option<u64> {
    let value = &g[value];
    let elements = value
        .shape
        .iter()
        .try_fold(1u64, |n, dim| n.checked_mul(u64::try_from(dim.as_const()?).ok()?))?;
    value.dtype.bytes_for(elements)
}

/// The elements of a value that is a constant or a small source without operands.
fn known(g: &Graph, value: ValueId) -> Option<Tensor> {
    if let Some(constant) = g.constant_of(value) {
        return Tensor::from_constant(constant).ok();
    }
    let node = node(g, value)?;
    if !node.inputs.is_empty() || bytes(g, value)? > SMALL {
        return None;
    }
    evaluate(&node.op, Vec::new(), &[]).ok()?.pop()
}

/// Whether a value is the same everywhere whatever the weights are.
fn is_uniform(g: &Graph, value: ValueId) -> bool {
    super::matching::scalar(g, value).is_some()
}

fn fold(g: &mut Graph, c: Candidate<'_>) -> Result<Option<ValueId>, GraphError> {
    if c.inputs.is_empty() {
        return Ok(None);
    }
    // Reading large constants is worth it only if the result will be kept.
    let is_known = |&v: &ValueId| {
        g.constant_of(v).is_some() || node(g, v).is_some_and(|n| n.inputs.is_empty())
    };
    if !c.inputs.iter().all(is_known) {
        return Ok(None);
    }
    let operands: Vec<&aot_ir::Value> = c.inputs.iter().map(|&v| &g[v]).collect();
    let Ok(inferred) = c.op.infer(&operands, &g.symbols) else { return Ok(None) };
    let [(dtype, shape)] = inferred.outputs.as_slice() else { return Ok(None) };
    let elements =
        shape.iter().try_fold(1u64, |n, dim| n.checked_mul(u64::try_from(dim.as_const()?).ok()?));
    let Some(size) = elements.and_then(|n| dtype.bytes_for(n)) else { return Ok(None) };
    let from: u64 = c.inputs.iter().filter_map(|&v| bytes(g, v)).sum();
    if size > SMALL.max(from) {
        return Ok(None);
    }
    let operands: Option<Vec<Tensor>> = c.inputs.iter().map(|&v| known(g, v)).collect();
    let Some(operands) = operands else { return Ok(None) };
    let uniform = c.inputs.iter().all(|&v| is_uniform(g, v));
    let Some(result) = evaluate(c.op, operands, &[]).ok().and_then(|mut r| r.pop()) else {
        return Ok(None);
    };
    if uniform
        && result.len() > 1
        && let Some(value) = fill_value(&result)
    {
        let shape = shape.clone();
        let op = Op::Fill { shape, value, dtype: result.dtype() };
        return Ok(Some(g.add1(op, &[], c.name)?));
    }
    let constant = Constant {
        name: c.name.to_owned(),
        dtype: result.dtype(),
        shape: result.shape().to_vec(),
        bytes: result.to_bytes().into(),
    };
    g.add_constant(constant).map(Some)
}

fn fill_value(x: &Tensor) -> Option<Scalar> {
    let scalar = if x.dtype().is_float() {
        let v = x.to_f64();
        let first = *v.first()?;
        v.iter().all(|x| x.to_bits() == first.to_bits()).then_some(Scalar::Float(first))
    } else {
        let v = x.to_i64();
        let first = *v.first()?;
        v.iter().all(|&x| x == first).then_some(Scalar::Int(first))
    }?;
    Some(match (x.dtype(), scalar) {
        (DType::Bool, s) => Scalar::Bool(s.as_i64() != 0),
        (_, s) => s,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::testing::{constant, equal, input};
    use aot_ir::op::{BinaryOp, LoopAttrs};
    use aot_ir::{Dim, Symbol};

    #[test]
    fn arithmetic_on_constants_vanishes() {
        let mut g = Graph::new("test");
        let x = input(&mut g, &[2, 3]);
        let (a, b) = (constant(&mut g, &[3], &[1.0, 2.0, 3.0]), constant(&mut g, &[1], &[2.0]));
        let c = g.add1(Op::Binary(BinaryOp::Mul), &[a, b], "scaled").unwrap();
        let y = g.add1(Op::Binary(BinaryOp::Add), &[x, c], "add").unwrap();
        g.outputs.push(("y".into(), y));
        let after = run(&g).unwrap();
        assert!(after.changed);
        assert_eq!(after.graph.nodes().len(), 1);
        equal(&g, &after.graph, &[]);
    }

    #[test]
    fn what_grows_stays() {
        let mut g = Graph::new("test");
        let x = input(&mut g, &[1, 300]);
        let w = g
            .add_constant(Constant {
                name: "w".into(),
                dtype: DType::I8,
                shape: vec![300, 300],
                bytes: vec![1u8; 90_000].into(),
            })
            .unwrap();
        let w = g.add1(Op::Cast(DType::F32), &[w], "cast").unwrap();
        let y = g.add1(Op::MatMul, &[x, w], "mm").unwrap();
        g.outputs.push(("y".into(), y));
        assert!(!run(&g).unwrap().changed);
    }

    /// A loop that adds 1 to a constant; how often is given, or the length of the input.
    fn adding(count: Option<i64>) -> Graph {
        let mut g = Graph::new("test");
        let n = g.symbols.add(Symbol::new("n", 0, 20, 1));
        let n = g.symbols.dim(n);
        g.add_input("x", DType::F32, vec![n.clone()]);
        let count = count.map_or(n, Dim::from);
        let iteration = g.symbols.add(Symbol::counter("i", count.clone(), 20));
        let mut body = Graph::new("body");
        body.symbols = g.symbols.clone();
        let state = body.add_input("state", DType::F32, Vec::new());
        let one = Op::Fill { shape: vec![], value: Scalar::Float(1.0), dtype: DType::F32 };
        let one = body.add1(one, &[], "one").unwrap();
        let next = body.add1(Op::Binary(BinaryOp::Add), &[state, one], "next").unwrap();
        body.outputs.push(("next".into(), next));
        let attrs = LoopAttrs { body, iteration, count, carried: 1, turns: None, backward: vec![] };
        let start = constant(&mut g, &[], &[1.0]);
        let last = g.add1(Op::Loop(Box::new(attrs)), &[start], "loop").unwrap();
        g.outputs.push(("last".into(), last));
        g
    }

    #[test]
    fn loops_wait_for_their_sizes() {
        assert!(!run(&adding(None)).unwrap().changed);
        let g = adding(Some(3));
        let after = run(&g).unwrap();
        assert_eq!(after.graph.nodes().len(), 0);
        equal(&g, &after.graph, &[2]);
    }
}
