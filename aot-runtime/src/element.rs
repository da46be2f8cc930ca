//! Rust types of tensor elements.

use aot_ir::DType;
use half::{bf16, f16};
use zerocopy::IntoBytes;

/// A Rust type that tensors can have as elements.
///
/// Implemented for `bool`, the integers of 8 to 64 bits, [`struct@f16`], [`bf16`], `f32` and `f64`, and
/// for nothing else.
pub trait Element:
    sealed::Sealed + Copy + Default + PartialEq + std::fmt::Debug + Send + Sync + 'static
{
    /// The element type as models know it.
    const DTYPE: DType;

    /// The elements' memory.
    #[doc(hidden)]
    fn bytes_of(elements: &[Self]) -> &[u8];

    /// Overwrites elements with those that `bytes` hold; the shorter of the two decides how many.
    #[doc(hidden)]
    fn copy_from_bytes(elements: &mut [Self], bytes: &[u8]);
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! plain_elements {
    ($($type:ty => $dtype:ident),* $(,)?) => {$(
        impl sealed::Sealed for $type {}
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;

            fn bytes_of(elements: &[Self]) -> &[u8] {
                elements.as_bytes()
            }

            fn copy_from_bytes(elements: &mut [Self], bytes: &[u8]) {
                let all = <[Self]>::as_mut_bytes(elements);
                let n = all.len().min(bytes.len());
                all[..n].copy_from_slice(&bytes[..n]);
            }
        }
    )*};
}

plain_elements! {
    i8 => I8, u8 => U8, i16 => I16, u16 => U16, i32 => I32, u32 => U32, i64 => I64, u64 => U64,
    f16 => F16, bf16 => Bf16, f32 => F32, f64 => F64,
}

impl sealed::Sealed for bool {}
impl Element for bool {
    const DTYPE: DType = DType::Bool;

    fn bytes_of(elements: &[Self]) -> &[u8] {
        elements.as_bytes()
    }

    fn copy_from_bytes(elements: &mut [Self], bytes: &[u8]) {
        for (element, byte) in elements.iter_mut().zip(bytes) {
            *element = *byte != 0;
        }
    }
}
