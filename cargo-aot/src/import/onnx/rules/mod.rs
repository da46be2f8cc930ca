//! Operators of ONNX as operations of the graph, a file per family.

mod activation;
mod attention;
mod convolution;
mod einsum;
mod elementwise;
mod generate;
mod indexing;
mod matmul;
mod norm;
mod pooling;
mod quantized;
mod reduction;
mod resize;
mod shape;
mod slicing;
mod table;

pub(super) use table::{LATEST_OPSET, find};
