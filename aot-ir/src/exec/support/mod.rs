//! What kernels of several families share.

mod gemm;
mod rows;
mod threads;

pub(super) use gemm::{Gemm, Matrix, MatrixMut};
pub(super) use rows::{Rows, broadcast_strides, contiguous};
pub(super) use threads::parts;
