//! Files that hold one value, as inputs and outputs are often kept.

use super::super::error::ImportError;
use super::super::options::Form;
use super::file::Files;
use super::proto::{OptionalProto, SequenceProto, TensorProto};
use super::tensor;
use aot_ir::Constant;
use prost::Message;
use std::path::Path;

/// A value of a file.
#[derive(Clone, Debug)]
pub enum StoredValue {
    /// A tensor.
    Tensor(Constant),
    /// A sequence of tensors.
    Sequence(Vec<Constant>),
    /// An optional without element.
    Absent,
}

/// Reads a file that holds one ONNX tensor (a `TensorProto`).
///
/// # Errors
/// When the file can't be read or holds no tensor of a supported type.
pub fn read_tensor(path: &Path) -> Result<Constant, ImportError> {
    let mut files = Files::beside(path);
    let stored: TensorProto = decoded(path, &mut files)?;
    constant(path, &stored, &mut files)
}

/// Reads a file that holds one value of a form (a `TensorProto`, `SequenceProto` or `OptionalProto`).
///
/// # Errors
/// When the file can't be read or holds something else, or tensors of types that are not supported.
pub fn read_value(path: &Path, form: Form) -> Result<StoredValue, ImportError> {
    let mut files = Files::beside(path);
    let optional: OptionalProto = match (form.optional, form.sequence) {
        (true, _) => decoded(path, &mut files)?,
        (false, true) => {
            let sequence_value = Some(decoded::<SequenceProto>(path, &mut files)?);
            OptionalProto { sequence_value, tensor_value: None }
        }
        (false, false) => return read_tensor(path).map(StoredValue::Tensor),
    };
    match (optional.sequence_value, optional.tensor_value) {
        (Some(sequence), _) => {
            let all = sequence.tensor_values.iter().map(|t| constant(path, t, &mut files));
            Ok(StoredValue::Sequence(all.collect::<Result<_, _>>()?))
        }
        (None, Some(stored)) => constant(path, &stored, &mut files).map(StoredValue::Tensor),
        (None, None) => Ok(StoredValue::Absent),
    }
}

fn malformed(path: &Path, reason: String) -> ImportError {
    ImportError::Malformed { path: path.to_owned(), reason }
}

fn decoded<T: Message + Default>(path: &Path, files: &mut Files) -> Result<T, ImportError> {
    let bytes =
        files.open(path).map_err(|error| ImportError::Read { path: path.to_owned(), error })?;
    T::decode(bytes).map_err(|e| malformed(path, format!("no such value: {e}")))
}

fn constant(path: &Path, stored: &TensorProto, files: &mut Files) -> Result<Constant, ImportError> {
    tensor::constant(stored, files).map_err(|reason| malformed(path, reason))
}
