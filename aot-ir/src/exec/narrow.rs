//! Floating-point formats of at most 8 bits.

use crate::DType;

/// What the codes of a format stand for that are no finite numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Special {
    /// As IEEE 754 has it: the largest exponent is for infinities and NaN.
    Infinities,
    /// All ones are NaN, of both signs.
    Nan,
    /// What would be -0 is NaN.
    NanForNegativeZero,
    /// All codes are finite; what is too large becomes the largest number, NaN becomes -0.
    None,
    /// No sign and no fraction: codes are exponents, the largest of them is NaN. Halfway to the next power of
    /// two rounds up, what is too small becomes the smallest one.
    PowersOfTwo,
}

/// A format.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NarrowFloat {
    /// Bits of the exponent.
    exponent: u32,
    /// Bits of the fraction.
    fraction: u32,
    bias: i32,
    /// Largest finite value.
    max: f64,
    special: Special,
}

impl NarrowFloat {
    /// The format of a type, if it is one of these.
    pub fn of(dtype: DType) -> Option<Self> {
        let (exponent, fraction, bias, max, special) = match dtype {
            DType::F8E4M3 => (4, 3, 7, 448.0, Special::Nan),
            DType::F8E5M2 => (5, 2, 15, 57344.0, Special::Infinities),
            DType::F8E4M3Fnuz => (4, 3, 8, 240.0, Special::NanForNegativeZero),
            DType::F8E5M2Fnuz => (5, 2, 16, 57344.0, Special::NanForNegativeZero),
            DType::F4E2M1 => (2, 1, 1, 6.0, Special::None),
            DType::F8E8M0 => (8, 0, 127, power_of_two(127), Special::PowersOfTwo),
            _ => return None,
        };
        Some(Self { exponent, fraction, bias, max, special })
    }

    /// The largest finite value.
    pub fn max(self) -> f64 {
        self.max
    }

    /// The nearest value of the format, ties to even. Beyond the largest one: infinity, or NaN in a
    /// format without infinities, or the largest value in one without NaN.
    pub fn round(self, x: f64) -> f64 {
        match self.special {
            Special::PowersOfTwo => return self.round_to_power(x),
            Special::None if x.is_nan() => return -0.0,
            Special::NanForNegativeZero if x == 0.0 => return 0.0,
            _ if x == 0.0 || x.is_nan() => return x,
            _ => {}
        }
        let exponent = exponent_of(x).max(1 - self.bias);
        // One unit in the last place.
        let unit = power_of_two(exponent - self.fraction as i32);
        let rounded = (x / unit).round_ties_even() * unit;
        if rounded.abs() <= self.max {
            // A tiny negative number becomes 0 where there is no -0.
            let no_sign = self.special == Special::NanForNegativeZero && rounded == 0.0;
            return if no_sign { 0.0 } else { rounded };
        }
        match self.special {
            Special::Infinities => f64::INFINITY.copysign(x),
            Special::None => self.max.copysign(x),
            _ => f64::NAN.copysign(x),
        }
    }

    /// The nearest power of two of the magnitude of `x`, upwards from halfway; NaN beyond the largest.
    fn round_to_power(self, x: f64) -> f64 {
        if !x.is_finite() {
            return f64::NAN;
        }
        let low = exponent_of(x).max(-self.bias);
        let up = x.abs() >= 1.5 * power_of_two(low);
        let rounded = power_of_two(low + i32::from(up));
        if rounded <= self.max { rounded } else { f64::NAN }
    }

    fn sign_bit(self) -> u32 {
        1 << (self.exponent + self.fraction)
    }

    /// The value of a code, which is in the lowest bits.
    pub fn decode(self, code: u8) -> f32 {
        let code = u32::from(code);
        let magnitude = code & (self.sign_bit() - 1);
        let fraction = magnitude & ((1 << self.fraction) - 1);
        let exponent = magnitude >> self.fraction;
        let all_ones = exponent == (1 << self.exponent) - 1;
        let sign = if code == magnitude { 1.0 } else { -1.0 };
        match self.special {
            Special::Infinities if all_ones && fraction == 0 => return f32::INFINITY * sign,
            Special::Infinities if all_ones => return f32::NAN,
            Special::Nan if magnitude == self.sign_bit() - 1 => return f32::NAN,
            Special::NanForNegativeZero if code == self.sign_bit() => return f32::NAN,
            Special::PowersOfTwo if all_ones => return f32::NAN,
            Special::PowersOfTwo => return power_of_two(exponent as i32 - self.bias) as f32,
            _ => {}
        }
        let scale = |e: i32| power_of_two(e - self.fraction as i32) as f32;
        sign * match exponent {
            0 => fraction as f32 * scale(1 - self.bias),
            e => (fraction + (1 << self.fraction)) as f32 * scale(e as i32 - self.bias),
        }
    }

    /// The code of the nearest value, in the lowest bits; see [`NarrowFloat::round`].
    pub fn encode(self, x: f64) -> u8 {
        let x = self.round(x);
        let sign = if x.is_sign_negative() { self.sign_bit() } else { 0 };
        let top = ((1u32 << self.exponent) - 1) << self.fraction;
        let code = if x.is_nan() {
            match self.special {
                Special::Infinities => sign | top | 1,
                Special::NanForNegativeZero => self.sign_bit(),
                Special::PowersOfTwo => top,
                _ => sign | (self.sign_bit() - 1),
            }
        } else if x.is_infinite() {
            sign | top
        } else if x == 0.0 {
            sign
        } else if self.special == Special::PowersOfTwo {
            (exponent_of(x) + self.bias) as u32
        } else {
            let exponent = exponent_of(x).max(1 - self.bias);
            let units = (x.abs() / power_of_two(exponent - self.fraction as i32)) as u32;
            // A subnormal has no implicit one, which the sum below takes care of.
            let base = ((exponent + self.bias - 1) as u32) << self.fraction;
            sign | (base + units)
        };
        code as u8
    }
}

fn exponent_of(x: f64) -> i32 {
    ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023
}

fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023).clamp(1, 2046) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPES: [DType; 6] = [
        DType::F8E4M3,
        DType::F8E5M2,
        DType::F8E4M3Fnuz,
        DType::F8E5M2Fnuz,
        DType::F8E8M0,
        DType::F4E2M1,
    ];

    fn format(dtype: DType) -> NarrowFloat {
        NarrowFloat::of(dtype).unwrap()
    }

    #[test]
    fn every_code_survives() {
        for dtype in TYPES {
            let format = format(dtype);
            for code in 0..=u8::MAX >> (8 - dtype.bits()) {
                let value = f64::from(format.decode(code));
                if value.is_nan() {
                    assert!(format.decode(format.encode(value)).is_nan());
                } else {
                    assert_eq!(format.encode(value), code, "{value} as {dtype}");
                    assert!(value.abs() <= format.max() || value.is_infinite());
                }
            }
        }
    }

    #[test]
    fn rounding_is_to_nearest_even() {
        let round = |x| format(DType::F8E4M3).round(x);
        // Between 16 and 18, and between 18 and 20 (units of 2).
        assert_eq!((round(17.0), round(19.0), round(17.1)), (16.0, 20.0, 18.0));
        assert_eq!(format(DType::F8E4M3).decode(0x7e), 448.0);
        assert_eq!(format(DType::F8E4M3).decode(0x01), 2f32.powi(-9));
        assert_eq!(format(DType::F8E5M2).decode(0x01), 2f32.powi(-16));
        assert_eq!(round(2f64.powi(-10)), 0.0);
        assert_eq!(round(464.0), 448.0);
        assert!(round(465.0).is_nan());
        assert_eq!(format(DType::F8E5M2).round(70000.0), f64::INFINITY);
    }

    #[test]
    fn formats_without_signed_zero_infinities_or_nan() {
        let fnuz = format(DType::F8E4M3Fnuz);
        assert_eq!((fnuz.encode(-0.0), fnuz.encode(-1e-9), fnuz.encode(f64::NAN)), (0, 0, 0x80));
        assert_eq!((fnuz.decode(0x7f), fnuz.decode(0x01)), (240.0, 2f32.powi(-10)));
        assert!(fnuz.round(1e9).is_nan());
        assert_eq!(format(DType::F8E5M2Fnuz).decode(0x01), 2f32.powi(-17));
        let tiny = format(DType::F4E2M1);
        assert_eq!(tiny.round(f64::NEG_INFINITY), -6.0);
        assert_eq!((tiny.round(0.25), tiny.round(0.75), tiny.round(5.0)), (0.0, 1.0, 4.0));
        assert_eq!(tiny.encode(f64::NAN), 0x8);
        let powers = format(DType::F8E8M0);
        assert_eq!(
            (powers.round(1.49), powers.round(1.5), powers.round(0.0)),
            (1.0, 2.0, powers.round(1e-300))
        );
        assert_eq!(
            (powers.encode(0.0), powers.encode(1.0), powers.encode(f64::NAN)),
            (0, 127, 255)
        );
        assert!(powers.round(powers.max() * 1.5).is_nan());
    }
}
