//! Reductions.

use super::super::error::ExecError;
use super::super::narrow::NarrowFloat;
use super::super::support::parts;
use super::super::tensor::{Data, Tensor, wrap};
use super::float::Float;
use super::movement::transpose;
use super::pointwise::rounded;
use crate::DType;
use crate::op::ReduceOp;

/// A tensor seen as `[outer, n, inner]`, reduced along the middle.
pub(super) struct Middle {
    pub(super) x: Tensor,
    pub(super) n: usize,
    pub(super) inner: usize,
}

impl Middle {
    /// The axes (ascending) as the middle; the tensor is transposed if they are not adjacent.
    fn of(x: Tensor, axes: &[usize]) -> Self {
        let adjacent = axes.windows(2).all(|w| w[0] + 1 == w[1]);
        let shape = x.shape();
        let n = axes.iter().map(|&axis| shape[axis]).product();
        if adjacent {
            let end = axes.last().map_or(shape.len(), |&last| last + 1);
            let inner = shape[end..].iter().product();
            return Self { x, n, inner };
        }
        let kept = (0..shape.len()).filter(|axis| !axes.contains(axis));
        let perm: Vec<usize> = kept.chain(axes.iter().copied()).collect();
        Self { x: transpose(&x, &perm), n, inner: 1 }
    }
}

pub(in crate::exec) fn reduce(
    op: ReduceOp,
    x: Tensor,
    axes: &[usize],
    shape: &[usize],
) -> Result<Tensor, ExecError> {
    let dtype = x.dtype();
    let m = Middle::of(x, axes);
    let mut out = match m.x.data() {
        Data::F32(v) => Data::F32(float_reduce(op, v, &m, shape)),
        Data::F64(v) => Data::F64(float_reduce(op, v, &m, shape)),
        _ => {
            let values = integer_reduce(op, dtype, &m, shape);
            return Ok(Tensor::from_i64(dtype, shape.to_vec(), values));
        }
    };
    if m.n == 0
        && matches!(op, ReduceOp::Max | ReduceOp::Min)
        && let Some(format) = NarrowFloat::of(dtype)
        && !format.round(f64::INFINITY).is_infinite()
    {
        // A type without infinities: its lowest and highest values.
        let limit = if op == ReduceOp::Max { -format.max() } else { format.max() };
        out = Data::F64(vec![limit; out.len()]);
        return Ok(Tensor::raw(dtype, shape.to_vec(), out).narrowed());
    }
    Ok(Tensor::raw(dtype, shape.to_vec(), rounded(dtype, out)))
}

/// Sum of a row in several independent lanes, in `f64`.
fn sum<T: Float>(row: &[T]) -> f64 {
    let (blocks, rest) = row.as_chunks::<4>();
    let mut lanes = [0.0; 4];
    for block in blocks {
        for (lane, x) in lanes.iter_mut().zip(block) {
            *lane += x.f64();
        }
    }
    lanes.iter().sum::<f64>() + rest.iter().map(|x| x.f64()).sum::<f64>()
}

fn float_reduce<T: Float>(op: ReduceOp, v: &[T], m: &Middle, shape: &[usize]) -> Vec<T> {
    let mut out = vec![T::ZERO; shape.iter().product()];
    let (n, inner) = (m.n, m.inner.max(1));
    let divisor = if op == ReduceOp::Mean { n as f64 } else { 1.0 };
    let fold = |out: &mut [T], block: &[T], init: T, f: fn(T, T) -> T| {
        out.fill(init);
        for row in block.chunks_exact(inner) {
            out.iter_mut().zip(row).for_each(|(out, &x)| *out = f(*out, x));
        }
    };
    parts(&mut out, inner, n * inner, |first, part| {
        let mut sums = vec![0.0f64; inner];
        for (i, out) in part.chunks_mut(inner).enumerate() {
            let block = &v[(first + i) * n * inner..][..n * inner];
            match op {
                ReduceOp::Sum | ReduceOp::Mean if inner == 1 => {
                    out[0] = T::of(sum(block) / divisor);
                }
                ReduceOp::Sum | ReduceOp::Mean => {
                    sums.fill(0.0);
                    for row in block.chunks_exact(inner) {
                        sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x.f64());
                    }
                    out.iter_mut().zip(&sums).for_each(|(out, sum)| *out = T::of(sum / divisor));
                }
                ReduceOp::Prod => fold(out, block, T::ONE, |a, b| a * b),
                ReduceOp::Max => fold(out, block, T::NEG_INFINITY, T::larger),
                ReduceOp::Min => fold(out, block, -T::NEG_INFINITY, T::smaller),
            }
        }
    });
    out
}

/// The lowest and highest value of an integer type, as held in `i64`.
pub(super) fn limits(dtype: DType) -> (i64, i64) {
    let bits = dtype.bits();
    match dtype {
        DType::Bool => (0, 1),
        DType::U64 => (0, -1),
        DType::I64 => (i64::MIN, i64::MAX),
        _ if dtype.is_signed_int() => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        _ => (0, (1 << bits) - 1),
    }
}

/// Orders values of an integer type that are held in `i64`.
pub(super) fn order(dtype: DType) -> impl Fn(i64) -> i64 + Copy {
    let flip = if dtype == DType::U64 { i64::MIN } else { 0 };
    move |v| v ^ flip
}

fn integer_reduce(op: ReduceOp, dtype: DType, m: &Middle, shape: &[usize]) -> Vec<i64> {
    let values = m.x.to_i64();
    let (n, inner) = (m.n, m.inner.max(1));
    let key = order(dtype);
    let (lowest, highest) = limits(dtype);
    let mut out = vec![0i64; shape.iter().product()];
    for (i, out) in out.iter_mut().enumerate() {
        let start = i / inner * n * inner + i % inner;
        let all = (0..n).map(|j| values[start + j * inner]);
        *out = match op {
            ReduceOp::Sum => all.fold(0, i64::wrapping_add),
            ReduceOp::Mean if n == 0 => 0,
            ReduceOp::Mean if dtype == DType::U64 => {
                (all.map(|v| i128::from(v as u64)).sum::<i128>() / n as i128) as i64
            }
            ReduceOp::Mean => (all.map(i128::from).sum::<i128>() / n as i128) as i64,
            ReduceOp::Prod => all.fold(1, |a, b| wrap(dtype, a.wrapping_mul(b))),
            ReduceOp::Max => all.fold(lowest, |a, b| std::cmp::max_by_key(a, b, |&v| key(v))),
            ReduceOp::Min => all.fold(highest, |a, b| std::cmp::min_by_key(a, b, |&v| key(v))),
        };
    }
    out
}

pub(in crate::exec) fn arg_reduce(
    x: Tensor,
    axis: usize,
    max: bool,
    last: bool,
    shape: &[usize],
) -> Result<Tensor, ExecError> {
    let key = order(x.dtype());
    let m = Middle::of(x, &[axis]);
    if m.n == 0 {
        return Err(ExecError::value(format!("axis {axis} has no elements to choose from")));
    }
    let out = match m.x.data() {
        Data::F32(v) => choose(v, &m, max, last, shape),
        Data::F64(v) => choose(v, &m, max, last, shape),
        _ => {
            let v: Vec<i64> = m.x.to_i64().into_iter().map(key).collect();
            choose(&v, &m, max, last, shape)
        }
    };
    Tensor::from_vec(shape.to_vec(), out)
}

fn choose<T: Copy + PartialOrd>(
    v: &[T],
    m: &Middle,
    max: bool,
    last: bool,
    shape: &[usize],
) -> Vec<i64> {
    let (n, inner) = (m.n, m.inner.max(1));
    let count: usize = shape.iter().product();
    let better = |a: T, b: T| match (max, last) {
        (true, false) => a > b,
        (true, true) => a >= b,
        (false, false) => a < b,
        (false, true) => a <= b,
    };
    let one = |i: usize| {
        let at = |j: usize| v[i / inner * n * inner + i % inner + j * inner];
        (1..n).fold(0, |best, j| if better(at(j), at(best)) { j } else { best }) as i64
    };
    (0..count).map(one).collect()
}
