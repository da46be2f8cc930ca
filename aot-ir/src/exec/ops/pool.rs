//! Pooling.

use super::super::error::ExecError;
use super::super::support::parts;
use super::super::tensor::{Data, Tensor, elements};
use super::float::Float;
use super::geometry::{Geometry, constants};
use super::pointwise::rounded;
use super::reduce::{limits, order};
use crate::op::{PoolAttrs, PoolKind};

pub(in crate::exec) fn pool(
    x: &Tensor,
    attrs: &PoolAttrs,
    shape: &[usize],
) -> Result<Tensor, ExecError> {
    let n = elements(shape)?;
    let PoolAttrs { kernel, strides, pads, dilations, .. } = attrs;
    let kernel = constants(kernel.iter().cloned())?;
    let g = Geometry::new(&x.shape()[2..], &shape[2..], &kernel, strides, dilations, pads)?;
    let dtype = x.dtype();
    let data = match x.data() {
        Data::F32(v) => Data::F32(floats(v, attrs.kind, &g, n)),
        Data::F64(v) => Data::F64(floats(v, attrs.kind, &g, n)),
        _ => {
            let key = order(dtype);
            let v: Vec<i64> = x.to_i64().into_iter().map(key).collect();
            let mut out = vec![key(limits(dtype).0); n];
            windows(&v, &g, &mut out, i64::max);
            let values = out.into_iter().map(key).collect();
            return Ok(Tensor::from_i64(dtype, shape.to_vec(), values));
        }
    };
    Ok(Tensor::raw(dtype, shape.to_vec(), rounded(dtype, data)))
}

/// Folds what each window meets into the result, which holds the initial values.
fn windows<T: Copy + Send + Sync>(
    v: &[T],
    g: &Geometry,
    out: &mut [T],
    f: impl Fn(T, T) -> T + Sync,
) {
    let (plane, input, row, stride) = (g.output_len(), g.input_len(), g.row_len(), g.row_stride());
    if plane == 0 {
        return;
    }
    let starts = g.row_starts();
    let taps: Vec<_> = g.taps(&starts).filter(|tap| !tap.inside.is_empty()).collect();
    parts(out, plane, plane * g.window_len(), |first, part| {
        for (i, out) in part.chunks_mut(plane).enumerate() {
            let x = &v[(first + i) * input..][..input];
            for tap in &taps {
                for (out, start) in out.chunks_mut(row).zip(tap.rows) {
                    let Some(start) = start else { continue };
                    let out = &mut out[tap.inside.clone()];
                    let x = &x[start + tap.start..];
                    if stride == 1 {
                        out.iter_mut().zip(x).for_each(|(o, &x)| *o = f(*o, x));
                    } else {
                        let x = x.iter().step_by(stride);
                        out.iter_mut().zip(x).for_each(|(o, &x)| *o = f(*o, x));
                    }
                }
            }
        }
    });
}

fn floats<T: Float>(v: &[T], kind: PoolKind, g: &Geometry, n: usize) -> Vec<T> {
    match kind {
        PoolKind::Max => {
            let mut out = vec![T::NEG_INFINITY; n];
            windows(v, g, &mut out, T::larger);
            out
        }
        PoolKind::Average { count_include_pad } => {
            let mut out = vec![T::ZERO; n];
            windows(v, g, &mut out, |a, b| a + b);
            let counts = counts(g, count_include_pad);
            for plane in out.chunks_mut(counts.len().max(1)) {
                for (x, &count) in plane.iter_mut().zip(&counts) {
                    *x = *x / T::of(count);
                }
            }
            out
        }
        PoolKind::Lp(p) => {
            let mut out = vec![T::ZERO; n];
            let exponent = T::of(p as f64);
            match p {
                1 => windows(v, g, &mut out, |a, b| a + b.abs()),
                2 => windows(v, g, &mut out, |a, b| a + b * b),
                _ => windows(v, g, &mut out, |a, b| a + b.abs().powf(exponent)),
            }
            let inverse = T::ONE / exponent;
            out.iter_mut().for_each(|x| *x = x.powf(inverse));
            out
        }
    }
}

/// How many elements the mean at each place of a plane is taken over.
fn counts(g: &Geometry, include_pad: bool) -> Vec<f64> {
    let mut counts = vec![1.0];
    for axis in 0..g.input.len() {
        let (low, high) = g.pads[axis];
        let end = low + g.input[axis];
        let range = if include_pad { 0..end + high } else { low..end };
        let per_place: Vec<f64> = (0..g.output[axis])
            .map(|out| {
                let first = out * g.strides[axis];
                let taps = (0..g.kernel[axis]).map(|tap| first + tap * g.dilations[axis]);
                taps.filter(|i| range.contains(i)).count() as f64
            })
            .collect();
        counts = counts.iter().flat_map(|c| per_place.iter().map(move |p| c * p)).collect();
    }
    counts
}
