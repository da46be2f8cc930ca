//! Attention that no kernel takes as a whole.

use super::matching::{add_float, swap_last_two};
use super::rewriter::{Candidate, Rewritten, rewrite};
use aot_ir::op::{AttentionAttrs, BinaryOp, ReduceOp};
use aot_ir::{DType, Graph, GraphError, Op, ValueId};
use aot_kernels::attention::MAX_WIDTH;

/// Writes out attention whose heads are not of a constant width up to [`MAX_WIDTH`]: products and softmax,
/// with the scores in memory.
pub(super) fn run(source: &Graph) -> Result<Rewritten, GraphError> {
    rewrite(source, &mut |g, c| match c.op {
        Op::Attention(attrs) if !fits(g, &c.inputs[..3]) => write_out(g, c, attrs).map(Some),
        _ => Ok(None),
    })
}

fn fits(g: &Graph, operands: &[ValueId]) -> bool {
    operands.iter().all(|v| {
        let width = g[*v].shape.last().and_then(|d| d.as_const());
        width.is_some_and(|w| (1..=MAX_WIDTH).contains(&w))
    })
}

fn write_out(
    g: &mut Graph,
    c: Candidate<'_>,
    attrs: &AttentionAttrs,
) -> Result<ValueId, GraphError> {
    let [q, k, v] = [c.inputs[0], c.inputs[1], c.inputs[2]];
    let (dtype, name) = (g[q].dtype, c.name);
    let perm = swap_last_two(g[k].shape.len());
    let kt = g.add1(Op::Transpose { perm }, &[k], name)?;
    let scores = g.add1(Op::MatMul, &[q, kt], name)?;
    let scale = add_float(g, dtype, attrs.scale.as_f64(), name)?;
    let mut scores = g.add1(Op::Binary(BinaryOp::Mul), &[scores, scale], name)?;
    let excluded = add_float(g, dtype, f64::NEG_INFINITY, name)?;
    if attrs.has_mask {
        let mask = c.inputs[3];
        scores = match g[mask].dtype {
            DType::Bool => g.add1(Op::Select, &[mask, scores, excluded], name)?,
            _ => g.add1(Op::Binary(BinaryOp::Add), &[scores, mask], name)?,
        };
    }
    let rank = g[scores].shape.len();
    if attrs.causal {
        let shape = g[scores].shape[rank - 2..].to_vec();
        let later = &shape[1] - &shape[0];
        let iota = |axis| Op::Iota { shape: shape.clone(), axis, dtype: DType::I64 };
        let (row, column) = (g.add1(iota(0), &[], name)?, g.add1(iota(1), &[], name)?);
        let later = g.add1(Op::Dims { dims: vec![later], scalar: true }, &[], name)?;
        let last = g.add1(Op::Binary(BinaryOp::Add), &[row, later], name)?;
        let seen = g.add1(Op::Binary(BinaryOp::Le), &[column, last], name)?;
        scores = g.add1(Op::Select, &[seen, scores, excluded], name)?;
    }
    let mut weights = g.add1(Op::Softmax { axis: rank - 1, log: false }, &[scores], name)?;
    if attrs.masked_row_is_zero {
        let most = Op::Reduce { op: ReduceOp::Max, axes: vec![rank - 1], keep_dims: true };
        let most = g.add1(most, &[scores], name)?;
        let masked = g.add1(Op::Binary(BinaryOp::Eq), &[most, excluded], name)?;
        let zero = add_float(g, dtype, 0.0, name)?;
        weights = g.add1(Op::Select, &[masked, zero, weights], name)?;
    }
    g.add1(Op::MatMul, &[weights, v], name)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{count, equal, input};
    use super::super::{Options, run};
    use aot_ir::op::AttentionAttrs;
    use aot_ir::{DType, Dim, Graph, Op, Scalar};

    fn attention(width: i64, causal: bool, mask: Option<DType>, zero_rows: bool) -> Graph {
        let mut g = Graph::new("test");
        let q = input(&mut g, &[2, 3, 5, width]);
        let (k, v) = (input(&mut g, &[2, 1, 4, width]), input(&mut g, &[2, 1, 4, 3]));
        let mut operands = vec![q, k, v];
        if let Some(dtype) = mask {
            let shape = [2, 1, 5, 4].iter().map(|&d| Dim::from(d)).collect();
            operands.push(g.add_input("mask", dtype, shape));
        }
        let op = Op::Attention(AttentionAttrs {
            scale: Scalar::Float(0.06),
            causal,
            masked_row_is_zero: zero_rows,
            has_mask: mask.is_some(),
        });
        let y = g.add1(op, &operands, "attention").unwrap();
        g.outputs.push(("y".into(), y));
        g
    }

    #[test]
    fn wide_heads_are_written_out() {
        for causal in [false, true] {
            for mask in [None, Some(DType::Bool), Some(DType::F32)] {
                for zero_rows in [false, true] {
                    let g = attention(257, causal, mask, zero_rows);
                    let after = run(&g, &Options::default()).unwrap();
                    assert_eq!(count(&after, |op| matches!(op, Op::Attention(_))), 0);
                    assert_eq!(count(&after, |op| *op == Op::MatMul), 2);
                    equal(&g, &after, &[]);
                }
            }
        }
    }

    #[test]
    fn others_stay_whole() {
        let g = attention(256, true, None, false);
        let after = run(&g, &Options::default()).unwrap();
        assert_eq!(count(&after, |op| matches!(op, Op::Attention(_))), 1);
    }
}
