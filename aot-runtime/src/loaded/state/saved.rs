//! State as bytes.

use std::borrow::Cow;

use aot_ir::DType;
use serde::{Deserialize, Serialize};

use super::super::Signature;
use crate::artifact::{Container, FormatError, Kind, Name, Section, decode, name, write};
use crate::program::Port;
use crate::{Error, Result};

const INFO: Name = name("info");
const DATA: Name = name("data");

/// What a session kept.
#[derive(Debug)]
pub(super) struct Saved {
    model: String,
    /// In order of the inputs; none before the first run.
    pub(super) tensors: Vec<SavedTensor>,
    /// Their elements one after the other, row-major.
    data: Vec<u8>,
}

/// One tensor of it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedTensor {
    name: String,
    dtype: DType,
    shape: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
struct Info {
    model: String,
    tensors: Vec<SavedTensor>,
}

fn wrong(reason: impl ToString) -> Error {
    Error::SavedState { reason: reason.to_string() }
}

impl Saved {
    pub(super) fn new(signature: &Signature) -> Self {
        Self { model: signature.model.clone(), tensors: Vec::new(), data: Vec::new() }
    }

    /// Adds the tensor of an input.
    pub(super) fn add(&mut self, port: &Port, shape: &[usize], bytes: &[u8]) {
        let shape = shape.iter().map(|extent| *extent as u64).collect();
        self.tensors.push(SavedTensor { name: port.name.clone(), dtype: port.dtype, shape });
        self.data.extend_from_slice(bytes);
    }

    pub(super) fn write(self) -> Result<Vec<u8>> {
        let Self { model, tensors, data } = self;
        let info = postcard::to_allocvec(&Info { model, tensors }).map_err(wrong)?;
        let section = |name, bytes| Section { name, bytes: Cow::Owned(bytes), compress: false };
        Ok(write(Kind::State, vec![section(INFO, info), section(DATA, data)]))
    }

    /// Reads what [`Saved::write`] made of a session of the same model.
    pub(super) fn read(signature: &Signature, bytes: &[u8]) -> Result<Self> {
        let open = || {
            let container = Container::open(bytes, Kind::State)?;
            let info: Info = decode("info", &container.read(&container.expect(&INFO)?)?)?;
            let data = container.read(&container.expect(&DATA)?)?.into_owned();
            Ok((info, data))
        };
        let (info, data) = open().map_err(|error: FormatError| match error {
            FormatError::Magic | FormatError::Kind => wrong("the bytes are no saved state"),
            other => wrong(format!("what was saved {other}")),
        })?;
        let Info { model, tensors } = info;
        if model != signature.model {
            return Err(wrong(format!("it is of `{model}`, not of `{}`", signature.model)));
        }
        let fits = |tensor: &SavedTensor, port: &Port| {
            (&tensor.name, tensor.dtype, tensor.shape.len())
                == (&port.name, port.dtype, port.shape.len())
                && tensor.shape.iter().zip(&port.shape).all(|(extent, dim)| {
                    dim.as_const().is_none_or(|c| u64::try_from(c) == Ok(*extent))
                })
        };
        let ports = signature.state.iter().map(|s| &signature.inputs[s.input as usize]);
        let all = tensors.len() == signature.state.len()
            && tensors.iter().zip(ports).all(|(tensor, port)| fits(tensor, port));
        if !tensors.is_empty() && !all {
            return Err(wrong("it has other tensors than the model, which was built anew"));
        }
        Ok(Self { model, tensors, data })
    }

    /// The tensors with their elements.
    pub(super) fn parts(&self) -> Result<Vec<(&SavedTensor, &[u8])>> {
        let mut rest = self.data.as_slice();
        let mut out = Vec::with_capacity(self.tensors.len());
        for tensor in &self.tensors {
            let bytes = super::byte_length(tensor.dtype, &tensor.extents()?)?;
            let Some((own, others)) = rest.split_at_checked(bytes) else {
                return Err(wrong("it ends too early"));
            };
            out.push((tensor, own));
            rest = others;
        }
        if !rest.is_empty() {
            return Err(wrong("bytes are left over"));
        }
        Ok(out)
    }
}

impl SavedTensor {
    pub(super) fn extents(&self) -> Result<Vec<usize>> {
        let size = |extent: &u64| usize::try_from(*extent).map_err(wrong);
        self.shape.iter().map(size).collect()
    }
}
