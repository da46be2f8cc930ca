//! Floats rounded to their type, and elements as bytes.

use super::narrow::NarrowFloat;
use super::tensor::Data;
use crate::DType;
use half::{bf16, f16};

/// The nearest value of a float type, ties to even; other types leave it as it is.
pub fn round_to(dtype: DType, x: f64) -> f64 {
    match dtype {
        DType::F16 => f16::from_f64(x).to_f64(),
        DType::Bf16 => bf16::from_f64(x).to_f64(),
        DType::F32 => f64::from(x as f32),
        _ => NarrowFloat::of(dtype).map_or(x, |format| format.round(x)),
    }
}

/// Rounds floats that are held as `f32` to their type.
pub(super) fn round_all(dtype: DType, values: &mut [f32]) {
    match dtype {
        DType::F16 => values.iter_mut().for_each(|v| *v = f16::from_f32(*v).to_f32()),
        DType::Bf16 => values.iter_mut().for_each(|v| *v = bf16::from_f32(*v).to_f32()),
        _ => {
            if let Some(format) = NarrowFloat::of(dtype) {
                values.iter_mut().for_each(|v| *v = format.round(f64::from(*v)) as f32);
            }
        }
    }
}

/// Rounds floats that are held as `f64` to their type, if it is narrower than `F32`.
pub(super) fn round_all_wide(dtype: DType, values: &mut [f64]) {
    if dtype.bits() < 32 {
        values.iter_mut().for_each(|v| *v = round_to(dtype, *v));
    }
}

fn numbers<const N: usize, T>(bytes: &[u8], f: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|b| f(*b)).collect()
}

/// Elements from bytes; the caller has checked their number.
pub(super) fn decode(dtype: DType, elements: usize, bytes: &[u8]) -> Data {
    if let Some(format) = NarrowFloat::of(dtype) {
        let codes = unpacked(dtype.bits(), bytes).take(elements);
        return Data::F32(codes.map(|code| format.decode(code)).collect());
    }
    match dtype {
        DType::Bool => Data::B8(bytes.iter().map(|&b| u8::from(b != 0)).collect()),
        DType::I8 | DType::U8 => Data::B8(bytes.to_vec()),
        _ if dtype.bits() < 8 => {
            let unused = if dtype.is_signed_int() { 8 - dtype.bits() } else { 0 };
            let extend = |code: u8| ((code << unused) as i8 >> unused) as u8;
            Data::B8(unpacked(dtype.bits(), bytes).take(elements).map(extend).collect())
        }
        DType::I16 | DType::U16 => Data::B16(numbers(bytes, i16::from_le_bytes)),
        DType::I32 | DType::U32 => Data::B32(numbers(bytes, i32::from_le_bytes)),
        DType::I64 | DType::U64 => Data::B64(numbers(bytes, i64::from_le_bytes)),
        DType::F16 => Data::F32(numbers(bytes, |b| f16::from_le_bytes(b).to_f32())),
        DType::Bf16 => Data::F32(numbers(bytes, |b| bf16::from_le_bytes(b).to_f32())),
        DType::F64 => Data::F64(numbers(bytes, f64::from_le_bytes)),
        _ => Data::F32(numbers(bytes, f32::from_le_bytes)),
    }
}

/// Elements of at most 8 bits, the first of a byte in its lowest bits.
fn unpacked(bits: u32, bytes: &[u8]) -> impl Iterator<Item = u8> {
    let mask = u8::MAX >> (8 - bits);
    bytes.iter().flat_map(move |&byte| (0..8).step_by(bits as usize).map(move |s| byte >> s & mask))
}

/// The inverse of [`unpacked`].
fn packed(bits: u32, codes: &[u8]) -> Vec<u8> {
    let mask = u8::MAX >> (8 - bits);
    let shifts = || (0..8).step_by(bits as usize);
    let byte = |part: &[u8]| part.iter().zip(shifts()).fold(0, |all, (c, s)| all | (c & mask) << s);
    codes.chunks(8 / bits as usize).map(byte).collect()
}

/// Elements as bytes, laid out as [`DType`] says.
pub(super) fn encode(dtype: DType, data: &Data) -> Vec<u8> {
    match data {
        Data::B8(v) if dtype.bits() < 8 => packed(dtype.bits(), v),
        Data::B8(v) => v.clone(),
        Data::B16(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Data::B32(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Data::B64(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        Data::F32(v) => floats(dtype, v, f64::from, |x| x),
        Data::F64(v) => floats(dtype, v, |x| x, |x| x as f32),
    }
}

fn floats<T: Copy>(
    dtype: DType,
    v: &[T],
    wide: impl Fn(T) -> f64,
    single: impl Fn(T) -> f32,
) -> Vec<u8> {
    if let Some(format) = NarrowFloat::of(dtype) {
        let codes: Vec<u8> = v.iter().map(|&x| format.encode(wide(x))).collect();
        return packed(dtype.bits(), &codes);
    }
    match dtype {
        DType::F16 => v.iter().flat_map(|&x| f16::from_f64(wide(x)).to_le_bytes()).collect(),
        DType::Bf16 => v.iter().flat_map(|&x| bf16::from_f64(wide(x)).to_le_bytes()).collect(),
        DType::F64 => v.iter().flat_map(|&x| wide(x).to_le_bytes()).collect(),
        _ => v.iter().flat_map(|&x| single(x).to_le_bytes()).collect(),
    }
}
