//! Pointwise operators: in place where an operand's elements are no longer needed.

use super::super::encode::round_all;
use super::super::error::ExecError;
use super::super::support::{Rows, broadcast_strides, parts};
use super::super::tensor::{Data, Tensor, elements};
use super::compare::compare;
use super::float::{Float, floats};
use super::strided::copy_strided;
use super::{compare, integer};
use crate::DType;
use crate::op::{BinaryOp, UnaryOp};

pub(in crate::exec) fn unary(op: UnaryOp, x: Tensor) -> Result<Tensor, ExecError> {
    let (dtype, shape) = (x.dtype(), x.shape().to_vec());
    if op.is_predicate() {
        let data = floats!(x.data(), dtype, v => compare::predicate(op, v));
        return Ok(Tensor::raw(DType::Bool, shape, Data::B8(data)));
    }
    if dtype == DType::Bool {
        let flags = x.to_i64().into_iter().map(|v| u8::from(v == 0)).collect();
        return Ok(Tensor::raw(dtype, shape, Data::B8(flags)));
    }
    if dtype.is_int() {
        return Ok(integer::unary(op, &x));
    }
    let mut data = x.into_data();
    floats!(&mut data, dtype, v => float_unary(op, v)?);
    Ok(Tensor::raw(dtype, shape, rounded(dtype, data)))
}

/// Rounds floats held as `f32` to a narrower type.
pub(in crate::exec) fn rounded(dtype: DType, mut data: Data) -> Data {
    if let Data::F32(v) = &mut data {
        round_all(dtype, v);
    }
    data
}

fn map<T: Copy + Send>(v: &mut [T], cost: usize, f: impl Fn(T) -> T + Sync) {
    parts(v, 1, cost, |_, part| part.iter_mut().for_each(|x| *x = f(*x)));
}

fn float_unary<T: Float>(op: UnaryOp, v: &mut [T]) -> Result<(), ExecError> {
    let (zero, one) = (T::ZERO, T::ONE);
    match op {
        UnaryOp::Neg => map(v, 1, |x| -x),
        UnaryOp::Abs => map(v, 1, T::abs),
        UnaryOp::Sign => map(v, 1, |x| {
            if x > zero {
                one
            } else if x < zero {
                -one
            } else {
                x
            }
        }),
        UnaryOp::Floor => map(v, 1, T::floor),
        UnaryOp::Ceil => map(v, 1, T::ceil),
        UnaryOp::Round => map(v, 1, T::round_even),
        UnaryOp::Reciprocal => map(v, 2, T::recip),
        UnaryOp::Sqrt => map(v, 2, T::sqrt),
        UnaryOp::Exp => map(v, 8, T::exp),
        UnaryOp::Log => map(v, 8, T::ln),
        UnaryOp::Log1p => map(v, 16, T::ln_1p),
        UnaryOp::Expm1 => map(v, 16, T::exp_m1),
        UnaryOp::Sin => map(v, 16, T::sin),
        UnaryOp::Cos => map(v, 16, T::cos),
        UnaryOp::Tan => map(v, 16, T::tan),
        UnaryOp::Asin => map(v, 16, T::asin),
        UnaryOp::Acos => map(v, 16, T::acos),
        UnaryOp::Atan => map(v, 16, T::atan),
        UnaryOp::Sinh => map(v, 16, T::sinh),
        UnaryOp::Cosh => map(v, 16, T::cosh),
        UnaryOp::Tanh => map(v, 16, T::tanh),
        UnaryOp::Asinh => map(v, 16, T::asinh),
        UnaryOp::Acosh => map(v, 16, T::acosh),
        UnaryOp::Atanh => map(v, 16, T::atanh),
        UnaryOp::Erf => map(v, 16, T::erf),
        UnaryOp::Sigmoid => map(v, 8, |x| one / (one + (-x).exp())),
        UnaryOp::Relu => map(v, 1, |x| x.larger(zero)),
        other => {
            return Err(ExecError::value(format!("{} takes no floats", other.name())));
        }
    }
    Ok(())
}

/// Combines `a[i] = f(a[i], b[i])`, where `rows` walks `b` over the shape of `a`.
pub(in crate::exec) fn update<T: Copy + Send + Sync>(
    a: &mut [T],
    b: &[T],
    rows: &Rows<1>,
    cost: usize,
    f: impl Fn(T, T) -> T + Sync,
) {
    let ([stride], len) = (rows.strides, rows.len);
    let row = |x: &mut [T], at: isize| {
        let b = &b[at as usize..];
        match stride {
            0 => {
                let y = b[0];
                x.iter_mut().for_each(|x| *x = f(*x, y));
            }
            1 => x.iter_mut().zip(b).for_each(|(x, &y)| *x = f(*x, y)),
            _ => {
                let b = b.iter().step_by(stride as usize);
                x.iter_mut().zip(b).for_each(|(x, &y)| *x = f(*x, y));
            }
        }
    };
    if rows.count == 1 {
        return parts(a, 1, cost, |first, part| row(part, first as isize * stride));
    }
    parts(a, len, cost * len, |first, part| {
        let mut part = part.chunks_mut(len);
        rows.for_each(first, part.len(), |_, [at]| {
            if let Some(x) = part.next() {
                row(x, at);
            }
        });
    });
}

/// The elements of `x` broadcast to `shape`: its own where possible.
fn full(x: Tensor, shape: &[usize]) -> Result<Tensor, ExecError> {
    if x.shape() == shape {
        return Ok(x);
    }
    elements(shape)?;
    Ok(copy_strided(&x, 0, shape, &broadcast_strides(x.shape(), shape)))
}

pub(in crate::exec) fn binary(
    op: BinaryOp,
    a: Tensor,
    b: Tensor,
    shape: &[usize],
) -> Result<Tensor, ExecError> {
    if op.is_comparison() {
        return compare(op, &a, &b, shape);
    }
    let dtype = a.dtype();
    // The operand that is updated in place, and whether it is the right one.
    let swap = b.shape() == shape && (a.shape() != shape || (b.is_unique() && !a.is_unique()));
    let (target, other) = if swap { (b, a) } else { (a, b) };
    let strides = broadcast_strides(other.shape(), shape);
    let rows = Rows::new(shape, [&strides]);
    let target = full(target, shape)?;
    if target.is_empty() {
        return Ok(target);
    }
    if !dtype.is_float() {
        return integer::binary(op, &target, &other, &rows, swap);
    }
    let mut data = target.into_data();
    match (&mut data, other.data()) {
        (Data::F32(x), Data::F32(y)) => float_binary(op, x, y, &rows, swap)?,
        (Data::F64(x), Data::F64(y)) => float_binary(op, x, y, &rows, swap)?,
        _ => return Err(ExecError::value("operands are held in different ways")),
    }
    Ok(Tensor::raw(dtype, shape.to_vec(), rounded(dtype, data)))
}

fn float_binary<T: Float>(
    op: BinaryOp,
    x: &mut [T],
    y: &[T],
    rows: &Rows<1>,
    swap: bool,
) -> Result<(), ExecError> {
    fn both<T: Float>(
        x: &mut [T],
        y: &[T],
        rows: &Rows<1>,
        (cost, swap): (usize, bool),
        f: impl Fn(T, T) -> T + Sync,
    ) {
        if swap {
            update(x, y, rows, cost, |x, y| f(y, x));
        } else {
            update(x, y, rows, cost, f);
        }
    }
    match op {
        BinaryOp::Add => update(x, y, rows, 1, |a, b| a + b),
        BinaryOp::Mul => update(x, y, rows, 1, |a, b| a * b),
        BinaryOp::Min => update(x, y, rows, 1, T::smaller),
        BinaryOp::Max => update(x, y, rows, 1, T::larger),
        BinaryOp::Sub => both(x, y, rows, (1, swap), |a, b| a - b),
        BinaryOp::Div => both(x, y, rows, (2, swap), |a, b| a / b),
        BinaryOp::Rem => both(x, y, rows, (8, swap), |a, b| a % b),
        BinaryOp::Mod => both(x, y, rows, (8, swap), |a, b| {
            let rest = a % b;
            if rest != T::ZERO && (rest < T::ZERO) != (b < T::ZERO) { rest + b } else { rest }
        }),
        BinaryOp::Pow if !swap && y.len() == 1 && y[0] == T::of(2.0) => map(x, 1, |a| a * a),
        BinaryOp::Pow if !swap && y.len() == 1 && y[0] == T::of(0.5) => {
            // Unlike a square root, a power of -∞ is +∞ and one of -0 is +0.
            map(x, 2, |a| if a == T::NEG_INFINITY { -a } else { (a + T::ZERO).sqrt() });
        }
        BinaryOp::Pow => both(x, y, rows, (16, swap), T::powf),
        BinaryOp::Atan2 => both(x, y, rows, (16, swap), T::atan2),
        other => {
            return Err(ExecError::value(format!("{} takes no floats", other.name())));
        }
    }
    Ok(())
}

pub(in crate::exec) fn select(
    condition: &Tensor,
    a: &Tensor,
    b: &Tensor,
    shape: &[usize],
) -> Result<Tensor, ExecError> {
    let n = elements(shape)?;
    let Data::B8(flags) = condition.data() else {
        return Err(ExecError::value("the condition is not bool"));
    };
    let strides = [condition, a, b].map(|x| broadcast_strides(x.shape(), shape));
    let [c, p, q] = &strides;
    let rows = Rows::new(shape, [c, p, q]);
    macro_rules! same_class {
        ($($class:ident),*) => {
            match (a.data(), b.data()) {
                $((Data::$class(a), Data::$class(b)) => {
                    Data::$class(choose(flags, a, b, &rows, n))
                })*
                _ => return Err(ExecError::value("operands are held in different ways")),
            }
        };
    }
    let data = same_class!(B8, B16, B32, B64, F32, F64);
    Ok(Tensor::raw(a.dtype(), shape.to_vec(), data))
}

fn choose<T: Copy + Default + Send + Sync>(
    flags: &[u8],
    a: &[T],
    b: &[T],
    rows: &Rows<3>,
    n: usize,
) -> Vec<T> {
    let mut out = vec![T::default(); n];
    let [c, p, q] = rows.strides;
    parts(&mut out, rows.len, rows.len, |first, part| {
        let mut part = part.chunks_mut(rows.len.max(1));
        rows.for_each(first, part.len(), |_, [mut i, mut j, mut k]| {
            for out in part.next().into_iter().flatten() {
                *out = if flags[i as usize] != 0 { a[j as usize] } else { b[k as usize] };
                (i, j, k) = (i + c, j + p, k + q);
            }
        });
    });
    out
}
