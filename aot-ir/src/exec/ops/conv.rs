//! Convolutions: as matrix products over unfolded operands, or directly where each group has one channel.

use super::super::error::ExecError;
use super::super::support::{Gemm, Matrix, MatrixMut, parts};
use super::super::tensor::{Data, Tensor, elements};
use super::geometry::Geometry;
use super::pointwise::rounded;
use crate::op::ConvAttrs;

/// Numbers that convolutions take.
pub(super) trait Number: Gemm + Default + PartialEq {
    /// `a + b * c`.
    fn add_product(a: Self, b: Self, c: Self) -> Self;
    /// `a + b`.
    fn plus(a: Self, b: Self) -> Self;
}

impl Number for f32 {
    fn add_product(a: Self, b: Self, c: Self) -> Self {
        a + b * c
    }
    fn plus(a: Self, b: Self) -> Self {
        a + b
    }
}

impl Number for f64 {
    fn add_product(a: Self, b: Self, c: Self) -> Self {
        a + b * c
    }
    fn plus(a: Self, b: Self) -> Self {
        a + b
    }
}

impl Number for i64 {
    fn add_product(a: Self, b: Self, c: Self) -> Self {
        a.wrapping_add(b.wrapping_mul(c))
    }
    fn plus(a: Self, b: Self) -> Self {
        a.wrapping_add(b)
    }
}

/// Channels of a convolution.
pub(super) struct Channels {
    pub(super) batch: usize,
    pub(super) groups: usize,
    /// Of the operand, per group.
    pub(super) input: usize,
    /// Of the result, per group.
    pub(super) output: usize,
}

/// Elements of an unfolded operand that are made at a time.
const UNFOLDED: usize = 1 << 19;

/// Result channels per group from which on unfolding an operand of one channel pays.
const SHARED: usize = 8;

pub(in crate::exec) fn conv(
    x: &Tensor,
    w: &Tensor,
    attrs: &ConvAttrs,
    shape: &[usize],
) -> Result<Tensor, ExecError> {
    elements(shape)?;
    let ConvAttrs { strides, pads, dilations, groups } = attrs;
    let (input, kernel) = (&x.shape()[2..], &w.shape()[2..]);
    let g = Geometry::new(input, &shape[2..], kernel, strides, dilations, pads)?;
    let groups = usize::try_from(*groups).unwrap_or(1).max(1);
    let (channels, batch) = (w.shape()[1], x.shape()[0]);
    let c = Channels { batch, groups, input: channels, output: shape[1] / groups };
    let dtype = x.dtype();
    let data = match (x.data(), w.data()) {
        (Data::F32(x), Data::F32(w)) if is_cheap(&c, &g) => {
            let wide = |v: &[f32]| -> Vec<f64> { v.iter().map(|&v| f64::from(v)).collect() };
            let out = convolve(&wide(x), &wide(w), &c, &g);
            Data::F32(out.into_iter().map(|v| v as f32).collect())
        }
        (Data::F32(x), Data::F32(w)) => Data::F32(convolve(x, w, &c, &g)),
        (Data::F64(x), Data::F64(w)) => Data::F64(convolve(x, w, &c, &g)),
        _ if dtype.is_int() => {
            let out = convolve(&x.to_i64(), &w.to_i64(), &c, &g);
            return Ok(Tensor::from_i64(dtype, shape.to_vec(), out));
        }
        _ => return Err(ExecError::value("operands are held in different ways")),
    };
    Ok(Tensor::raw(dtype, shape.to_vec(), rounded(dtype, data)))
}

/// Whether a convolution of `f32` is computed in `f64`: with few weights and few products per image that
/// costs little, and it is what filters of a signal need, whose sums cancel.
fn is_cheap(c: &Channels, g: &Geometry) -> bool {
    let weights = c.groups * c.output * c.input * g.window_len();
    weights <= 1 << 16 && weights.saturating_mul(g.output_len()) <= 1 << 24
}

fn convolve<T: Number>(x: &[T], w: &[T], c: &Channels, g: &Geometry) -> Vec<T> {
    let plane = g.output_len();
    let mut out = vec![T::default(); c.batch * c.groups * c.output * plane];
    if out.is_empty() || w.is_empty() || x.is_empty() {
        return out;
    }
    if c.input == 1 && c.output < SHARED {
        direct(x, w, c, g, &mut out);
        return out;
    }
    let (window, row) = (g.window_len(), g.row_len());
    let k = c.input * window;
    let starts = g.row_starts();
    // Result rows per block.
    let rows = plane / row;
    let block = (UNFOLDED / (k * row).max(1)).clamp(1, rows);
    let mut unfolded = Vec::new();
    let group_in = c.input * g.input_len();
    let group_out = c.output * plane;
    for (i, out) in out.chunks_mut(group_out).enumerate() {
        let x = &x[i * group_in..][..group_in];
        let weights = &w[i % c.groups * c.output * k..][..c.output * k];
        let weights = Matrix::dense(weights, c.output, k);
        if g.is_identity() {
            let x = Matrix::dense(x, k, plane);
            T::gemm(weights, x, MatrixMut { data: out, row_stride: plane }, false);
            continue;
        }
        for first in (0..rows).step_by(block) {
            let count = block.min(rows - first);
            unfold(x, g, &starts, first, count, &mut unfolded);
            let columns = count * row;
            let unfolded = Matrix::dense(&unfolded, k, columns);
            let data = &mut out[first * row..];
            T::gemm(weights, unfolded, MatrixMut { data, row_stride: plane }, false);
        }
    }
    out
}

/// Writes, for each channel and window position, the operand's elements that the result rows
/// `first..first + count` meet there.
fn unfold<T: Number>(
    x: &[T],
    g: &Geometry,
    starts: &[Vec<Option<usize>>],
    first: usize,
    count: usize,
    out: &mut Vec<T>,
) {
    let (row, stride, window) = (g.row_len(), g.row_stride(), g.window_len());
    let (plane, columns) = (g.input_len(), count * row);
    out.clear();
    out.resize(x.len() / plane.max(1) * window * columns, T::default());
    let taps: Vec<_> = g.taps(starts).collect();
    parts(out, columns, columns / 2, |line, part| {
        for (i, out) in part.chunks_mut(columns).enumerate() {
            let line = line + i;
            let (x, tap) = (&x[line / window * plane..][..plane], &taps[line % window]);
            for (out, start) in out.chunks_mut(row).zip(&tap.rows[first..]) {
                let Some(start) = start else { continue };
                let out = &mut out[tap.inside.clone()];
                let x = &x[start + tap.start..];
                match stride {
                    _ if out.is_empty() => {}
                    1 => out.copy_from_slice(&x[..out.len()]),
                    _ => out.iter_mut().zip(x.iter().step_by(stride)).for_each(|(o, x)| *o = *x),
                }
            }
        }
    });
}

/// Convolution where each group has one operand channel.
fn direct<T: Number>(x: &[T], w: &[T], c: &Channels, g: &Geometry, out: &mut [T]) {
    let (window, row, stride) = (g.window_len(), g.row_len(), g.row_stride());
    let (plane, input) = (g.output_len(), g.input_len());
    let starts = g.row_starts();
    let taps: Vec<_> = g.taps(&starts).collect();
    let channels = c.groups * c.output;
    parts(out, plane, plane * window / 2, |first, part| {
        for (i, out) in part.chunks_mut(plane).enumerate() {
            let (image, channel) = ((first + i) / channels, (first + i) % channels);
            let x = &x[(image * c.groups + channel / c.output) * input..][..input];
            let w = &w[channel * window..][..window];
            for tap in taps.iter().filter(|tap| !tap.inside.is_empty()) {
                let w = w[tap.position];
                for (out, start) in out.chunks_mut(row).zip(tap.rows) {
                    let Some(start) = start else { continue };
                    let out = &mut out[tap.inside.clone()];
                    let x = &x[start + tap.start..];
                    if stride == 1 {
                        let x = &x[..out.len()];
                        out.iter_mut().zip(x).for_each(|(o, &x)| *o = T::add_product(*o, w, x));
                    } else {
                        let x = x.iter().step_by(stride);
                        out.iter_mut().zip(x).for_each(|(o, &x)| *o = T::add_product(*o, w, x));
                    }
                }
            }
        }
    });
}
