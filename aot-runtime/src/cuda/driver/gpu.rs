//! A GPU and its primary context.

use std::ffi::{CStr, c_int};
use std::sync::Arc;
use std::sync::OnceLock;

use cudarc::driver::sys;
use cudarc::driver::sys::CUdevice_attribute as Attribute;

use super::library::{check, open};
use super::stream::Stream;
use crate::{Error, Result};

/// A GPU whose primary context is retained.
#[derive(Debug)]
pub(crate) struct Gpu {
    index: usize,
    device: sys::CUdevice,
    context: sys::CUcontext,
    name: String,
    capability: (u16, u16),
    driver: u32,
    pools: bool,
    /// Where tensors are allocated and freed, and copied to and from the host.
    services: OnceLock<Services>,
}

/// Clocks and widths of a GPU, as the driver tells them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    /// Of multiprocessors, at most.
    pub(crate) hertz: f64,
    /// How many there are.
    pub(crate) multiprocessors: f64,
    /// Of its memory, at most.
    pub(crate) memory_hertz: f64,
    /// The width of its memory.
    pub(crate) bus_bytes: f64,
}

/// Streams of the GPU's own. They hold no reference to the GPU, which outlives them.
#[derive(Debug)]
pub(super) struct Services {
    pub(super) allocate: sys::CUstream,
    pub(super) free: sys::CUstream,
}

// SAFETY: handles of contexts and streams may be used from any thread, and the driver locks.
unsafe impl Send for Gpu {}
// SAFETY: as above.
unsafe impl Sync for Gpu {}

impl Gpu {
    /// The GPU with this number.
    pub(crate) fn open(index: usize) -> Result<Arc<Self>> {
        let driver = open()?;
        let mut count = 0;
        // SAFETY: the driver is initialised; it writes one integer.
        check("cuDeviceGetCount", unsafe { sys::cuDeviceGetCount(&mut count) })?;
        let ordinal = c_int::try_from(index).ok().filter(|i| *i < count);
        let Some(ordinal) = ordinal else {
            return Err(Error::NoCuda(match count {
                0 => "the driver sees no GPU".to_owned(),
                1 => format!("there is no GPU {index}: the driver sees one, number 0"),
                n => format!("there is no GPU {index}: the driver sees {n}, numbered from 0"),
            }));
        };
        let mut device = 0;
        // SAFETY: the ordinal is in range.
        check("cuDeviceGet", unsafe { sys::cuDeviceGet(&mut device, ordinal) })?;
        let mut name = [0; 256];
        // SAFETY: the buffer has the length that is given.
        check("cuDeviceGetName", unsafe { sys::cuDeviceGetName(name.as_mut_ptr(), 255, device) })?;
        // SAFETY: the buffer's last byte is zero.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
        let major = attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        let pools = attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? != 0;
        let mut context = std::ptr::null_mut();
        // SAFETY: the device is valid; the retained context is released when this is dropped.
        check("cuDevicePrimaryCtxRetain", unsafe {
            sys::cuDevicePrimaryCtxRetain(&mut context, device)
        })?;
        let gpu = Self {
            index,
            device,
            context,
            name,
            capability: (u16::try_from(major).unwrap_or(0), u16::try_from(minor).unwrap_or(0)),
            driver,
            pools,
            services: OnceLock::new(),
        };
        gpu.enter()?;
        if pools {
            gpu.keep_freed_memory()?;
        }
        let (allocate, free) = (Stream::create()?, Stream::create()?);
        // Nothing else has this value yet, so that the cell is empty.
        let _ = gpu.services.set(Services { allocate, free });
        Ok(Arc::new(gpu))
    }

    /// What its peaks follow from.
    pub(crate) fn clocks(&self) -> Result<Clocks> {
        let of = |which| attribute(self.device, which).map(f64::from);
        Ok(Clocks {
            hertz: 1e3 * of(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
            multiprocessors: of(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            memory_hertz: 1e3 * of(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?,
            bus_bytes: of(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)? / 8.0,
        })
    }

    fn pool(&self) -> Result<sys::CUmemoryPool> {
        let mut pool = std::ptr::null_mut();
        // SAFETY: the device is valid.
        check("cuDeviceGetDefaultMemPool", unsafe {
            sys::cuDeviceGetDefaultMemPool(&mut pool, self.device)
        })?;
        Ok(pool)
    }

    /// Gives what freed tensors left with the process back to the GPU; waits for them to be freed.
    pub(super) fn release_freed_memory(&self) -> Result<()> {
        let Some(services) = self.services().filter(|_| self.pools) else { return Ok(()) };
        // SAFETY: the stream is alive.
        check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(services.free) })?;
        // SAFETY: the pool is the device's own.
        check("cuMemPoolTrimTo", unsafe { sys::cuMemPoolTrimTo(self.pool()?, 0) })
    }

    /// Lets freed tensors stay with the process, so that the next ones cost nothing.
    fn keep_freed_memory(&self) -> Result<()> {
        let pool = self.pool()?;
        let mut threshold = u64::MAX;
        // SAFETY: the attribute's value is a 64-bit integer.
        check("cuMemPoolSetAttribute", unsafe {
            sys::cuMemPoolSetAttribute(
                pool,
                sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                (&raw mut threshold).cast(),
            )
        })
    }

    /// Makes the context current on this thread.
    pub(crate) fn enter(&self) -> Result<()> {
        // SAFETY: the context is retained.
        check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(self.context) })
    }

    pub(super) fn context(&self) -> sys::CUcontext {
        self.context
    }

    /// Its number.
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// `NVIDIA H200`
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Compute capability: major and minor.
    pub(crate) fn capability(&self) -> (u16, u16) {
        self.capability
    }

    /// CUDA version of the driver.
    pub(crate) fn driver(&self) -> u32 {
        self.driver
    }

    /// Whether tensors can be allocated in stream order.
    pub(super) fn pools(&self) -> bool {
        self.pools
    }

    pub(super) fn services(&self) -> Option<&Services> {
        self.services.get()
    }

    /// Waits for everything on the GPU.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.enter()?;
        // SAFETY: a context is current.
        check("cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() })
    }

    /// The error of an allocation that failed.
    pub(super) fn allocation_error(&self, error: Error, what: &str, bytes: usize) -> Error {
        let out_of_memory = is_out_of_memory(&error);
        let (mut free, mut total) = (0, 0);
        // SAFETY: a context is current; two integers are written.
        let known = unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) };
        if !out_of_memory || known != sys::CUresult::CUDA_SUCCESS {
            return error;
        }
        Error::OutOfMemory {
            what: what.to_owned(),
            needed: bytes as u64,
            free: free as u64,
            total: total as u64,
            gpu: self.name.clone(),
        }
    }
}

/// Whether a call of the driver failed for want of memory.
pub(super) fn is_out_of_memory(error: &Error) -> bool {
    matches!(error, Error::Driver { name, .. } if name.starts_with("CUDA_ERROR_OUT_OF_MEMORY"))
}

fn attribute(device: sys::CUdevice, which: Attribute) -> Result<c_int> {
    let mut value = 0;
    // SAFETY: the device is valid; one integer is written.
    check("cuDeviceGetAttribute", unsafe { sys::cuDeviceGetAttribute(&mut value, which, device) })?;
    Ok(value)
}

impl Drop for Gpu {
    fn drop(&mut self) {
        if self.enter().is_ok()
            && let Some(Services { allocate, free }) = self.services.get()
        {
            // SAFETY: both streams were made in this context and nothing uses them any more.
            unsafe {
                sys::cuStreamDestroy_v2(*allocate);
                sys::cuStreamDestroy_v2(*free);
            }
        }
        // SAFETY: retained once in `open`.
        unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}
