//! Names of types in kernel text.

use aot_ir::DType;

/// How an element of this type is stored: a type of the prelude (`types.cuh`).
///
/// `I4` and `U4` are packed two to a byte and have no type of their own.
pub fn storage_type(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "bool8",
        DType::I4 | DType::U4 => "unsigned char",
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

/// Bytes of one stored element; `None` for packed 4-bit types.
pub fn element_bytes(dtype: DType) -> Option<i64> {
    match dtype.bits() {
        4 => None,
        bits => Some(i64::from(bits / 8)),
    }
}
