//! Padding and cropping.

use super::super::error::ExecError;
use super::super::support::contiguous;
use super::super::tensor::{Data, Tensor, elements};
use crate::Scalar;
use crate::op::PadMode;

/// Which operand coordinate a result coordinate shows, per mode; `None` for the constant.
fn source(mode: PadMode, i: i64, extent: i64) -> Option<i64> {
    if (0..extent).contains(&i) {
        return Some(i);
    }
    match mode {
        PadMode::Constant(_) => None,
        PadMode::Edge => Some(i.clamp(0, extent - 1)),
        PadMode::Wrap => Some(i.rem_euclid(extent)),
        PadMode::Reflect if extent == 1 => Some(0),
        PadMode::Reflect => {
            let period = 2 * (extent - 1);
            let phase = i.rem_euclid(period);
            Some(phase.min(period - phase))
        }
    }
}

pub(in crate::exec) fn pad(
    x: &Tensor,
    low: &[i64],
    mode: PadMode,
    shape: &[usize],
) -> Result<Tensor, ExecError> {
    let n = elements(shape)?;
    let strides = contiguous(x.shape());
    // Per axis and coordinate, the operand's offset.
    let mut maps: Vec<Vec<Option<usize>>> = Vec::with_capacity(shape.len());
    for (axis, &size) in shape.iter().enumerate() {
        let extent = x.shape()[axis] as i64;
        if extent == 0 && size > 0 && !matches!(mode, PadMode::Constant(_)) {
            return Err(ExecError::value(
                "an axis without elements can be padded with a constant only",
            ));
        }
        let map = (0..size as i64).map(|i| {
            let i = i.checked_sub(low[axis]).and_then(|i| source(mode, i, extent))?;
            Some(i as usize * strides[axis] as usize)
        });
        maps.push(map.collect());
    }
    let fill = match mode {
        PadMode::Constant(value) => value,
        _ => Scalar::Int(0),
    };
    let filled = Tensor::filled(x.dtype(), Vec::new(), fill)?;
    let filled = if matches!(x.data(), Data::F64(_)) { filled.widened() } else { filled };
    macro_rules! copy {
        ($($class:ident),*) => {
            match (x.data(), filled.data()) {
                $((Data::$class(v), Data::$class(fill)) => {
                    Data::$class(padded(v, fill[0], &maps, n))
                })*
                _ => return Err(ExecError::value("the constant is held differently")),
            }
        };
    }
    let data = copy!(B8, B16, B32, B64, F32, F64);
    Ok(Tensor::raw(x.dtype(), shape.to_vec(), data))
}

fn padded<T: Copy>(v: &[T], fill: T, maps: &[Vec<Option<usize>>], n: usize) -> Vec<T> {
    let mut out = Vec::with_capacity(n);
    if n == 0 {
        return out;
    }
    let Some((inner, outer)) = maps.split_last() else {
        return v.to_vec();
    };
    let mut at = vec![0usize; outer.len()];
    while out.len() < n {
        let base = at.iter().zip(outer).try_fold(0, |sum, (&i, map)| Some(sum + map[i]?));
        match base {
            Some(base) => out.extend(inner.iter().map(|i| i.map_or(fill, |i| v[base + i]))),
            None => out.extend(std::iter::repeat_n(fill, inner.len())),
        }
        for (i, map) in at.iter_mut().zip(outer).rev() {
            *i += 1;
            if *i < map.len() {
                break;
            }
            *i = 0;
        }
    }
    out
}
