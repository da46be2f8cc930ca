//! Operators without operands.

use super::super::error::ExecError;
use super::super::tensor::{Tensor, elements};
use crate::{DType, Dim};

pub(in crate::exec) fn iota(
    shape: &[usize],
    axis: usize,
    dtype: DType,
    wide: bool,
) -> Result<Tensor, ExecError> {
    let n = elements(shape)?;
    let inner: usize = shape[axis + 1..].iter().product();
    let (extent, inner) = (shape[axis].max(1), inner.max(1));
    let values = (0..n).map(|i| (i / inner % extent) as i64).collect();
    let counted = Tensor::from_i64(DType::I64, shape.to_vec(), values);
    Ok(super::cast::cast(&counted, dtype, wide))
}

pub(in crate::exec) fn dims(
    dims: &[Dim],
    atoms: &[i64],
    shape: &[usize],
) -> Result<Tensor, ExecError> {
    let values: Result<Vec<i64>, _> = dims.iter().map(|dim| dim.eval(atoms)).collect();
    Tensor::from_vec(shape.to_vec(), values?)
}
