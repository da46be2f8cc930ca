//! Attention, by blocks of rows: the scores of all rows are never held at once.

use super::super::error::ExecError;
use super::super::support::{Matrix, MatrixMut, broadcast_strides, contiguous, parts};
use super::super::tensor::{Data, Tensor, elements};
use super::float::Float;
use super::matmul::batches;
use super::norm::softmax_row;
use super::pointwise::rounded;
use crate::op::AttentionAttrs;

/// Rows of queries per block.
const BLOCK: usize = 64;

/// A mask over `[lead.., s, t]`.
struct Mask<'a> {
    tensor: &'a Tensor,
    /// Strides over the leading axes.
    lead: Vec<isize>,
    row: usize,
    column: usize,
}

impl<'a> Mask<'a> {
    fn new(tensor: &'a Tensor, lead: &[usize], s: usize, t: usize) -> Self {
        let scores: Vec<usize> = lead.iter().copied().chain([s, t]).collect();
        let mut strides = broadcast_strides(tensor.shape(), &scores);
        let column = strides.pop().unwrap_or(0) as usize;
        let row = strides.pop().unwrap_or(0) as usize;
        Self { tensor, lead: strides, row, column }
    }

    /// Adds the mask's part for rows from `first` of a batch to scores.
    fn apply<T: Float>(
        &self,
        scores: &mut [T],
        t: usize,
        start: usize,
        first: usize,
        values: Option<&[T]>,
    ) {
        for (i, scores) in scores.chunks_mut(t).enumerate() {
            let at = start + (first + i) * self.row;
            match (values, self.tensor.data()) {
                (Some(values), _) => {
                    for (j, score) in scores.iter_mut().enumerate() {
                        *score += values[at + j * self.column];
                    }
                }
                (None, Data::B8(flags)) => {
                    for (j, score) in scores.iter_mut().enumerate() {
                        if flags[at + j * self.column] == 0 {
                            *score = T::NEG_INFINITY;
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

pub(in crate::exec) fn attention(
    operands: &[Tensor],
    attrs: &AttentionAttrs,
    shape: &[usize],
) -> Result<Tensor, ExecError> {
    elements(shape)?;
    let [q, k, v, mask @ ..] = operands else {
        return Err(ExecError::value("attention takes three operands or more"));
    };
    let dtype = q.dtype();
    let mask = mask.first();
    macro_rules! of_class {
        ($($class:ident),*) => {
            match (q.data(), k.data(), v.data()) {
                $((Data::$class(a), Data::$class(b), Data::$class(c)) => {
                    let values = match mask.map(Tensor::data) {
                        Some(Data::$class(values)) => Some(values.as_slice()),
                        None | Some(Data::B8(_)) => None,
                        _ => return Err(ExecError::value("the mask is held differently")),
                    };
                    let tensors = Tensors { q, k, v, mask };
                    Data::$class(attend((a, b, c, values), &tensors, attrs, shape))
                })*
                _ => return Err(ExecError::value("operands are held in different ways")),
            }
        };
    }
    let data = of_class!(F32, F64);
    Ok(Tensor::raw(dtype, shape.to_vec(), rounded(dtype, data)))
}

struct Tensors<'a> {
    q: &'a Tensor,
    k: &'a Tensor,
    v: &'a Tensor,
    mask: Option<&'a Tensor>,
}

type Values<'a, T> = (&'a [T], &'a [T], &'a [T], Option<&'a [T]>);

fn attend<T: Float>(
    (q, k, v, mask_values): Values<'_, T>,
    tensors: &Tensors<'_>,
    attrs: &AttentionAttrs,
    shape: &[usize],
) -> Vec<T> {
    let mut out = vec![T::ZERO; shape.iter().product()];
    let last = |x: &Tensor, back: usize| x.shape()[x.shape().len() - back];
    let (s, d, t, e) =
        (last(tensors.q, 2), last(tensors.q, 1), last(tensors.k, 2), last(tensors.v, 1));
    if out.is_empty() || t == 0 {
        return out;
    }
    let lead = &shape[..shape.len() - 2];
    let batches = batches(lead, [tensors.q.shape(), tensors.k.shape(), tensors.v.shape()]);
    let mask = tensors.mask.map(|mask| Mask::new(mask, lead, s, t));
    let lead_strides = contiguous(lead);
    let mask_start = |mask: &Mask<'_>, batch: usize| -> usize {
        let axes = lead.iter().zip(&lead_strides).zip(&mask.lead);
        axes.map(|((&extent, &whole), &stride)| batch / whole as usize % extent * stride as usize)
            .sum()
    };
    let scale = T::of(attrs.scale.as_f64());
    parts(&mut out, e, t * (d + e) / 4, |first, part| {
        let mut scores = vec![T::ZERO; BLOCK.min(s) * t];
        let (mut row, mut rest) = (first, part);
        while !rest.is_empty() {
            let (batch, i) = (row / s, row % s);
            let rows = BLOCK.min(s - i).min(rest.len() / e);
            let (block, after) = std::mem::take(&mut rest).split_at_mut(rows * e);
            let [q0, k0, v0] = batches[batch];
            let scores = &mut scores[..rows * t];
            let queries = Matrix::dense(&q[q0 + i * d..][..rows * d], rows, d);
            let keys = Matrix::dense(&k[k0..][..t * d], t, d);
            let product = MatrixMut { data: scores, row_stride: t };
            T::gemm_on_one(queries, keys.t(), product, false);
            scores.iter_mut().for_each(|x| *x *= scale);
            if let Some(mask) = &mask {
                mask.apply(scores, t, mask_start(mask, batch), i, mask_values);
            }
            for (j, scores) in scores.chunks_mut(t).enumerate() {
                if attrs.causal {
                    let seen = (i + j + 1 + t).saturating_sub(s).min(t);
                    scores[seen..].fill(T::NEG_INFINITY);
                }
                let masked =
                    attrs.masked_row_is_zero && scores.iter().all(|&x| x == T::NEG_INFINITY);
                if masked {
                    scores.fill(T::ZERO);
                } else {
                    softmax_row(scores, false);
                }
            }
            let values = Matrix::dense(&v[v0..][..t * e], t, e);
            let weights = Matrix::dense(scores, rows, t);
            T::gemm_on_one(weights, values, MatrixMut { data: block, row_stride: e }, false);
            (row, rest) = (row + rows, after);
        }
    });
    out
}
