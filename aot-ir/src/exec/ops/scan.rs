//! Running combinations along an axis.

use super::super::error::ExecError;
use super::super::tensor::{Data, Tensor};
use super::float::Float;
use super::integer::multiply;
use super::pointwise::rounded;
use super::reduce::{limits, order};
use crate::op::ScanOp;

struct Walk {
    n: usize,
    inner: usize,
    exclusive: bool,
    reverse: bool,
}

pub(in crate::exec) fn scan(
    op: ScanOp,
    x: Tensor,
    axis: usize,
    exclusive: bool,
    reverse: bool,
) -> Result<Tensor, ExecError> {
    let (dtype, shape) = (x.dtype(), x.shape().to_vec());
    let walk =
        Walk { n: shape[axis], inner: shape[axis + 1..].iter().product(), exclusive, reverse };
    if dtype.is_int() {
        let mut v = x.to_i64();
        let key = order(dtype);
        let (lowest, highest) = limits(dtype);
        match op {
            ScanOp::Sum => walk.run(&mut v, 0, i64::wrapping_add),
            ScanOp::Prod => walk.run(&mut v, 1, |a, b| multiply(dtype, a, b)),
            ScanOp::Max => {
                walk.run(&mut v, lowest, |a, b| std::cmp::max_by_key(a, b, |&v| key(v)));
            }
            ScanOp::Min => {
                walk.run(&mut v, highest, |a, b| std::cmp::min_by_key(a, b, |&v| key(v)));
            }
        }
        return Ok(Tensor::from_i64(dtype, shape, v));
    }
    let mut data = x.into_data();
    match &mut data {
        Data::F32(v) => walk.floats(op, v),
        Data::F64(v) => walk.floats(op, v),
        _ => return Err(ExecError::value(format!("{} takes no {dtype}", op.name()))),
    }
    Ok(Tensor::raw(dtype, shape, rounded(dtype, data)))
}

impl Walk {
    fn floats<T: Float>(&self, op: ScanOp, v: &mut [T]) {
        match op {
            ScanOp::Sum => self.run(v, T::ZERO, |a, b| a + b),
            ScanOp::Prod => self.run(v, T::ONE, |a, b| a * b),
            ScanOp::Max => self.run(v, T::NEG_INFINITY, T::larger),
            ScanOp::Min => self.run(v, -T::NEG_INFINITY, T::smaller),
        }
    }

    fn run<T: Copy>(&self, v: &mut [T], init: T, f: impl Fn(T, T) -> T) {
        let (n, inner) = (self.n, self.inner);
        if v.is_empty() {
            return;
        }
        for block in v.chunks_exact_mut(n * inner) {
            for i in 0..inner {
                let mut sum = init;
                for j in 0..n {
                    let j = if self.reverse { n - 1 - j } else { j };
                    let at = &mut block[j * inner + i];
                    let next = f(sum, *at);
                    *at = if self.exclusive { sum } else { next };
                    sum = next;
                }
            }
        }
    }
}
