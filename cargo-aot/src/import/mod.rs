//! Model file → [`Graph`](aot_ir::Graph).

mod error;
mod onnx;
mod options;

pub use error::{ImportError, Unbound, Unsupported};
pub use onnx::{describe, import, read_tensor};
pub use options::{AxisSpec, Description, DimInfo, DimSpec, ImportOptions, Imported, TensorInfo};
