//! Stored tensors → constants.

use super::file::Files;
use super::proto::{EXTERNAL, SparseTensorProto, StringEntry, TensorProto};
use aot_ir::{Bytes, Constant, DType};
use std::sync::Arc;

/// Largest size in bytes that a sparse tensor is spread to.
const MAX_DENSE: usize = 1 << 30;
/// The code of texts.
pub(super) const STRING: i32 = 8;
/// Greatest rank accepted.
pub(super) const MAX_RANK: usize = 16;

/// The element type of a `TensorProto.DataType` code.
///
/// # Errors
/// The name of a type that is not supported.
pub(super) fn dtype(code: i32) -> Result<DType, String> {
    let other = match code {
        1 => return Ok(DType::F32),
        2 => return Ok(DType::U8),
        3 => return Ok(DType::I8),
        4 => return Ok(DType::U16),
        5 => return Ok(DType::I16),
        6 => return Ok(DType::I32),
        7 => return Ok(DType::I64),
        9 => return Ok(DType::Bool),
        10 => return Ok(DType::F16),
        11 => return Ok(DType::F64),
        12 => return Ok(DType::U32),
        13 => return Ok(DType::U64),
        16 => return Ok(DType::Bf16),
        17 => return Ok(DType::F8E4M3),
        18 => return Ok(DType::F8E4M3Fnuz),
        19 => return Ok(DType::F8E5M2),
        20 => return Ok(DType::F8E5M2Fnuz),
        21 => return Ok(DType::U4),
        22 => return Ok(DType::I4),
        23 => return Ok(DType::F4E2M1),
        24 => return Ok(DType::F8E8M0),
        25 => return Ok(DType::U2),
        26 => return Ok(DType::I2),
        0 => "undefined",
        8 => "string",
        14 => "complex64",
        15 => "complex128",
        _ => return Err(format!("element type {code} is not known")),
    };
    Err(format!("element type {other} is not supported"))
}

/// Makes a constant of a stored tensor; bytes of mapped files are not copied.
///
/// # Errors
/// A text for users.
pub(super) fn constant(tensor: &TensorProto, files: &mut Files) -> Result<Constant, String> {
    let dtype = dtype(tensor.data_type)?;
    if tensor.dims.len() > MAX_RANK {
        return Err(format!("rank {} is above {MAX_RANK}", tensor.dims.len()));
    }
    let shape = tensor
        .dims
        .iter()
        .map(|&d| usize::try_from(d).map_err(|_| format!("shape {:?} is negative", tensor.dims)))
        .collect::<Result<Vec<_>, _>>()?;
    let elements = shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d as u64));
    let (elements, size) = elements
        .and_then(|n| Some((n, dtype.bytes_for(n)?)))
        .filter(|(_, size)| *size <= isize::MAX as u64)
        .ok_or_else(|| format!("shape {shape:?} is too large"))?;
    let bytes = if tensor.data_location == EXTERNAL {
        external(&tensor.external_data, size, files)?
    } else if let Some(raw) = &tensor.raw_data {
        Bytes::new(Arc::new(raw.clone()))
    } else {
        typed(tensor, dtype, elements)?.into()
    };
    if bytes.len() as u64 != size {
        return Err(format!(
            "{} bytes are stored, but {dtype} {shape:?} takes {size}",
            bytes.len()
        ));
    }
    let bytes = if dtype == DType::Bool && bytes.iter().any(|&b| b > 1) {
        bytes.iter().map(|&b| u8::from(b != 0)).collect::<Vec<_>>().into()
    } else {
        bytes
    };
    Ok(Constant { name: tensor.name.clone(), dtype, shape, bytes })
}

/// A stored tensor of texts.
pub(super) struct Texts {
    /// The elements, row by row.
    pub(super) elements: Vec<String>,
    pub(super) shape: Vec<usize>,
}

/// A stored tensor, if it holds texts.
///
/// # Errors
/// A text for users.
pub(super) fn texts(tensor: &TensorProto) -> Result<Option<Texts>, String> {
    if tensor.data_type != STRING {
        return Ok(None);
    }
    let elements = tensor.string_data.iter().map(|bytes| String::from_utf8(bytes.to_vec()));
    let elements = elements.collect::<Result<Vec<_>, _>>();
    let elements = elements.map_err(|_| "a text is not UTF-8".to_owned())?;
    let shape = tensor.dims.iter().map(|&d| usize::try_from(d)).collect::<Result<Vec<_>, _>>();
    let shape = shape.map_err(|_| format!("shape {:?} is negative", tensor.dims))?;
    Ok(Some(Texts { elements, shape }))
}

fn external(entries: &[StringEntry], size: u64, files: &mut Files) -> Result<Bytes, String> {
    let find = |key: &str| entries.iter().find(|e| e.key == key).map(|e| e.value.as_str());
    let number = |key: &str, default: u64| match find(key) {
        None => Ok(default),
        Some(text) => text.parse::<u64>().map_err(|_| format!("external data's {key} is `{text}`")),
    };
    let location = find("location").ok_or("external data without location")?;
    let (offset, length) = (number("offset", 0)?, number("length", size)?);
    let file = files.open_external(location)?;
    let end = offset.checked_add(length).filter(|&end| end <= file.len() as u64);
    let Some(end) = end else {
        return Err(format!(
            "external data `{location}` has {} bytes, but bytes {offset}.. of length {length} are needed",
            file.len()
        ));
    };
    // Both are at most the file's length, which is a usize.
    Ok(Bytes::new(Arc::new(file.slice(offset as usize..end as usize))))
}

/// The fields for single types; which one holds which type is fixed by onnx.proto.
fn typed(tensor: &TensorProto, dtype: DType, elements: u64) -> Result<Vec<u8>, String> {
    fn all<T, const N: usize>(items: &[T], f: impl Fn(&T) -> [u8; N]) -> Vec<u8> {
        items.iter().flat_map(f).collect()
    }
    let stored = match dtype {
        DType::F32 => tensor.float_data.len(),
        DType::F64 => tensor.double_data.len(),
        DType::I64 => tensor.int64_data.len(),
        DType::U64 | DType::U32 => tensor.uint64_data.len(),
        _ => tensor.int32_data.len(),
    };
    // Elements of less than 8 bits are packed as in raw data, a byte to an entry.
    let needed = match dtype.bits() {
        bits @ ..8 => elements.div_ceil(u64::from(8 / bits)),
        _ => elements,
    };
    if stored as u64 != needed {
        return Err(format!("{stored} elements are stored where {needed} are needed"));
    }
    Ok(match dtype {
        DType::F32 => all(&tensor.float_data, |v| v.to_le_bytes()),
        DType::F64 => all(&tensor.double_data, |v| v.to_le_bytes()),
        DType::I64 => all(&tensor.int64_data, |v| v.to_le_bytes()),
        DType::U64 => all(&tensor.uint64_data, |v| v.to_le_bytes()),
        DType::U32 => all(&tensor.uint64_data, |v| (*v as u32).to_le_bytes()),
        DType::I32 => all(&tensor.int32_data, |v| v.to_le_bytes()),
        _ if dtype.bits() == 16 => all(&tensor.int32_data, |v| (*v as u16).to_le_bytes()),
        _ => all(&tensor.int32_data, |v| [*v as u8]),
    })
}

/// Makes a dense constant of a sparse one.
///
/// # Errors
/// A text for users.
pub(super) fn dense(sparse: &SparseTensorProto, files: &mut Files) -> Result<Constant, String> {
    let (Some(values), Some(indices)) = (&sparse.values, &sparse.indices) else {
        return Err("sparse tensor without values or indices".to_owned());
    };
    let (values, indices) = (constant(values, files)?, constant(indices, files)?);
    let shape = sparse
        .dims
        .iter()
        .map(|&d| usize::try_from(d).map_err(|_| format!("shape {:?} is negative", sparse.dims)))
        .collect::<Result<Vec<_>, _>>()?;
    let width = values.dtype.bits() as usize / 8;
    let size = shape.iter().try_fold(width, |n, &d| n.checked_mul(d));
    let size = size.filter(|&n| n <= MAX_DENSE).ok_or("sparse tensor is too large")?;
    if width == 0 || indices.dtype != DType::I64 {
        return Err("sparse tensor of unsupported types".to_owned());
    }
    let mut bytes = vec![0; size];
    let count = values.bytes.len() / width;
    let flat = indices.shape.len() == 1;
    let per_value = if flat { 1 } else { shape.len() };
    let indices: Vec<i64> =
        indices.bytes.as_chunks::<8>().0.iter().map(|c| i64::from_le_bytes(*c)).collect();
    if indices.len() != count * per_value {
        return Err(format!("{} indices for {count} values", indices.len()));
    }
    for i in 0..count {
        let index = &indices[i * per_value..(i + 1) * per_value];
        let place = if flat {
            usize::try_from(index[0]).ok()
        } else {
            index.iter().zip(&shape).try_fold(0usize, |at, (&i, &d)| {
                let i = usize::try_from(i).ok().filter(|&i| i < d)?;
                Some(at * d + i)
            })
        };
        let target = place.and_then(|p| bytes.get_mut(p.checked_mul(width)?..)?.get_mut(..width));
        let Some(target) = target else {
            return Err(format!("sparse index {index:?} is outside shape {shape:?}"));
        };
        target.copy_from_slice(&values.bytes[i * width..(i + 1) * width]);
    }
    Ok(Constant { name: values.name, dtype: values.dtype, shape, bytes: bytes.into() })
}
