//! Graph → groups → program.
//!
//! [`lower`] decides what is computed together (`fuse`), gives what is kept a home in memory
//! (`homes`), and makes a [`Group`](aot_kernels::group::Group) of every anchor with what surrounds
//! it. Rows that are no whole accesses are padded with zeros where that is worth it (`padding`).
//! [`interpret`] executes the result on the CPU, through the planned arena.

mod analysis;
mod anchors;
pub mod arena;
mod builder;
mod coords;
mod error;
mod fuse;
mod groups;
mod homes;
mod host;
pub mod interpret;
mod join;
mod lifetimes;
mod logarithm;
mod loops;
mod options;
mod order;
mod padding;
mod placement;
pub mod plan;
pub mod program;
mod pull;
mod resize;
mod scan;
mod state;
mod window;
mod work;
mod zero;

pub use error::LowerError;
pub use groups::lower;
pub use options::{LowerOptions, Precision};
pub use work::work;

use aot_ir::{Constant, DType, Graph, Scalar, ValueId};

/// The scalar that every element of a small constant is.
fn uniform_scalar(constant: &Constant) -> Option<Scalar> {
    let elements: usize = constant.shape.iter().product();
    if elements != 1 {
        return None;
    }
    read_scalar(constant.dtype, &constant.bytes)
}

/// The constant's scalar, if the value is a constant of one element.
fn small_constant(graph: &Graph, value: ValueId) -> Option<Scalar> {
    graph.constant_of(value).and_then(uniform_scalar)
}

/// The first element of bytes in this type.
fn read_scalar(dtype: DType, bytes: &[u8]) -> Option<Scalar> {
    macro_rules! read {
        ($t:ty) => {
            <$t>::from_le_bytes(bytes.get(..size_of::<$t>())?.try_into().ok()?)
        };
    }
    Some(match dtype {
        DType::Bool => Scalar::Bool(*bytes.first()? != 0),
        DType::I8 => Scalar::Int(read!(i8).into()),
        DType::U8 => Scalar::Int(read!(u8).into()),
        DType::I16 => Scalar::Int(read!(i16).into()),
        DType::U16 => Scalar::Int(read!(u16).into()),
        DType::I32 => Scalar::Int(read!(i32).into()),
        DType::U32 => Scalar::Int(read!(u32).into()),
        DType::I64 => Scalar::Int(read!(i64)),
        DType::U64 => Scalar::Int(read!(u64) as i64),
        DType::F16 => Scalar::Float(half::f16::from_bits(read!(u16)).to_f64()),
        DType::Bf16 => Scalar::Float(half::bf16::from_bits(read!(u16)).to_f64()),
        DType::F32 => Scalar::Float(read!(f32).into()),
        DType::F64 => Scalar::Float(read!(f64)),
        _ => return None,
    })
}
