//! Kernels, one file a family.

mod attention;
pub(super) mod cast;
mod compare;
mod conv;
mod conv_transpose;
mod float;
mod geometry;
mod indexing;
mod integer;
mod matmul;
mod movement;
mod norm;
mod pad;
mod pointwise;
mod pool;
mod reduce;
mod resize;
mod scan;
mod scatter;
mod source;
mod strided;

pub(super) use attention::attention;
pub(super) use conv::conv;
pub(super) use conv_transpose::conv_transpose;
pub(super) use indexing::{gather, gather_elements, gather_nd};
pub(super) use matmul::matmul;
pub(super) use movement::{concat, expand, slice, transpose};
pub(super) use norm::{normalize, softmax};
pub(super) use pad::pad;
pub(super) use pointwise::{binary, select, unary};
pub(super) use pool::pool;
pub(super) use reduce::{arg_reduce, reduce};
pub(super) use resize::resize;
pub(super) use scan::scan;
pub(super) use scatter::{scatter_elements, scatter_nd};
pub(super) use source::{dims, iota};
