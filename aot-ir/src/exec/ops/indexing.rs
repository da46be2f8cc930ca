//! Movement from computed coordinates.

use super::super::error::ExecError;
use super::super::support::contiguous;
use super::super::tensor::{Tensor, elements, map_each};

/// An index into an axis; negative ones count from the end.
pub(super) fn resolve(index: i64, extent: usize, axis: usize) -> Result<usize, ExecError> {
    let at = if index < 0 { index.checked_add(extent as i64) } else { Some(index) };
    match at.and_then(|i| usize::try_from(i).ok()) {
        Some(i) if i < extent => Ok(i),
        _ => Err(ExecError::value(format!(
            "index {index} is outside axis {axis} of extent {extent}"
        ))),
    }
}

pub(in crate::exec) fn gather(
    data: &Tensor,
    indices: &Tensor,
    axis: usize,
    shape: &[usize],
) -> Result<Tensor, ExecError> {
    let n = elements(shape)?;
    let extent = data.shape()[axis];
    let outer: usize = data.shape()[..axis].iter().product();
    let inner: usize = data.shape()[axis + 1..].iter().product();
    let at = indices.to_i64().into_iter().map(|i| resolve(i, extent, axis));
    let at: Vec<usize> = at.collect::<Result<_, _>>()?;
    let data_out = map_each!(data.data(), v => {
        let mut out = Vec::with_capacity(n);
        for i in 0..outer {
            for &j in &at {
                let start = (i * extent + j) * inner;
                out.extend_from_slice(&v[start..start + inner]);
            }
        }
        out
    });
    Ok(Tensor::raw(data.dtype(), shape.to_vec(), data_out))
}

/// For each element of `indices`, the offset of the addressed element of `data`: its own coordinates with
/// the one along `axis` replaced.
pub(super) fn element_offsets(
    data: &Tensor,
    indices: &Tensor,
    axis: usize,
) -> Result<Vec<usize>, ExecError> {
    let strides = contiguous(data.shape());
    let shape = indices.shape();
    if (0..shape.len()).any(|i| i != axis && shape[i] > data.shape()[i]) {
        return Err(ExecError::value(format!(
            "indices {shape:?} do not fit data {:?}",
            data.shape()
        )));
    }
    let mut at = vec![0usize; shape.len()];
    let mut out = Vec::with_capacity(indices.len());
    for index in indices.to_i64() {
        let index = resolve(index, data.shape()[axis], axis)?;
        let offset = at
            .iter()
            .zip(&strides)
            .enumerate()
            .map(|(i, (&c, &stride))| (if i == axis { index } else { c }) * stride as usize);
        out.push(offset.sum());
        for (c, &extent) in at.iter_mut().zip(shape).rev() {
            *c += 1;
            if *c < extent {
                break;
            }
            *c = 0;
        }
    }
    Ok(out)
}

pub(in crate::exec) fn gather_elements(
    data: &Tensor,
    indices: &Tensor,
    axis: usize,
) -> Result<Tensor, ExecError> {
    let offsets = element_offsets(data, indices, axis)?;
    let out = map_each!(data.data(), v => offsets.iter().map(|&i| v[i]).collect());
    Ok(Tensor::raw(data.dtype(), indices.shape().to_vec(), out))
}

/// The start of each addressed block of `data`, and the block's length.
pub(super) fn block_offsets(
    data: &Tensor,
    indices: &Tensor,
    batch_dims: usize,
) -> Result<(Vec<usize>, usize), ExecError> {
    let k = indices.shape().last().copied().unwrap_or(0);
    let strides = contiguous(data.shape());
    let block: usize = data.shape()[batch_dims + k..].iter().product();
    let batches: usize = indices.shape()[..batch_dims].iter().product();
    let tuples = indices.shape()[..indices.shape().len() - 1].iter().product::<usize>();
    let (per_batch, batch_size) = (
        tuples.checked_div(batches).unwrap_or(0).max(1),
        data.shape()[batch_dims..].iter().product::<usize>(),
    );
    let values = indices.to_i64();
    let mut out = Vec::with_capacity(tuples);
    for tuple in 0..tuples {
        let mut offset = tuple / per_batch * if batch_dims == 0 { 0 } else { batch_size };
        for (i, &index) in values[tuple * k..(tuple + 1) * k].iter().enumerate() {
            let axis = batch_dims + i;
            offset += resolve(index, data.shape()[axis], axis)? * strides[axis] as usize;
        }
        out.push(offset);
    }
    Ok((out, block))
}

pub(in crate::exec) fn gather_nd(
    data: &Tensor,
    indices: &Tensor,
    batch_dims: usize,
    shape: &[usize],
) -> Result<Tensor, ExecError> {
    let n = elements(shape)?;
    let (offsets, block) = block_offsets(data, indices, batch_dims)?;
    let out = map_each!(data.data(), v => {
        let mut out = Vec::with_capacity(n);
        for &start in &offsets {
            out.extend_from_slice(&v[start..start + block]);
        }
        out
    });
    Ok(Tensor::raw(data.dtype(), shape.to_vec(), out))
}
