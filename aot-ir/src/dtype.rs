//! Element types.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The type of a tensor's elements.
///
/// Multi-byte elements are little-endian; those of 4 bits are packed two to a byte, those of 2 bits four to a
/// byte, the first in the lowest bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum DType {
    /// One byte, 0 or 1.
    Bool,
    /// 4-bit signed integer.
    I4,
    /// 4-bit unsigned integer.
    U4,
    /// 8-bit signed integer.
    I8,
    /// 8-bit unsigned integer.
    U8,
    /// 16-bit signed integer.
    I16,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit signed integer.
    I32,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit signed integer.
    I64,
    /// 64-bit unsigned integer.
    U64,
    /// 8-bit float, 4 exponent bits, no infinities (OCP E4M3FN).
    F8E4M3,
    /// 8-bit float, 5 exponent bits (OCP E5M2).
    F8E5M2,
    /// IEEE 754 binary16.
    F16,
    /// bfloat16: the upper half of binary32.
    Bf16,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// 8-bit float, 4 exponent bits with bias 8, no infinities, no -0 (E4M3FNUZ).
    F8E4M3Fnuz,
    /// 8-bit float, 5 exponent bits with bias 16, no infinities, no -0 (E5M2FNUZ).
    F8E5M2Fnuz,
    /// A power of two from 2⁻¹²⁷ to 2¹²⁷ (OCP E8M0): no sign, no zero.
    F8E8M0,
    /// 4-bit float, 2 exponent bits, no infinities, no NaN (OCP E2M1).
    F4E2M1,
    /// 2-bit signed integer.
    I2,
    /// 2-bit unsigned integer.
    U2,
}

impl DType {
    /// Width of one element in bits.
    pub const fn bits(self) -> u32 {
        match self {
            Self::I2 | Self::U2 => 2,
            Self::I4 | Self::U4 | Self::F4E2M1 => 4,
            Self::Bool | Self::I8 | Self::U8 => 8,
            Self::F8E4M3 | Self::F8E5M2 | Self::F8E4M3Fnuz | Self::F8E5M2Fnuz | Self::F8E8M0 => 8,
            Self::I16 | Self::U16 | Self::F16 | Self::Bf16 => 16,
            Self::I32 | Self::U32 | Self::F32 => 32,
            Self::I64 | Self::U64 | Self::F64 => 64,
        }
    }

    /// Bytes that `elements` elements take, packed; `None` on overflow.
    pub const fn bytes_for(self, elements: u64) -> Option<u64> {
        match elements.checked_mul(self.bits() as u64) {
            Some(bits) => Some(bits.div_ceil(8)),
            None => None,
        }
    }

    /// Whether this is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64) || self.is_narrow_float()
    }

    /// Whether this is a floating-point type of at most 8 bits.
    pub const fn is_narrow_float(self) -> bool {
        matches!(
            self,
            Self::F8E4M3
                | Self::F8E5M2
                | Self::F8E4M3Fnuz
                | Self::F8E5M2Fnuz
                | Self::F8E8M0
                | Self::F4E2M1
        )
    }

    /// Whether this is a signed or unsigned integer type (`Bool` is not).
    pub const fn is_int(self) -> bool {
        !self.is_float() && !matches!(self, Self::Bool)
    }

    /// Whether this is a signed integer type.
    pub const fn is_signed_int(self) -> bool {
        matches!(self, Self::I2 | Self::I4 | Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }

    /// The Rust-like name: `f32`, `bf16`, `i64`, `bool`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I4 => "i4",
            Self::U4 => "u4",
            Self::I8 => "i8",
            Self::U8 => "u8",
            Self::I16 => "i16",
            Self::U16 => "u16",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::I64 => "i64",
            Self::U64 => "u64",
            Self::F8E4M3 => "f8e4m3",
            Self::F8E5M2 => "f8e5m2",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::F8E4M3Fnuz => "f8e4m3fnuz",
            Self::F8E5M2Fnuz => "f8e5m2fnuz",
            Self::F8E8M0 => "f8e8m0",
            Self::F4E2M1 => "f4e2m1",
            Self::I2 => "i2",
            Self::U2 => "u2",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
