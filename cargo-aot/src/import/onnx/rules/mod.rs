//! Operators of ONNX as operations of the graph, a file per family.

mod activation;
mod attention;
mod convolution;
mod einsum;
mod elementwise;
mod generate;
mod grid;
mod indexing;
mod matmul;
mod microsoft;
mod norm;
mod pooling;
mod quantized;
mod recurrent;
mod reduction;
mod resize;
mod shape;
mod slicing;
mod table;

pub(super) use table::{LATEST_OPSET, find};
