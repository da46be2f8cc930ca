//! Matrix products.

use super::super::error::ExecError;
use super::super::support::{Gemm, Matrix, MatrixMut, Rows, broadcast_strides, parts};
use super::super::tensor::{Data, Tensor, elements};
use super::pointwise::rounded;

pub(in crate::exec) fn matmul(
    a: &Tensor,
    b: &Tensor,
    shape: &[usize],
) -> Result<Tensor, ExecError> {
    let dtype = a.dtype();
    elements(shape)?;
    let data = match (a.data(), b.data()) {
        (Data::F32(x), Data::F32(y)) => Data::F32(product(x, y, a.shape(), b.shape(), shape)),
        (Data::F64(x), Data::F64(y)) => Data::F64(product(x, y, a.shape(), b.shape(), shape)),
        _ if dtype.is_int() => {
            let out = product(&a.to_i64(), &b.to_i64(), a.shape(), b.shape(), shape);
            return Ok(Tensor::from_i64(dtype, shape.to_vec(), out));
        }
        _ => return Err(ExecError::value("operands are held in different ways")),
    };
    Ok(Tensor::raw(dtype, shape.to_vec(), rounded(dtype, data)))
}

/// Offsets of the matrices of operands that broadcast over the leading axes `lead`.
pub(super) fn batches<const N: usize>(lead: &[usize], shapes: [&[usize]; N]) -> Vec<[usize; N]> {
    let strides: Vec<Vec<isize>> = shapes
        .iter()
        .map(|shape| {
            let split = shape.len() - 2;
            let matrix = (shape[split] * shape[split + 1]) as isize;
            let mut strides = broadcast_strides(&shape[..split], lead);
            strides.iter_mut().for_each(|s| *s *= matrix);
            strides
        })
        .collect();
    let rows: Rows<N> = Rows::new(lead, std::array::from_fn(|k| strides[k].as_slice()));
    let mut out = Vec::with_capacity(rows.count * rows.len);
    rows.for_each(0, rows.count, |_, at| {
        out.extend((0..rows.len).map(|i| -> [usize; N] {
            std::array::from_fn(|k| (at[k] + i as isize * rows.strides[k]) as usize)
        }));
    });
    out
}

fn product<T: Gemm + Default>(
    a: &[T],
    b: &[T],
    a_shape: &[usize],
    b_shape: &[usize],
    shape: &[usize],
) -> Vec<T> {
    let mut out = vec![T::default(); shape.iter().product()];
    if out.is_empty() {
        return out;
    }
    let lead = &shape[..shape.len() - 2];
    let (m, n) = (shape[shape.len() - 2], shape[shape.len() - 1]);
    let k = a_shape[a_shape.len() - 1];
    if b.len() == k * n && a.len() == out.len() / n * k {
        // One right operand for all: the batch is part of the rows.
        let rows = out.len() / n;
        let out_matrix = MatrixMut { data: &mut out, row_stride: n };
        T::gemm(Matrix::dense(a, rows, k), Matrix::dense(b, k, n), out_matrix, false);
        return out;
    }
    let batches = batches(lead, [a_shape, b_shape]);
    let matrices = |[x, y]: [usize; 2]| {
        let a = Matrix::dense(&a[x..x + m * k], m, k);
        (a, Matrix::dense(&b[y..y + k * n], k, n))
    };
    if let [only] = batches.as_slice() {
        let (a, b) = matrices(*only);
        T::gemm(a, b, MatrixMut { data: &mut out, row_stride: n }, false);
        return out;
    }
    parts(&mut out, m * n, m * n * k / 16, |first, part| {
        for (out, batch) in part.chunks_mut(m * n).zip(&batches[first..]) {
            let (a, b) = matrices(*batch);
            T::gemm_on_one(a, b, MatrixMut { data: out, row_stride: n }, false);
        }
    });
    out
}
