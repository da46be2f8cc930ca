//! Model file → [`Graph`](aot_ir::Graph).

mod error;
mod onnx;
mod options;

pub use error::{ImportError, Unbound, Unsupported};
pub use onnx::{StoredValue, describe, import, operators, read_tensor, read_value};
pub use options::{
    AxisSpec, Description, DimInfo, DimSpec, Form, ImportOptions, Imported, Operator, Structure,
    TensorInfo,
};
