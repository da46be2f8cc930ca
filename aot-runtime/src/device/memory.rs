//! Memory that device tensors lie in.

use crate::ports::HostSink;
use crate::{Error, Result};

#[cfg(feature = "cuda")]
use std::sync::Arc;

#[cfg(feature = "cuda")]
use crate::cuda;

/// Bytes on a device.
#[derive(Debug)]
pub(crate) enum Memory {
    /// The CPU's.
    Host(Vec<u8>),
    /// A GPU's.
    #[cfg(feature = "cuda")]
    Cuda(Arc<cuda::Shared>),
}

impl Memory {
    pub(crate) fn host(bytes: usize) -> Result<Self> {
        let mut data = Vec::new();
        let full = |_| Error::OutOfHostMemory { needed: bytes as u64 };
        data.try_reserve_exact(bytes).map_err(full)?;
        data.resize(bytes, 0);
        Ok(Self::Host(data))
    }

    /// Other memory of the same device with the same content.
    pub(crate) fn duplicate(&self) -> Result<Self> {
        match self {
            Self::Host(data) => {
                let mut copy = Self::host(data.len())?;
                copy.write(data)?;
                Ok(copy)
            }
            #[cfg(feature = "cuda")]
            Self::Cuda(shared) => Ok(Self::Cuda(Arc::new(shared.duplicate()?))),
        }
    }

    /// The same memory once more, for a run that reads it and appends to it; none of the CPU, where nothing is appended.
    pub(crate) fn share(&self) -> Option<Self> {
        match self {
            Self::Host(_) => None,
            #[cfg(feature = "cuda")]
            Self::Cuda(shared) => Some(Self::Cuda(shared.clone())),
        }
    }

    /// How many bytes these are.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Host(data) => data.len(),
            #[cfg(feature = "cuda")]
            Self::Cuda(shared) => shared.bytes(),
        }
    }

    /// Other memory of the same device in its place, of this length and unspecified content.
    pub(crate) fn replace(&mut self, bytes: usize) -> Result<()> {
        *self = match self {
            Self::Host(_) => Self::host(bytes)?,
            #[cfg(feature = "cuda")]
            Self::Cuda(shared) => {
                Self::Cuda(Arc::new(cuda::Shared::new(shared.gpu(), bytes, "a tensor")?))
            }
        };
        Ok(())
    }

    /// Overwrites all bytes; ordered after everything that uses the memory.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Self::Host(data) => {
                let n = data.len().min(bytes.len());
                data[..n].copy_from_slice(&bytes[..n]);
                Ok(())
            }
            #[cfg(feature = "cuda")]
            Self::Cuda(shared) => shared.write(bytes),
        }
    }

    /// Makes all bytes zero; ordered after everything that uses the memory.
    pub(crate) fn clear(&mut self) -> Result<()> {
        match self {
            Self::Host(data) => {
                data.fill(0);
                Ok(())
            }
            #[cfg(feature = "cuda")]
            Self::Cuda(shared) => shared.clear(),
        }
    }

    /// Copies all bytes to the host, after waiting for what writes them.
    pub(crate) fn read(&self, sink: &mut dyn HostSink) -> Result<()> {
        match self {
            Self::Host(data) => {
                sink.store(data);
                Ok(())
            }
            #[cfg(feature = "cuda")]
            Self::Cuda(shared) => shared.read(sink),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_the_host_has_not_is_an_error() {
        let needed = usize::MAX / 2 + 1;
        let error = Memory::host(needed).unwrap_err().to_string();
        assert_eq!(error, format!("out of memory: the host has no {needed} bytes for tensors"));
    }
}
