//! Operators of ONNX as operations of the graph, a file per family.

mod activation;
mod convolution;
mod elementwise;
mod generate;
mod indexing;
mod matmul;
mod norm;
mod pooling;
mod reduction;
mod resize;
mod shape;
mod slicing;
mod table;

pub(super) use table::{LATEST_OPSET, find};
