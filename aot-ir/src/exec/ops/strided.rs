//! Copies of strided operands to dense tensors.

use super::super::support::{Rows, parts};
use super::super::tensor::{Tensor, map_each};

/// A dense tensor of `shape` whose element at a coordinate is `x`'s at `offset + coordinate · strides`.
///
/// The caller has checked that all these elements exist.
pub(in crate::exec) fn copy_strided(
    x: &Tensor,
    offset: usize,
    shape: &[usize],
    strides: &[isize],
) -> Tensor {
    let data = map_each!(x.data(), v => copy(v, offset, shape, strides));
    Tensor::raw(x.dtype(), shape.to_vec(), data)
}

/// Edge of the square that transposing copies at a time, in elements.
const TILE: usize = 16;

/// As [`copy_strided`], on elements.
pub(in crate::exec) fn copy<T: Copy + Default + Send + Sync>(
    source: &[T],
    offset: usize,
    shape: &[usize],
    strides: &[isize],
) -> Vec<T> {
    let n: usize = shape.iter().product();
    let mut out = vec![T::default(); n];
    if n == 0 {
        return out;
    }
    let at = |i: isize| source[(offset as isize + i) as usize];
    // A transposition: the second last axis is the dense one.
    if let ([.., p, q], [.., 1, s]) = (shape, strides)
        && *s != 1
        && *s != 0
        && p.min(q) > &3
    {
        let (p, q, s) = (*p, *q, *s);
        let lead = shape.len() - 2;
        let rows = Rows::new(&shape[..lead], [&strides[..lead]]);
        let planes = rows.count * rows.len;
        let mut base = Vec::with_capacity(planes);
        rows.for_each(0, rows.count, |_, [start]| {
            base.extend((0..rows.len).map(|i| start + i as isize * rows.strides[0]));
        });
        if let [base] = base.as_slice() {
            // One plane: its rows are what threads share.
            parts(&mut out, q * TILE, q * TILE * 2, |first, part| {
                tiles(part, (part.len() / q, q), s, |i| at(base + (first * TILE) as isize + i));
            });
        } else {
            parts(&mut out, p * q, p * q * 2, |first, part| {
                for (plane, base) in part.chunks_mut(p * q).zip(&base[first..]) {
                    tiles(plane, (p, q), s, |i| at(base + i));
                }
            });
        }
        return out;
    }
    let rows = Rows::new(shape, [strides]);
    let (len, [stride]) = (rows.len, rows.strides);
    let row = |out: &mut [T], start: isize| match stride {
        1 => {
            let start = (offset as isize + start) as usize;
            out.copy_from_slice(&source[start..start + out.len()]);
        }
        0 => out.fill(at(start)),
        _ => {
            for (i, out) in out.iter_mut().enumerate() {
                *out = at(start + i as isize * stride);
            }
        }
    };
    if rows.count == 1 {
        parts(&mut out, 1, 1, |first, part| row(part, first as isize * stride));
        return out;
    }
    parts(&mut out, len, len + 8, |first, part| {
        let mut part = part.chunks_mut(len);
        rows.for_each(first, part.len(), |_, [start]| {
            if let Some(out) = part.next() {
                row(out, start);
            }
        });
    });
    out
}

/// Writes `out[i, j] = at(i + j * stride)` in tiles.
fn tiles<T>(out: &mut [T], (p, q): (usize, usize), stride: isize, at: impl Fn(isize) -> T) {
    for i0 in (0..p).step_by(TILE) {
        for j0 in (0..q).step_by(TILE) {
            for i in i0..(i0 + TILE).min(p) {
                for j in j0..(j0 + TILE).min(q) {
                    out[i * q + j] = at(i as isize + j as isize * stride);
                }
            }
        }
    }
}
