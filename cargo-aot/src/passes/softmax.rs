//! Softmax that is written out.

use super::matching::{binary, reduction, unary};
use super::rewriter::{Candidate, Rewritten, rewrite};
use aot_ir::op::{BinaryOp, ReduceOp, UnaryOp};
use aot_ir::{Graph, GraphError, Op, ValueId};

/// Recognises `exp(x - max) / sum` (with or without the maximum) and its logarithm.
pub(super) fn run(source: &Graph) -> Result<Rewritten, GraphError> {
    rewrite(source, &mut |g, c| {
        let found = match c.op {
            Op::Binary(BinaryOp::Div) => quotient(g, c),
            Op::Binary(BinaryOp::Sub) => difference(g, c),
            Op::Unary(UnaryOp::Log) => logarithm(g, c),
            _ => None,
        };
        match found {
            Some((x, axis, log)) => g.add1(Op::Softmax { axis, log }, &[x], c.name).map(Some),
            None => Ok(None),
        }
    })
}

/// The operand whose maximum along the axis is subtracted, or the value itself.
fn without_shift(g: &Graph, z: ValueId, axis: usize) -> ValueId {
    match binary(g, z, BinaryOp::Sub) {
        Some((x, max)) if reduction(g, max, ReduceOp::Max) == Some((x, vec![axis])) => x,
        _ => z,
    }
}

fn quotient(g: &Graph, c: Candidate<'_>) -> Option<(ValueId, usize, bool)> {
    let [exp, sum] = *c.inputs else { return None };
    let z = unary(g, exp, UnaryOp::Exp)?;
    match reduction(g, sum, ReduceOp::Sum)? {
        (x, axes) if x == exp && axes.len() == 1 => {
            Some((without_shift(g, z, axes[0]), axes[0], false))
        }
        _ => None,
    }
}

fn difference(g: &Graph, c: Candidate<'_>) -> Option<(ValueId, usize, bool)> {
    let [z, log] = *c.inputs else { return None };
    let (exp, axes) = reduction(g, unary(g, log, UnaryOp::Log)?, ReduceOp::Sum)?;
    let [axis] = axes.as_slice() else { return None };
    (unary(g, exp, UnaryOp::Exp)? == z).then(|| (without_shift(g, z, *axis), *axis, true))
}

fn logarithm(g: &Graph, c: Candidate<'_>) -> Option<(ValueId, usize, bool)> {
    let producer = super::matching::node(g, *c.inputs.first()?)?;
    match producer.op {
        Op::Softmax { axis, log: false } => Some((producer.inputs[0], axis, true)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::passes::testing::{count, equal, input};
    use crate::passes::{Options, run};
    use aot_ir::op::{BinaryOp, ReduceOp, UnaryOp};
    use aot_ir::{Graph, Op};

    fn written_out(log: bool, shift: bool) -> Graph {
        let mut g = Graph::new("test");
        let x = input(&mut g, &[2, 5]);
        let reduce = |op| Op::Reduce { op, axes: vec![1], keep_dims: true };
        let z = if shift {
            let max = g.add1(reduce(ReduceOp::Max), &[x], "max").unwrap();
            g.add1(Op::Binary(BinaryOp::Sub), &[x, max], "sub").unwrap()
        } else {
            x
        };
        let e = g.add1(Op::Unary(UnaryOp::Exp), &[z], "exp").unwrap();
        let s = g.add1(reduce(ReduceOp::Sum), &[e], "sum").unwrap();
        let y = if log {
            let l = g.add1(Op::Unary(UnaryOp::Log), &[s], "log").unwrap();
            g.add1(Op::Binary(BinaryOp::Sub), &[z, l], "y").unwrap()
        } else {
            g.add1(Op::Binary(BinaryOp::Div), &[e, s], "y").unwrap()
        };
        g.outputs.push(("y".into(), y));
        g
    }

    #[test]
    fn all_forms_are_recognised() {
        for (log, shift) in [(false, false), (false, true), (true, false), (true, true)] {
            let g = written_out(log, shift);
            let after = run(&g, &Options::default()).unwrap();
            assert_eq!(after.nodes().len(), 1);
            assert_eq!(count(&after, |op| *op == Op::Softmax { axis: 1, log }), 1);
            equal(&g, &after, &[]);
        }
    }
}
