//! Softmax and normalisation.

use super::super::error::ExecError;
use super::super::support::parts;
use super::super::tensor::Tensor;
use super::float::{Float, floats};
use super::movement::transpose;
use super::pointwise::rounded;

/// Softmax (or its logarithm) of a row in place.
pub(super) fn softmax_row<T: Float>(row: &mut [T], log: bool) {
    let max = row.iter().copied().fold(T::NEG_INFINITY, T::larger);
    if log {
        let sum: f64 = row.iter().map(|&x| (x - max).exp().f64()).sum();
        let shift = T::of(sum.ln());
        row.iter_mut().for_each(|x| *x = *x - max - shift);
        return;
    }
    let mut sum = 0.0;
    for x in row.iter_mut() {
        *x = (*x - max).exp();
        sum += x.f64();
    }
    let factor = T::of(1.0 / sum);
    row.iter_mut().for_each(|x| *x *= factor);
}

/// Runs `f` on every row of a tensor's float elements, in place.
fn rows(x: Tensor, len: usize, f: Rowwise) -> Result<Tensor, ExecError> {
    let (dtype, shape) = (x.dtype(), x.shape().to_vec());
    if x.is_empty() {
        return Ok(x);
    }
    let mut data = x.into_data();
    floats!(&mut data, dtype, v => {
        parts(v, len, len * 8, |_, part| part.chunks_mut(len).for_each(|row| f.apply(row)));
    });
    Ok(Tensor::raw(dtype, shape, rounded(dtype, data)))
}

#[derive(Clone, Copy)]
enum Rowwise {
    Softmax { log: bool },
    Normalize { epsilon: f64, centered: bool },
}

impl Rowwise {
    fn apply<T: Float>(self, row: &mut [T]) {
        match self {
            Self::Softmax { log } => softmax_row(row, log),
            Self::Normalize { epsilon, centered } => {
                let n = row.len() as f64;
                let mean = match centered {
                    true => row.iter().map(|x| x.f64()).sum::<f64>() / n,
                    false => 0.0,
                };
                let squares: f64 = row.iter().map(|x| (x.f64() - mean) * (x.f64() - mean)).sum();
                let factor = 1.0 / (squares / n + epsilon).sqrt();
                row.iter_mut().for_each(|x| *x = T::of((x.f64() - mean) * factor));
            }
        }
    }
}

/// Runs `f` over the axes (ascending), which are moved to the end and back where they are elsewhere.
fn over(x: Tensor, axes: &[usize], f: Rowwise) -> Result<Tensor, ExecError> {
    let rank = x.shape().len();
    let len = axes.iter().map(|&axis| x.shape()[axis]).product();
    if axes.iter().rev().zip((0..rank).rev()).all(|(&axis, last)| axis == last) {
        return rows(x, len, f);
    }
    let kept = (0..rank).filter(|axis| !axes.contains(axis));
    let perm: Vec<usize> = kept.chain(axes.iter().copied()).collect();
    let mut back = vec![0; rank];
    for (i, &axis) in perm.iter().enumerate() {
        back[axis] = i;
    }
    Ok(transpose(&rows(transpose(&x, &perm), len, f)?, &back))
}

pub(in crate::exec) fn softmax(x: Tensor, axis: usize, log: bool) -> Result<Tensor, ExecError> {
    over(x, &[axis], Rowwise::Softmax { log })
}

pub(in crate::exec) fn normalize(
    x: Tensor,
    axes: &[usize],
    epsilon: f64,
    centered: bool,
) -> Result<Tensor, ExecError> {
    over(x, axes, Rowwise::Normalize { epsilon, centered })
}
