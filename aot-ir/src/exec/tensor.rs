//! Tensors in memory.

use super::encode::{decode, encode, round_to};
use super::error::ExecError;
use crate::{Constant, DType, Scalar};
use half::{bf16, f16};
use std::fmt;
use std::sync::Arc;

/// Elements by storage class. Integers are held in the signed type of their width (those below 8
/// bits and `Bool` in bytes, signed ones extended), floats narrower than `F32` as `f32`, in wide mode all floats as
/// `f64`.
// Public for the sealed trait below only.
#[allow(unreachable_pub)]
#[derive(Clone, Debug)]
pub enum Data {
    B8(Vec<u8>),
    B16(Vec<i16>),
    B32(Vec<i32>),
    B64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

/// Evaluates an expression with the elements of any storage class.
macro_rules! each {
    ($data:expr, $v:ident => $body:expr) => {
        match $data {
            $crate::exec::tensor::Data::B8($v) => $body,
            $crate::exec::tensor::Data::B16($v) => $body,
            $crate::exec::tensor::Data::B32($v) => $body,
            $crate::exec::tensor::Data::B64($v) => $body,
            $crate::exec::tensor::Data::F32($v) => $body,
            $crate::exec::tensor::Data::F64($v) => $body,
        }
    };
}

/// As [`each`], giving `Data` of the same class made of what the expression gives.
macro_rules! map_each {
    ($data:expr, $v:ident => $body:expr) => {
        match $data {
            $crate::exec::tensor::Data::B8($v) => $crate::exec::tensor::Data::B8($body),
            $crate::exec::tensor::Data::B16($v) => $crate::exec::tensor::Data::B16($body),
            $crate::exec::tensor::Data::B32($v) => $crate::exec::tensor::Data::B32($body),
            $crate::exec::tensor::Data::B64($v) => $crate::exec::tensor::Data::B64($body),
            $crate::exec::tensor::Data::F32($v) => $crate::exec::tensor::Data::F32($body),
            $crate::exec::tensor::Data::F64($v) => $crate::exec::tensor::Data::F64($body),
        }
    };
}

pub(super) use map_each;

impl Data {
    pub(super) fn len(&self) -> usize {
        each!(self, v => v.len())
    }
}

/// A dense tensor in row-major order. Clones share the elements.
#[derive(Clone)]
pub struct Tensor {
    dtype: DType,
    shape: Vec<usize>,
    data: Arc<Data>,
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.dtype, self.shape)?;
        if self.len() <= 32 {
            each!(&*self.data, v => write!(f, " {v:?}"))?;
        }
        Ok(())
    }
}

/// Most elements of a tensor.
const MAX_ELEMENTS: usize = 1 << 36;

/// The number of elements of a shape.
///
/// # Errors
/// When a tensor of that many can't be held.
pub(super) fn elements(shape: &[usize]) -> Result<usize, ExecError> {
    let product = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    match product {
        Some(n) if n <= MAX_ELEMENTS => Ok(n),
        _ if shape.contains(&0) => Ok(0),
        _ => Err(ExecError::TooLarge(shape.iter().map(|&d| d as i64).collect())),
    }
}

impl Tensor {
    pub(super) fn raw(dtype: DType, shape: Vec<usize>, data: Data) -> Self {
        debug_assert_eq!(data.len(), shape.iter().product::<usize>());
        Self { dtype, shape, data: Arc::new(data) }
    }

    /// Elements in row-major order.
    ///
    /// # Errors
    /// When their number is not what the shape takes.
    pub fn from_vec<T: Element>(shape: Vec<usize>, values: Vec<T>) -> Result<Self, ExecError> {
        if elements(&shape)? != values.len() {
            let (found, dtype) = (values.len(), T::DTYPE);
            return Err(ExecError::Size { found, unit: "elements", dtype, shape });
        }
        Ok(Self::raw(T::DTYPE, shape, T::pack(values)))
    }

    /// Elements laid out as [`DType`] says.
    ///
    /// # Errors
    /// When the number of bytes is not what type and shape take.
    pub fn from_bytes(dtype: DType, shape: Vec<usize>, bytes: &[u8]) -> Result<Self, ExecError> {
        let n = elements(&shape)?;
        if dtype.bytes_for(n as u64) != Some(bytes.len() as u64) {
            return Err(ExecError::Size { found: bytes.len(), unit: "bytes", dtype, shape });
        }
        Ok(Self::raw(dtype, shape, decode(dtype, n, bytes)))
    }

    /// A constant of a graph.
    ///
    /// # Errors
    /// When its number of bytes is not what type and shape take.
    pub fn from_constant(constant: &Constant) -> Result<Self, ExecError> {
        Self::from_bytes(constant.dtype, constant.shape.clone(), &constant.bytes)
    }

    /// Numbers converted to a type: floats are rounded to it, integers truncated and saturated.
    ///
    /// # Errors
    /// When their number is not what the shape takes.
    pub fn from_f64(dtype: DType, shape: Vec<usize>, values: &[f64]) -> Result<Self, ExecError> {
        let wide = Self::from_vec(shape, values.to_vec())?;
        Ok(super::ops::cast::cast(&wide, dtype, false))
    }

    /// A tensor filled with one value.
    ///
    /// # Errors
    /// When it is too large.
    pub fn filled(dtype: DType, shape: Vec<usize>, value: Scalar) -> Result<Self, ExecError> {
        let n = elements(&shape)?;
        let int = value.as_i64();
        let data = match storage(dtype, false) {
            Storage::B8 if dtype == DType::Bool => {
                Data::B8(vec![u8::from(value.as_f64() != 0.0); n])
            }
            Storage::B8 => Data::B8(vec![wrap(dtype, int) as u8; n]),
            Storage::B16 => Data::B16(vec![int as i16; n]),
            Storage::B32 => Data::B32(vec![int as i32; n]),
            Storage::B64 => Data::B64(vec![int; n]),
            Storage::F32 => Data::F32(vec![round_to(dtype, value.as_f64()) as f32; n]),
            Storage::F64 => Data::F64(vec![value.as_f64(); n]),
        };
        Ok(Self::raw(dtype, shape, data))
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Extents, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Elements laid out as [`DType`] says.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(self.dtype, &self.data)
    }

    /// The elements.
    ///
    /// # Errors
    /// When they are of another type.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>, ExecError> {
        let mismatch = || ExecError::Element { found: self.dtype, expected: T::DTYPE };
        if T::DTYPE != self.dtype {
            return Err(mismatch());
        }
        T::unpack(&self.data).ok_or_else(mismatch)
    }

    /// The elements as `f64`, whatever their type (`Bool` as 0 and 1).
    pub fn to_f64(&self) -> Vec<f64> {
        match &*self.data {
            Data::F32(v) => v.iter().map(|&x| f64::from(x)).collect(),
            Data::F64(v) => v.clone(),
            _ if self.dtype == DType::U64 => {
                self.to_i64().into_iter().map(|x| x as u64 as f64).collect()
            }
            _ => self.to_i64().into_iter().map(|x| x as f64).collect(),
        }
    }

    /// The elements as `i64`: floats truncated, `U64` wrapped.
    pub fn to_i64(&self) -> Vec<i64> {
        match (&*self.data, self.dtype) {
            (Data::B8(v), t) if t.is_signed_int() => {
                v.iter().map(|&x| i64::from(x as i8)).collect()
            }
            (Data::B8(v), _) => v.iter().map(|&x| i64::from(x)).collect(),
            (Data::B16(v), DType::U16) => v.iter().map(|&x| i64::from(x as u16)).collect(),
            (Data::B16(v), _) => v.iter().map(|&x| i64::from(x)).collect(),
            (Data::B32(v), DType::U32) => v.iter().map(|&x| i64::from(x as u32)).collect(),
            (Data::B32(v), _) => v.iter().map(|&x| i64::from(x)).collect(),
            (Data::B64(v), _) => v.clone(),
            (Data::F32(v), _) => v.iter().map(|&x| x as i64).collect(),
            (Data::F64(v), _) => v.iter().map(|&x| x as i64).collect(),
        }
    }

    /// The same elements in another shape of as many.
    pub(super) fn with_shape(mut self, shape: Vec<usize>) -> Result<Self, ExecError> {
        if elements(&shape)? != self.len() {
            let (found, dtype) = (self.len(), self.dtype);
            return Err(ExecError::Size { found, unit: "elements", dtype, shape });
        }
        self.shape = shape;
        Ok(self)
    }

    /// With every float held as `f64`.
    pub(super) fn widened(self) -> Self {
        match &*self.data {
            Data::F32(v) => {
                let wide = Data::F64(v.iter().map(|&x| f64::from(x)).collect());
                Self::raw(self.dtype, self.shape, wide)
            }
            _ => self,
        }
    }

    /// With every float held as its type says, rounded to it.
    pub(super) fn narrowed(self) -> Self {
        match &*self.data {
            Data::F64(v) if self.dtype.is_float() && self.dtype != DType::F64 => {
                let narrow = v.iter().map(|&x| round_to(self.dtype, x) as f32).collect();
                Self::raw(self.dtype, self.shape, Data::F32(narrow))
            }
            _ => self,
        }
    }

    pub(super) fn data(&self) -> &Data {
        &self.data
    }

    /// Whether no clone shares the elements.
    pub(super) fn is_unique(&self) -> bool {
        Arc::strong_count(&self.data) == 1
    }

    /// The elements, copied only if a clone shares them.
    pub(super) fn into_data(self) -> Data {
        Arc::try_unwrap(self.data).unwrap_or_else(|shared| (*shared).clone())
    }

    /// Integers held as `i64`, wrapped to the width of `dtype`.
    pub(super) fn from_i64(dtype: DType, shape: Vec<usize>, values: Vec<i64>) -> Self {
        let data = match storage(dtype, false) {
            Storage::B8 => Data::B8(values.iter().map(|&v| wrap(dtype, v) as u8).collect()),
            Storage::B16 => Data::B16(values.iter().map(|&v| v as i16).collect()),
            Storage::B32 => Data::B32(values.iter().map(|&v| v as i32).collect()),
            Storage::B64 => Data::B64(values),
            Storage::F32 => Data::F32(values.iter().map(|&v| v as f32).collect()),
            Storage::F64 => Data::F64(values.iter().map(|&v| v as f64).collect()),
        };
        Self::raw(dtype, shape, data)
    }
}

/// The storage class of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storage {
    B8,
    B16,
    B32,
    B64,
    F32,
    F64,
}

pub(super) fn storage(dtype: DType, wide: bool) -> Storage {
    match dtype {
        DType::F64 => Storage::F64,
        _ if dtype.is_float() && wide => Storage::F64,
        _ if dtype.is_float() => Storage::F32,
        _ => match dtype.bits() {
            2 | 4 | 8 => Storage::B8,
            16 => Storage::B16,
            32 => Storage::B32,
            _ => Storage::B64,
        },
    }
}

/// An integer reduced to the width of its type, as `i64` (`U64` stays wrapped).
pub(super) fn wrap(dtype: DType, v: i64) -> i64 {
    match dtype {
        DType::Bool => i64::from(v != 0),
        DType::I4 => (v << 60) >> 60,
        DType::U4 => v & 15,
        DType::I2 => (v << 62) >> 62,
        DType::U2 => v & 3,
        DType::I8 => i64::from(v as i8),
        DType::U8 => i64::from(v as u8),
        DType::I16 => i64::from(v as i16),
        DType::U16 => i64::from(v as u16),
        DType::I32 => i64::from(v as i32),
        DType::U32 => i64::from(v as u32),
        _ => v,
    }
}

/// Rust types that are element types.
pub trait Element: Copy + Send + Sync + private::Pack + 'static {
    /// The element type.
    const DTYPE: DType;
}

mod private {
    use super::Data;

    #[allow(unreachable_pub)]
    pub trait Pack: Sized {
        fn pack(values: Vec<Self>) -> Data;
        fn unpack(data: &Data) -> Option<Vec<Self>>;
    }
}

macro_rules! elements {
    ($($type:ty, $dtype:ident, $class:ident, $to:expr, $from:expr;)*) => {$(
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;
        }

        impl private::Pack for $type {
            fn pack(values: Vec<Self>) -> Data {
                Data::$class(values.into_iter().map($to).collect())
            }

            fn unpack(data: &Data) -> Option<Vec<Self>> {
                match data {
                    Data::$class(v) => Some(v.iter().copied().map($from).collect()),
                    _ => None,
                }
            }
        }
    )*};
}

elements! {
    bool, Bool, B8, u8::from, |v| v != 0;
    u8, U8, B8, |v| v, |v| v;
    i8, I8, B8, |v| v as u8, |v| v as i8;
    i16, I16, B16, |v| v, |v| v;
    u16, U16, B16, |v| v as i16, |v| v as u16;
    i32, I32, B32, |v| v, |v| v;
    u32, U32, B32, |v| v as i32, |v| v as u32;
    i64, I64, B64, |v| v, |v| v;
    u64, U64, B64, |v| v as i64, |v| v as u64;
    f32, F32, F32, |v| v, |v| v;
    f64, F64, F64, |v| v, |v| v;
    f16, F16, F32, f16::to_f32, f16::from_f32;
    bf16, Bf16, F32, bf16::to_f32, bf16::from_f32;
}
