//! ONNX models. The format is that of <https://onnx.ai/onnx/repo-docs/IR.html>.

mod builder;
mod call;
mod control;
mod file;
mod functions;
mod inputs;
mod interface;
mod item;
mod known;
mod model;
mod nodes;
mod operators;
mod order;
mod outputs;
mod proto;
mod rules;
mod sequences;
mod stored;
mod tensor;

#[cfg(test)]
mod tests;

pub use model::{describe, import};
pub use operators::operators;
pub use stored::{StoredValue, read_tensor, read_value};
