//! ONNX models. The format is that of <https://onnx.ai/onnx/repo-docs/IR.html>.

mod builder;
mod call;
mod control;
mod file;
mod inputs;
mod known;
mod model;
mod nodes;
mod order;
mod outputs;
mod proto;
mod rules;
mod tensor;

#[cfg(test)]
mod tests;

pub use model::{describe, import, read_tensor};
