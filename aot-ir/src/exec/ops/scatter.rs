//! Movement to computed coordinates.

use super::super::error::ExecError;
use super::super::tensor::{Data, Tensor};
use super::float::Float;
use super::indexing::{block_offsets, element_offsets};
use super::integer::multiply;
use super::pointwise::rounded;
use crate::DType;
use crate::op::ScatterReduction;

pub(in crate::exec) fn scatter_elements(
    data: Tensor,
    indices: &Tensor,
    updates: &Tensor,
    axis: usize,
    reduction: ScatterReduction,
) -> Result<Tensor, ExecError> {
    if updates.shape() != indices.shape() {
        return Err(ExecError::value(format!(
            "updates {:?} and indices {:?} differ in shape",
            updates.shape(),
            indices.shape()
        )));
    }
    let offsets = element_offsets(&data, indices, axis)?;
    scatter(data, updates, &offsets, 1, reduction)
}

pub(in crate::exec) fn scatter_nd(
    data: Tensor,
    indices: &Tensor,
    updates: &Tensor,
    reduction: ScatterReduction,
) -> Result<Tensor, ExecError> {
    let (offsets, block) = block_offsets(&data, indices, 0)?;
    if updates.len() != offsets.len() * block {
        return Err(ExecError::value(format!(
            "{} updates for {} blocks of {block}",
            updates.len(),
            offsets.len()
        )));
    }
    scatter(data, updates, &offsets, block, reduction)
}

fn scatter(
    data: Tensor,
    updates: &Tensor,
    offsets: &[usize],
    block: usize,
    reduction: ScatterReduction,
) -> Result<Tensor, ExecError> {
    let (dtype, shape) = (data.dtype(), data.shape().to_vec());
    if dtype.is_int() && reduction != ScatterReduction::None {
        let mut values = data.to_i64();
        let f = integer(reduction, dtype);
        apply(&mut values, &updates.to_i64(), offsets, block, f);
        return Ok(Tensor::from_i64(dtype, shape, values));
    }
    let mut data = data.into_data();
    macro_rules! replace {
        ($($class:ident),*) => {
            match (&mut data, updates.data()) {
                (Data::F32(v), Data::F32(u)) => floats(v, u, offsets, block, reduction),
                (Data::F64(v), Data::F64(u)) => floats(v, u, offsets, block, reduction),
                $((Data::$class(v), Data::$class(u)) => apply(v, u, offsets, block, |_, u| u),)*
                _ => return Err(ExecError::value("operands are held differently")),
            }
        };
    }
    replace!(B8, B16, B32, B64);
    Ok(Tensor::raw(dtype, shape, rounded(dtype, data)))
}

fn apply<T: Copy>(
    v: &mut [T],
    updates: &[T],
    offsets: &[usize],
    block: usize,
    f: impl Fn(T, T) -> T,
) {
    if block == 0 {
        return;
    }
    for (&start, updates) in offsets.iter().zip(updates.chunks(block)) {
        for (v, &u) in v[start..start + block].iter_mut().zip(updates) {
            *v = f(*v, u);
        }
    }
}

fn floats<T: Float>(
    v: &mut [T],
    updates: &[T],
    offsets: &[usize],
    block: usize,
    reduction: ScatterReduction,
) {
    match reduction {
        ScatterReduction::None => apply(v, updates, offsets, block, |_, u| u),
        ScatterReduction::Add => apply(v, updates, offsets, block, |v, u| v + u),
        ScatterReduction::Mul => apply(v, updates, offsets, block, |v, u| v * u),
        ScatterReduction::Max => apply(v, updates, offsets, block, T::larger),
        ScatterReduction::Min => apply(v, updates, offsets, block, T::smaller),
    }
}

fn integer(reduction: ScatterReduction, dtype: DType) -> impl Fn(i64, i64) -> i64 {
    let unsigned = dtype == DType::U64;
    let key = move |v: i64| if unsigned { v ^ i64::MIN } else { v };
    move |v, u| match reduction {
        ScatterReduction::None => u,
        ScatterReduction::Add => v.wrapping_add(u),
        ScatterReduction::Mul => multiply(dtype, v, u),
        ScatterReduction::Max => std::cmp::max_by_key(v, u, |&v| key(v)),
        ScatterReduction::Min => std::cmp::min_by_key(v, u, |&v| key(v)),
    }
}
