//! Floats of narrow types as `f32`, and elements as bytes.

use super::tensor::Data;
use crate::DType;
use half::{bf16, f16};

/// A binary floating-point format narrower than binary32.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FloatFormat {
    /// Bits of the exponent.
    exponent: u32,
    /// Bits of the fraction.
    fraction: u32,
    /// Largest finite value.
    max: f64,
    /// What becomes infinite stays (else saturates to NaN, as there are no infinities).
    infinities: bool,
}

impl FloatFormat {
    /// OCP E4M3FN.
    pub const E4M3: Self = Self { exponent: 4, fraction: 3, max: 448.0, infinities: false };
    /// OCP E5M2.
    pub const E5M2: Self = Self { exponent: 5, fraction: 2, max: 57344.0, infinities: true };

    /// The nearest value of the format, ties to even. Beyond the largest one: infinity, or NaN in a
    /// format without infinities.
    pub fn round(self, x: f64) -> f64 {
        if x == 0.0 || x.is_nan() {
            return x;
        }
        let least = 2 - (1i32 << (self.exponent - 1));
        let exponent = exponent_of(x).max(least);
        // One unit in the last place.
        let unit = power_of_two(exponent - self.fraction as i32);
        let rounded = (x / unit).round_ties_even() * unit;
        match (rounded.abs() <= self.max, self.infinities) {
            (true, _) => rounded,
            (false, true) => f64::INFINITY.copysign(x),
            (false, false) => f64::NAN.copysign(x),
        }
    }

    /// The value of a byte.
    pub fn decode(self, byte: u8) -> f32 {
        let sign = if byte & 0x80 == 0 { 1.0 } else { -1.0 };
        let fraction = u32::from(byte) & ((1 << self.fraction) - 1);
        let exponent = (u32::from(byte) & 0x7f) >> self.fraction;
        let all_ones = exponent == (1 << self.exponent) - 1;
        if self.infinities && all_ones {
            return if fraction == 0 { f32::INFINITY * sign } else { f32::NAN };
        }
        if !self.infinities && byte & 0x7f == 0x7f {
            return f32::NAN;
        }
        let bias = (1i32 << (self.exponent - 1)) - 1;
        let scale = |e: i32| power_of_two(e - self.fraction as i32) as f32;
        let magnitude = match exponent {
            0 => fraction as f32 * scale(1 - bias),
            e => (fraction + (1 << self.fraction)) as f32 * scale(e as i32 - bias),
        };
        sign * magnitude
    }

    /// The byte of the nearest value; see [`FloatFormat::round`].
    pub fn encode(self, x: f64) -> u8 {
        let x = self.round(x);
        let sign = if x.is_sign_negative() { 0x80 } else { 0 };
        let top = ((1u32 << self.exponent) - 1) << self.fraction;
        if x.is_nan() {
            return sign | if self.infinities { top as u8 | 1 } else { 0x7f };
        }
        if x.is_infinite() {
            return sign | top as u8;
        }
        if x == 0.0 {
            return sign;
        }
        let bias = (1i32 << (self.exponent - 1)) - 1;
        let exponent = exponent_of(x).max(1 - bias);
        let units = (x.abs() / power_of_two(exponent - self.fraction as i32)) as u32;
        // A subnormal has no implicit one, which the sum below takes care of.
        let base = ((exponent + bias - 1) as u32) << self.fraction;
        sign | (base + units) as u8
    }
}

fn exponent_of(x: f64) -> i32 {
    ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023
}

fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023).clamp(1, 2046) as u64) << 52)
}

/// The nearest value of a float type, ties to even; other types leave it as it is.
pub fn round_to(dtype: DType, x: f64) -> f64 {
    match dtype {
        DType::F16 => f16::from_f64(x).to_f64(),
        DType::Bf16 => bf16::from_f64(x).to_f64(),
        DType::F8E4M3 => FloatFormat::E4M3.round(x),
        DType::F8E5M2 => FloatFormat::E5M2.round(x),
        DType::F32 => f64::from(x as f32),
        _ => x,
    }
}

/// Rounds floats that are held as `f32` to their type.
pub(super) fn round_all(dtype: DType, values: &mut [f32]) {
    match dtype {
        DType::F16 => values.iter_mut().for_each(|v| *v = f16::from_f32(*v).to_f32()),
        DType::Bf16 => values.iter_mut().for_each(|v| *v = bf16::from_f32(*v).to_f32()),
        DType::F8E4M3 | DType::F8E5M2 => {
            values.iter_mut().for_each(|v| *v = round_to(dtype, f64::from(*v)) as f32);
        }
        _ => {}
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
    let nibbles = |extend: fn(u8) -> u8| {
        let both = bytes.iter().flat_map(|b| [b & 15, b >> 4]);
        Data::B8(both.take(elements).map(extend).collect())
    };
    match dtype {
        DType::Bool => Data::B8(bytes.iter().map(|&b| u8::from(b != 0)).collect()),
        DType::I8 | DType::U8 => Data::B8(bytes.to_vec()),
        DType::I4 => nibbles(|n| if n & 8 == 0 { n } else { n | 0xf0 }),
        DType::U4 => nibbles(|n| n),
        DType::I16 | DType::U16 => Data::B16(numbers(bytes, i16::from_le_bytes)),
        DType::I32 | DType::U32 => Data::B32(numbers(bytes, i32::from_le_bytes)),
        DType::I64 | DType::U64 => Data::B64(numbers(bytes, i64::from_le_bytes)),
        DType::F8E4M3 => Data::F32(bytes.iter().map(|&b| FloatFormat::E4M3.decode(b)).collect()),
        DType::F8E5M2 => Data::F32(bytes.iter().map(|&b| FloatFormat::E5M2.decode(b)).collect()),
        DType::F16 => Data::F32(numbers(bytes, |b| f16::from_le_bytes(b).to_f32())),
        DType::Bf16 => Data::F32(numbers(bytes, |b| bf16::from_le_bytes(b).to_f32())),
        DType::F32 => Data::F32(numbers(bytes, f32::from_le_bytes)),
        DType::F64 => Data::F64(numbers(bytes, f64::from_le_bytes)),
    }
}

/// Elements as bytes, laid out as [`DType`] says.
pub(super) fn encode(dtype: DType, data: &Data) -> Vec<u8> {
    match data {
        Data::B8(v) if dtype.bits() == 4 => {
            let pair = |p: &[u8]| (p[0] & 15) | (p.get(1).copied().unwrap_or(0) << 4);
            v.chunks(2).map(pair).collect()
        }
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
    match dtype {
        DType::F8E4M3 => v.iter().map(|&x| FloatFormat::E4M3.encode(wide(x))).collect(),
        DType::F8E5M2 => v.iter().map(|&x| FloatFormat::E5M2.encode(wide(x))).collect(),
        DType::F16 => v.iter().flat_map(|&x| f16::from_f64(wide(x)).to_le_bytes()).collect(),
        DType::Bf16 => v.iter().flat_map(|&x| bf16::from_f64(wide(x)).to_le_bytes()).collect(),
        DType::F64 => v.iter().flat_map(|&x| wide(x).to_le_bytes()).collect(),
        _ => v.iter().flat_map(|&x| single(x).to_le_bytes()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_the_narrow_formats_survives() {
        for format in [FloatFormat::E4M3, FloatFormat::E5M2] {
            for byte in 0..=255u8 {
                let value = format.decode(byte);
                if value.is_nan() {
                    assert!(format.decode(format.encode(f64::from(value))).is_nan());
                } else {
                    assert_eq!(format.encode(f64::from(value)), byte, "{value}");
                }
            }
        }
    }

    #[test]
    fn rounding_is_to_nearest_even() {
        let round = |x| FloatFormat::E4M3.round(x);
        // Between 16 and 18, and between 18 and 20 (units of 2).
        assert_eq!((round(17.0), round(19.0), round(17.1)), (16.0, 20.0, 18.0));
        assert_eq!(FloatFormat::E4M3.decode(0x7e), 448.0);
        assert_eq!(FloatFormat::E4M3.decode(0x01), 2f32.powi(-9));
        assert_eq!(FloatFormat::E5M2.decode(0x01), 2f32.powi(-16));
        assert_eq!(round(2f64.powi(-10)), 0.0);
        assert_eq!(round(464.0), 448.0);
        assert!(round(465.0).is_nan());
        assert_eq!(FloatFormat::E5M2.round(70000.0), f64::INFINITY);
        assert_eq!(round_to(DType::Bf16, 1.00390625), 1.0);
    }
}
