//! Reductions of known elements.

use super::super::known::{Content, Elem};
use super::tensors::{Builder, OpResult, Tensor};
use aot_ir::op::{BinaryOp, ReduceOp};
use aot_ir::{DType, Dim, Op};

/// Most elements that are combined one by one.
const MAX_COMBINED: i64 = 64;

impl Builder {
    /// Reduces ascending `axes`.
    pub(in super::super) fn reduce(
        &mut self,
        op: ReduceOp,
        x: Tensor,
        axes: &[usize],
        keep_dims: bool,
    ) -> OpResult {
        if axes.is_empty() {
            return Ok(x);
        }
        if let Some(t) = self.known_reduce(op, x, axes, keep_dims) {
            return Ok(t);
        }
        self.op(Op::Reduce { op, axes: axes.to_vec(), keep_dims }, &[x])
    }

    fn known_reduce(
        &mut self,
        op: ReduceOp,
        x: Tensor,
        axes: &[usize],
        keep_dims: bool,
    ) -> Option<Tensor> {
        let dtype = self.dtype(x);
        let combine = match (op, dtype) {
            (ReduceOp::Max, DType::Bool) => BinaryOp::Or,
            (ReduceOp::Min, DType::Bool) => BinaryOp::And,
            (_, d) if !matches!(d, DType::I64 | DType::I32 | DType::F32 | DType::F64) => {
                return None;
            }
            (ReduceOp::Sum, _) => BinaryOp::Add,
            (ReduceOp::Prod, _) => BinaryOp::Mul,
            (ReduceOp::Max, _) => BinaryOp::Max,
            (ReduceOp::Min, _) => BinaryOp::Min,
            _ => return None,
        };
        let content = self.content(x)?;
        let extents: Vec<i64> =
            axes.iter().map(|&a| content.shape.get(a)?.as_const()).collect::<Option<_>>()?;
        let count = extents.iter().try_fold(1i64, |n, &d| n.checked_mul(d))?;
        if !(1..=MAX_COMBINED).contains(&count) {
            return None;
        }
        let kept: Vec<usize> =
            (0..content.shape.len()).filter(|a| keep_dims || !axes.contains(a)).collect();
        let shape: Vec<Dim> = kept
            .iter()
            .map(|&a| if axes.contains(&a) { Dim::ONE } else { content.shape[a].clone() })
            .collect();
        let reduced = Content::make(&shape, self.symbols(), |at, scope| {
            let mut from = vec![Dim::ZERO; content.shape.len()];
            kept.iter().zip(at).for_each(|(&a, at)| from[a] = at.clone());
            let mut total: Option<Elem> = None;
            for flat in 0..count {
                let mut rest = flat;
                for (&axis, &extent) in axes.iter().zip(&extents).rev() {
                    from[axis] = (rest % extent).into();
                    rest /= extent;
                }
                let e = content.at(&from, scope)?;
                total = Some(match total {
                    None => e,
                    Some(total) => total.binary(combine, &e, dtype, scope)?,
                });
            }
            total
        })?;
        Some(self.known(dtype, reduced))
    }
}
