//! Operators that move elements.

use super::super::error::ExecError;
use super::super::support::{broadcast_strides, contiguous};
use super::super::tensor::{Data, Tensor, elements};
use super::strided::copy_strided;

pub(in crate::exec) fn transpose(x: &Tensor, perm: &[usize]) -> Tensor {
    let strides = contiguous(x.shape());
    let shape: Vec<usize> = perm.iter().map(|&axis| x.shape()[axis]).collect();
    let strides: Vec<isize> = perm.iter().map(|&axis| strides[axis]).collect();
    copy_strided(x, 0, &shape, &strides)
}

pub(in crate::exec) fn expand(x: &Tensor, shape: &[usize]) -> Result<Tensor, ExecError> {
    elements(shape)?;
    let lead = shape.len().checked_sub(x.shape().len());
    let fits = lead.is_some_and(|lead| {
        x.shape().iter().zip(&shape[lead..]).all(|(&from, &to)| from == 1 || from == to)
    });
    if !fits {
        return Err(ExecError::value(format!(
            "shape {:?} does not broadcast to {shape:?}",
            x.shape()
        )));
    }
    Ok(copy_strided(x, 0, shape, &broadcast_strides(x.shape(), shape)))
}

pub(in crate::exec) fn slice(
    x: &Tensor,
    starts: &[i64],
    sizes: &[usize],
    steps: &[i64],
) -> Result<Tensor, ExecError> {
    if sizes.contains(&0) {
        return Ok(copy_strided(x, 0, sizes, &vec![0; sizes.len()]));
    }
    let mut strides = contiguous(x.shape());
    let mut offset = 0i64;
    for (axis, stride) in strides.iter_mut().enumerate() {
        let (start, step, extent) = (starts[axis], steps[axis], x.shape()[axis] as i64);
        let last = (sizes[axis] as i64 - 1).checked_mul(step).and_then(|d| d.checked_add(start));
        let inside = |i: i64| (0..extent).contains(&i);
        if !inside(start) || !last.is_some_and(inside) {
            return Err(ExecError::value(format!(
                "the slice of {} elements from {start} in steps of {step} leaves axis {axis} of \
                 extent {extent}",
                sizes[axis]
            )));
        }
        offset += start * *stride as i64;
        // A single element is never stepped from.
        *stride = if sizes[axis] == 1 { 0 } else { *stride * step as isize };
    }
    Ok(copy_strided(x, offset as usize, sizes, &strides))
}

pub(in crate::exec) fn concat(
    parts: &[Tensor],
    axis: usize,
    shape: &[usize],
) -> Result<Tensor, ExecError> {
    let n = elements(shape)?;
    let outer: usize = shape[..axis].iter().product();
    let inner: usize = shape[axis + 1..].iter().product();
    let first = parts.first().ok_or_else(|| ExecError::value("there is nothing to join"))?;
    macro_rules! join {
        ($($class:ident),*) => {
            match first.data() {
                $(Data::$class(_) => {
                    let mut out = Vec::with_capacity(n);
                    for i in 0..outer {
                        for part in parts {
                            let Data::$class(v) = part.data() else {
                                return Err(ExecError::value("operands are held differently"));
                            };
                            let len = part.shape()[axis] * inner;
                            out.extend_from_slice(&v[i * len..(i + 1) * len]);
                        }
                    }
                    Data::$class(out)
                })*
            }
        };
    }
    let data = join!(B8, B16, B32, B64, F32, F64);
    if data.len() != n {
        return Err(ExecError::value(format!("joining gives {} elements, not {n}", data.len())));
    }
    Ok(Tensor::raw(first.dtype(), shape.to_vec(), data))
}
