//! Which device runs models.

use super::{Memory, Stream, StreamKind};
use crate::{Error, Result};
#[cfg(feature = "cuda")]
use std::sync::Arc;

#[cfg(feature = "cuda")]
use crate::cuda;

/// What models are loaded on: a GPU or the CPU. Clones are the same device.
#[derive(Clone, Debug)]
pub struct Device {
    kind: Kind,
    reason: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Cpu,
    #[cfg(feature = "cuda")]
    Cuda(Arc<cuda::Gpu>),
}

impl Device {
    /// The first GPU, or else the CPU; then [`Device::reason`] says why. That is so after a
    /// [`Fault`](crate::Fault) too, where the driver gives no fresh device: services should call
    /// [`Device::cuda`] and exit when it fails.
    ///
    /// # Errors
    /// When there is no usable GPU and the feature `cpu` is off.
    pub fn best() -> Result<Self> {
        match Self::cuda(0) {
            Ok(device) => Ok(device),
            Err(error) => Ok(Self { reason: Some(error.to_string()), ..Self::cpu()? }),
        }
    }

    /// The GPU with this number, counted as the driver does (CUDA_VISIBLE_DEVICES applies). After a
    /// [`Fault`](crate::Fault) this is a fresh device, if the driver gives one.
    ///
    /// # Errors
    /// When there is no driver, it is too old, or there is no such GPU; and after a fault when the driver gives no
    /// fresh device as long as something of the lost one is there, or as long as this process runs.
    pub fn cuda(index: usize) -> Result<Self> {
        #[cfg(feature = "cuda")]
        return Ok(Self { kind: Kind::Cuda(cuda::Gpu::open(index)?), reason: None });
        #[cfg(not(feature = "cuda"))]
        {
            let _ = index;
            Err(Error::FeatureOff("cuda"))
        }
    }

    /// The CPU: the reference executor.
    ///
    /// # Errors
    /// When the feature `cpu` is off.
    pub fn cpu() -> Result<Self> {
        match cfg!(feature = "cpu") {
            true => Ok(Self { kind: Kind::Cpu, reason: None }),
            false => Err(Error::FeatureOff("cpu")),
        }
    }

    /// Why [`Device::best`] chose the CPU.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Whether this is a GPU.
    pub fn is_cuda(&self) -> bool {
        !matches!(self.kind, Kind::Cpu)
    }

    /// What people call it: `NVIDIA H200`, or `CPU`.
    pub fn name(&self) -> &str {
        match &self.kind {
            Kind::Cpu => "CPU",
            #[cfg(feature = "cuda")]
            Kind::Cuda(gpu) => gpu.name(),
        }
    }

    /// Its name and what tells it from others of this name.
    #[cfg(feature = "cuda")]
    pub(crate) fn described(&self) -> String {
        match &self.kind {
            Kind::Cpu => "the CPU".to_owned(),
            Kind::Cuda(gpu) => gpu.described(),
        }
    }

    /// The GPU's compute capability, major and minor; none of the CPU.
    pub fn capability(&self) -> Option<(u16, u16)> {
        match &self.kind {
            Kind::Cpu => None,
            #[cfg(feature = "cuda")]
            Kind::Cuda(gpu) => Some(gpu.capability()),
        }
    }

    /// A new stream: what is put into one is done in order, beside other streams.
    ///
    /// # Errors
    /// When the driver fails.
    pub fn stream(&self) -> Result<Stream> {
        Ok(Stream::new(match &self.kind {
            Kind::Cpu => StreamKind::Cpu,
            #[cfg(feature = "cuda")]
            Kind::Cuda(gpu) => StreamKind::Cuda(cuda::Stream::new(gpu)?),
        }))
    }

    /// Waits for everything that was put on the device.
    ///
    /// # Errors
    /// When something of it failed.
    pub fn synchronize(&self) -> Result<()> {
        match &self.kind {
            Kind::Cpu => Ok(()),
            #[cfg(feature = "cuda")]
            Kind::Cuda(gpu) => gpu.synchronize(),
        }
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.kind
    }

    pub(crate) fn allocate(&self, bytes: usize) -> Result<Memory> {
        match &self.kind {
            Kind::Cpu => Memory::host(bytes),
            #[cfg(feature = "cuda")]
            Kind::Cuda(gpu) => {
                Ok(Memory::Cuda(Arc::new(cuda::Shared::new(gpu, bytes, "a tensor")?)))
            }
        }
    }
}

/// Equal where what is on the one can be used with what is on the other: a fresh device of a GPU that had a fault is
/// not the lost one.
impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Cpu, Kind::Cpu) => true,
            #[cfg(feature = "cuda")]
            (Kind::Cuda(a), Kind::Cuda(b)) => a.is(b),
            #[cfg(feature = "cuda")]
            _ => false,
        }
    }
}

/// The device's name.
impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
