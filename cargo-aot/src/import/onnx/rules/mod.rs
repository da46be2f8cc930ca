//! Operators of ONNX as operations of the graph, a file per family.

mod activation;
mod attention;
mod classical;
mod convolution;
mod deformable;
mod early;
mod einsum;
mod elementwise;
mod forest;
mod generate;
mod grid;
mod indexing;
mod losses;
mod matmul;
mod mel;
mod microsoft;
mod ngrams;
mod norm;
mod pool_indices;
mod pooling;
mod quantized;
mod recurrent;
mod recurrent_cell;
mod recurrent_weights;
mod reduction;
mod regions;
mod resample;
mod resize;
mod selection;
mod shape;
mod signal;
mod slicing;
mod suppression;
mod table;
mod trees;

pub(super) use table::{LATEST_CLASSICAL, LATEST_OPSET, find, listed};
