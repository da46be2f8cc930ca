//! Names of types in kernel text.

use aot_ir::DType;

/// How an element of this type is stored: a type of the prelude (`types.cuh`).
///
/// Elements of less than 8 bits are packed in bytes and have no type of their own.
pub fn storage_type(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "bool8",
        DType::I2 | DType::U2 | DType::I4 | DType::U4 | DType::F4E2M1 => "unsigned char",
        DType::I8 => "signed char",
        DType::U8 => "unsigned char",
        DType::I16 => "short",
        DType::U16 => "unsigned short",
        DType::I32 => "int",
        DType::U32 => "unsigned",
        DType::I64 => "long long",
        DType::U64 => "unsigned long long",
        DType::F8E4M3 => "f8e4m3",
        DType::F8E5M2 => "f8e5m2",
        DType::F8E4M3Fnuz => "f8e4m3fnuz",
        DType::F8E5M2Fnuz => "f8e5m2fnuz",
        DType::F8E8M0 => "f8e8m0",
        DType::F16 => "f16",
        DType::Bf16 => "bf16",
        DType::F32 => "float",
        DType::F64 => "double",
        _ => "unsupported_type",
    }
}

/// The type that a computation in `dtype` has in C++; `dtype` is a compute type.
pub fn compute_type_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "bool",
        DType::F64 => "double",
        DType::I64 => "long long",
        DType::U64 => "unsigned long long",
        DType::U32 => "unsigned",
        t if t.is_float() => "float",
        _ => "int",
    }
}

/// Bytes of one stored element; `None` for packed types.
pub fn element_bytes(dtype: DType) -> Option<i64> {
    match dtype.bits() {
        0..8 => None,
        bits => Some(i64::from(bits / 8)),
    }
}
