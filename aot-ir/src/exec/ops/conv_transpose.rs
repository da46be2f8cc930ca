//! Transposed convolutions: a matrix product whose result is folded back.

use super::super::error::ExecError;
use super::super::support::{Matrix, MatrixMut, parts};
use super::super::tensor::{Data, Tensor, elements};
use super::conv::{Channels, Number};
use super::geometry::Geometry;
use super::pointwise::rounded;
use crate::op::ConvAttrs;

pub(in crate::exec) fn conv_transpose(
    x: &Tensor,
    w: &Tensor,
    attrs: &ConvAttrs,
    shape: &[usize],
) -> Result<Tensor, ExecError> {
    elements(shape)?;
    let ConvAttrs { strides, pads, dilations, groups } = attrs;
    // The convolution that this is the transpose of goes from the result to the operand.
    let (small, kernel) = (&x.shape()[2..], &w.shape()[2..]);
    let g = Geometry::new(&shape[2..], small, kernel, strides, dilations, pads)?;
    let groups = usize::try_from(*groups).unwrap_or(1).max(1);
    let (channels, batch) = (x.shape()[1] / groups, x.shape()[0]);
    let c = Channels { batch, groups, input: channels, output: w.shape()[1] };
    let dtype = x.dtype();
    let data = match (x.data(), w.data()) {
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

fn convolve<T: Number>(x: &[T], w: &[T], c: &Channels, g: &Geometry) -> Vec<T> {
    let (small, large) = (g.output_len(), g.input_len());
    let mut out = vec![T::default(); c.batch * c.groups * c.output * large];
    if out.is_empty() || x.is_empty() {
        return out;
    }
    let (window, row, stride) = (g.window_len(), g.row_len(), g.row_stride());
    let lines = c.output * window;
    let starts = g.row_starts();
    let taps: Vec<_> = g.taps(&starts).collect();
    let mut unfolded = vec![T::default(); lines * small];
    for (i, out) in out.chunks_mut(c.output * large).enumerate() {
        let x = Matrix::dense(&x[i * c.input * small..][..c.input * small], c.input, small);
        let weights = &w[i % c.groups * c.input * lines..][..c.input * lines];
        let weights = Matrix::dense(weights, c.input, lines);
        let product = MatrixMut { data: &mut unfolded, row_stride: small };
        T::gemm(weights.t(), x, product, false);
        parts(out, large, small * window, |channel, part| {
            for (i, out) in part.chunks_mut(large).enumerate() {
                let lines = &unfolded[(channel + i) * window * small..][..window * small];
                for (tap, line) in taps.iter().zip(lines.chunks(small)) {
                    for (line, start) in line.chunks(row).zip(tap.rows) {
                        let (Some(start), false) = (start, tap.inside.is_empty()) else {
                            continue;
                        };
                        let line = &line[tap.inside.clone()];
                        let out = out[start + tap.start..].iter_mut().step_by(stride);
                        out.zip(line).for_each(|(out, &v)| *out = T::plus(*out, v));
                    }
                }
            }
        });
    }
    out
}
