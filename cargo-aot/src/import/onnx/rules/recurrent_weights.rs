//! Weights of recurrent layers, as floats or as integers with scales.

use super::super::builder::{OpResult, Tensor, wrong};
use super::super::call::Call;
use super::quantized::dynamic;
use aot_ir::{DType, Dim, Op};

/// Which inputs of the node hold scales and zero points.
const SCALES: [(usize, usize); 2] = [(8, 9), (10, 11)];

/// A matrix of one direction.
pub(super) struct Weights {
    /// `[in, gates·h]`; of integers less their zero points.
    pub(super) matrix: Tensor,
    /// What the integers are multiplied with, for all or per column.
    scale: Option<Tensor>,
}

impl Weights {
    /// Input 1 or 2 of the node, for a direction: `[directions, gates·h, in]`, or the quantised
    /// `[directions, in, gates·h]`.
    pub(super) fn read(
        c: &mut Call<'_>,
        n: usize,
        direction: &Dim,
        quantized: bool,
    ) -> OpResult<Self> {
        let x = c.x(n)?;
        if c.rank(x) != 3 {
            return wrong(format!("weights of rank {}, expected 3", c.rank(x)));
        }
        let matrix = c.pick(x, 0, direction.clone())?;
        if !quantized {
            return Ok(Self { matrix: c.transpose_last(matrix)?, scale: None });
        }
        let Some(&(scale, zero)) = SCALES.get(n - 1) else { return wrong("no such weights") };
        let (scale, zero) = (c.x(scale)?, c.x(zero)?);
        let (scale, zero) =
            (c.pick(scale, 0, direction.clone())?, c.pick(zero, 0, direction.clone())?);
        let (matrix, zero) = (c.cast(matrix, DType::F32)?, c.cast(zero, DType::F32)?);
        Ok(Self { matrix: c.difference(matrix, zero)?, scale: Some(scale) })
    }

    /// `x [.., in]` times the weights; `x` as 8-bit integers over its own range where the weights are so.
    pub(super) fn product(&self, c: &mut Call<'_>, x: Tensor) -> OpResult {
        let Some(scale) = self.scale else { return c.op(Op::MatMul, &[x, self.matrix]) };
        let [x, x_scale, zero] = dynamic(c, x)?;
        let (x, zero) = (c.cast(x, DType::F32)?, c.cast(zero, DType::F32)?);
        let x = c.difference(x, zero)?;
        let sum = c.op(Op::MatMul, &[x, self.matrix])?;
        let scale = c.product(x_scale, scale)?;
        c.product(sum, scale)
    }
}
