//! Conversions between element types.

use super::super::encode::{round_all, round_all_wide};
use super::super::support::parts;
use super::super::tensor::{Data, Storage, Tensor, storage, wrap};
use crate::DType;

/// See [`Op::Cast`](crate::Op::Cast); in wide mode floats become `f64`, rounded if the type is narrower
/// than `F32`.
pub(in crate::exec) fn cast(x: &Tensor, to: DType, wide: bool) -> Tensor {
    if x.dtype() == to && !(wide && to.is_float()) {
        return x.clone();
    }
    let shape = x.shape().to_vec();
    if to == DType::Bool {
        let data = match x.data() {
            Data::B8(v) => v.iter().map(|&v| u8::from(v != 0)).collect(),
            Data::B16(v) => v.iter().map(|&v| u8::from(v != 0)).collect(),
            Data::B32(v) => v.iter().map(|&v| u8::from(v != 0)).collect(),
            Data::B64(v) => v.iter().map(|&v| u8::from(v != 0)).collect(),
            Data::F32(v) => v.iter().map(|&v| u8::from(v != 0.0)).collect(),
            Data::F64(v) => v.iter().map(|&v| u8::from(v != 0.0)).collect(),
        };
        return Tensor::raw(to, shape, Data::B8(data));
    }
    match storage(to, wide) {
        Storage::F32 => {
            let mut v = to_f32(x);
            round_all(to, &mut v);
            Tensor::raw(to, shape, Data::F32(v))
        }
        Storage::F64 => {
            let mut v = x.to_f64();
            round_all_wide(to, &mut v);
            Tensor::raw(to, shape, Data::F64(v))
        }
        _ if x.dtype().is_float() => {
            let v = x.to_f64().into_iter().map(|v| saturate(to, v)).collect();
            Tensor::from_i64(to, shape, v)
        }
        _ => Tensor::from_i64(to, shape, x.to_i64()),
    }
}

fn to_f32(x: &Tensor) -> Vec<f32> {
    fn convert<T: Copy + Sync>(v: &[T], f: impl Fn(T) -> f32 + Sync) -> Vec<f32> {
        let mut out = vec![0.0; v.len()];
        parts(&mut out, 1, 1, |first, part| {
            part.iter_mut().zip(&v[first..]).for_each(|(out, &v)| *out = f(v));
        });
        out
    }
    match (x.data(), x.dtype()) {
        (Data::B8(v), DType::I8 | DType::I4 | DType::I2) => convert(v, |v| f32::from(v as i8)),
        (Data::B8(v), _) => convert(v, f32::from),
        (Data::B16(v), DType::U16) => convert(v, |v| f32::from(v as u16)),
        (Data::B16(v), _) => convert(v, f32::from),
        (Data::B32(v), DType::U32) => convert(v, |v| v as u32 as f32),
        (Data::B32(v), _) => convert(v, |v| v as f32),
        (Data::B64(v), DType::U64) => convert(v, |v| v as u64 as f32),
        (Data::B64(v), _) => convert(v, |v| v as f32),
        (Data::F32(v), _) => v.clone(),
        (Data::F64(v), _) => convert(v, |v| v as f32),
    }
}

/// Truncated, and the nearest value of the type where it is out of range; NaN gives 0.
fn saturate(to: DType, v: f64) -> i64 {
    match to {
        DType::U64 => v as u64 as i64,
        DType::U32 => i64::from(v as u32),
        DType::U16 => i64::from(v as u16),
        DType::U8 => i64::from(v as u8),
        DType::I32 => i64::from(v as i32),
        DType::I16 => i64::from(v as i16),
        DType::I8 => i64::from(v as i8),
        DType::I4 => (v as i64).clamp(-8, 7),
        DType::U4 => (v as i64).clamp(0, 15),
        DType::I2 => (v as i64).clamp(-2, 1),
        DType::U2 => (v as i64).clamp(0, 3),
        _ => wrap(to, v as i64),
    }
}
