//! Interpolation, one axis after the other.

use super::super::error::ExecError;
use super::super::support::parts;
use super::super::tensor::{Data, Tensor, elements, map_each};
use super::cast::cast;
use super::float::Float;
use super::pointwise::rounded;
use crate::DType;
use crate::op::{CoordinateMap, NearestRounding, ResizeAttrs, ResizeMode};

/// Source coordinates and weights of one result coordinate.
type Taps = Vec<(usize, f64)>;

pub(in crate::exec) fn resize(
    x: &Tensor,
    attrs: &ResizeAttrs,
    shape: &[usize],
) -> Result<Tensor, ExecError> {
    elements(shape)?;
    let dtype = x.dtype();
    let nearest = matches!(attrs.mode, ResizeMode::Nearest(_));
    let float = dtype.is_float() || nearest;
    let mut value = if float { x.clone() } else { cast(x, DType::F64, true) };
    for (axis, &to) in shape.iter().enumerate() {
        let from = value.shape()[axis];
        let taps = taps(attrs, axis, from, to)?;
        let identity =
            from == to && taps.iter().enumerate().all(|(i, taps)| taps.as_slice() == [(i, 1.0)]);
        if identity {
            continue;
        }
        let mut next = value.shape().to_vec();
        next[axis] = to;
        let n = elements(&next)?;
        let inner: usize = next[axis + 1..].iter().product();
        let data = match value.data() {
            Data::F32(v) if !nearest => Data::F32(weighted(v, &taps, from, inner, n)),
            Data::F64(v) if !nearest => Data::F64(weighted(v, &taps, from, inner, n)),
            other => map_each!(other, v => picked(v, &taps, from, inner, n)),
        };
        value = Tensor::raw(value.dtype(), next, data);
    }
    if float {
        let shape = value.shape().to_vec();
        return Ok(Tensor::raw(dtype, shape, rounded(dtype, value.into_data())));
    }
    Ok(cast(&value, dtype, false))
}

fn picked<T: Copy>(v: &[T], taps: &[Taps], from: usize, inner: usize, n: usize) -> Vec<T> {
    let mut out = Vec::with_capacity(n);
    if n == 0 {
        return out;
    }
    for block in v.chunks(from * inner) {
        for taps in taps {
            let source = taps.first().map_or(0, |tap| tap.0);
            out.extend_from_slice(&block[source * inner..(source + 1) * inner]);
        }
    }
    out
}

fn weighted<T: Float>(v: &[T], taps: &[Taps], from: usize, inner: usize, n: usize) -> Vec<T> {
    let mut out = vec![T::ZERO; n];
    if n == 0 {
        return out;
    }
    let to = taps.len();
    parts(&mut out, to * inner, to * inner * 4, |first, part| {
        for (i, out) in part.chunks_mut(to * inner).enumerate() {
            let block = &v[(first + i) * from * inner..][..from * inner];
            for (out, taps) in out.chunks_mut(inner).zip(taps) {
                for &(source, weight) in taps {
                    let weight = T::of(weight);
                    let row = &block[source * inner..][..inner];
                    out.iter_mut().zip(row).for_each(|(out, &x)| *out += weight * x);
                }
            }
        }
    });
    out
}

fn taps(attrs: &ResizeAttrs, axis: usize, from: usize, to: usize) -> Result<Vec<Taps>, ExecError> {
    if to > 0 && from == 0 {
        return Err(ExecError::value(format!("axis {axis} has no elements to sample")));
    }
    let scale = attrs.scales[axis].map_or(to as f64 / from.max(1) as f64, |s| s.as_f64());
    if from == to && scale == 1.0 {
        return Ok((0..to).map(|i| vec![(i, 1.0)]).collect());
    }
    let one = |i| {
        let at = coordinate(attrs.coordinates, i as f64, scale, from, to);
        sample(attrs, at, from)
    };
    Ok((0..to).map(one).collect())
}

/// The source coordinate of a result coordinate.
fn coordinate(map: CoordinateMap, x: f64, scale: f64, from: usize, to: usize) -> f64 {
    let half_pixel = (x + 0.5) / scale - 0.5;
    match map {
        CoordinateMap::HalfPixel => half_pixel,
        CoordinateMap::HalfPixelSymmetric => {
            let adjustment = to as f64 / (scale * from as f64);
            let center = from as f64 / 2.0;
            center * (1.0 - adjustment) + half_pixel
        }
        CoordinateMap::PytorchHalfPixel if to <= 1 => 0.0,
        CoordinateMap::PytorchHalfPixel => half_pixel,
        CoordinateMap::AlignCorners if to <= 1 => 0.0,
        CoordinateMap::AlignCorners => x * (from as f64 - 1.0) / (to as f64 - 1.0),
        CoordinateMap::Asymmetric => x / scale,
        CoordinateMap::TfHalfPixelForNn => (x + 0.5) / scale,
    }
}

fn sample(attrs: &ResizeAttrs, at: f64, extent: usize) -> Taps {
    let last = extent as f64 - 1.0;
    let clamp = |i: f64| i.clamp(0.0, last) as usize;
    match attrs.mode {
        ResizeMode::Nearest(rounding) => {
            let i = match rounding {
                NearestRounding::PreferFloor => (at - 0.5).ceil(),
                NearestRounding::PreferCeil => (at + 0.5).floor(),
                NearestRounding::Floor => at.floor(),
                NearestRounding::Ceil => at.ceil(),
            };
            vec![(clamp(i), 1.0)]
        }
        ResizeMode::Linear => {
            let low = at.floor();
            merge([(clamp(low), 1.0 - (at - low)), (clamp(low + 1.0), at - low)])
        }
        ResizeMode::Cubic(a) => {
            let (a, low) = (a.as_f64(), at.floor());
            let t = at - low;
            let outer = |d: f64| ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a;
            let inner = |d: f64| ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0;
            let mut weights = [outer(t + 1.0), inner(t), inner(1.0 - t), outer(2.0 - t)];
            if attrs.exclude_outside {
                for (i, weight) in weights.iter_mut().enumerate() {
                    let place = low - 1.0 + i as f64;
                    if !(0.0..=last).contains(&place) {
                        *weight = 0.0;
                    }
                }
                let sum: f64 = weights.iter().sum();
                weights.iter_mut().for_each(|w| *w /= sum);
            }
            let places = [low - 1.0, low, low + 1.0, low + 2.0].map(clamp);
            merge([0, 1, 2, 3].map(|i| (places[i], weights[i])))
        }
    }
}

/// Weights per source coordinate, without those that are zero.
fn merge<const N: usize>(taps: [(usize, f64); N]) -> Taps {
    let mut out = Taps::new();
    for (i, weight) in taps {
        match out.last_mut() {
            Some(last) if last.0 == i => last.1 += weight,
            _ => out.push((i, weight)),
        }
    }
    out.retain(|tap| tap.1 != 0.0);
    out
}
