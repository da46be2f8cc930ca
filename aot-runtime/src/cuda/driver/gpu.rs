//! A GPU and its context.

use std::ffi::{CStr, c_int};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use cudarc::driver::sys;
use cudarc::driver::sys::CUdevice_attribute as Attribute;

use super::area::{Area, Kept};
use super::faults::{Faults, Launches, is_fault};
use super::held::Held;
use super::library::{check, describe, error, is_present, open};
use super::pool::MemoryPool;
use super::stream::Stream;
use crate::upload::{Pace, Prepared};
use crate::{Error, Result};

/// A GPU with a context, which lives at least as long.
#[derive(Debug)]
pub(crate) struct Gpu {
    index: usize,
    context: Option<Held>,
    name: String,
    capability: (u16, u16),
    driver: u32,
    /// Where tensors' memory comes from, if tensors can be allocated in stream order.
    pool: Option<MemoryPool>,
    faults: Faults,
    /// Held while a kernel runs that no other may run beside.
    alone: Mutex<()>,
    /// Where tensors are allocated and freed, and copied to and from the host.
    services: Services,
    /// Memory of the host that uploads of weights pass through, one after the other, in a few slots for each of several
    /// threads.
    ///
    /// It is kept for the next model, locked as far as a model had use for it: the system takes half a millisecond to
    /// hand out a MiB of it and the driver 50 microseconds to lock that, while the link has it sent in 20. That is up to
    /// 40 MiB of the host's memory, a fraction of what the driver takes for a context there.
    staging: Mutex<Kept>,
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

// SAFETY: handles of pools and streams may be used from any thread, and the driver locks.
unsafe impl Send for Gpu {}
// SAFETY: as above.
unsafe impl Sync for Gpu {}

/// The GPUs that are in use, which those who ask for the same one share.
static OPENED: Mutex<Vec<Weak<Gpu>>> = Mutex::new(Vec::new());

impl Gpu {
    /// The GPU with this number. If everybody else's had a fault, this is a fresh one.
    pub(crate) fn open(index: usize) -> Result<Arc<Self>> {
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        opened.retain(|gpu| gpu.strong_count() > 0);
        let shared = opened.iter().filter_map(Weak::upgrade);
        if let Some(gpu) = shared.into_iter().find(|g| g.index == index && !g.is_lost()) {
            return Ok(gpu);
        }
        // The memory is made while the driver does what takes longer.
        let prepared = if is_present() { Prepared::begin(Pace::most_bytes()) } else { None };
        let driver = open()?;
        // Calls that need no context fail nevertheless while one that had a fault is current.
        Held::leave();
        let gpu = Arc::new(Self::fresh(index, driver, prepared)?);
        opened.push(Arc::downgrade(&gpu));
        Ok(gpu)
    }

    fn fresh(index: usize, driver: u32, prepared: Option<Prepared>) -> Result<Self> {
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
        let (context, services) = connect(device)?;
        let pool = pools.then(|| MemoryPool::new(ordinal)).transpose()?;
        Ok(Self {
            index,
            context: Some(context),
            name,
            capability: (u16::try_from(major).unwrap_or(0), u16::try_from(minor).unwrap_or(0)),
            driver,
            pool,
            faults: Faults::default(),
            alone: Mutex::new(()),
            services,
            staging: Mutex::new(prepared.map_or(Kept::Gone, Kept::Prepared)),
        })
    }

    /// What its peaks follow from.
    pub(crate) fn clocks(&self) -> Result<Clocks> {
        let device = self.context.as_ref().map(Held::device).ok_or(Error::Poisoned("a GPU"))?;
        let of = |which| attribute(device, which).map(f64::from);
        Ok(Clocks {
            hertz: 1e3 * of(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
            multiprocessors: of(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            memory_hertz: 1e3 * of(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?,
            bus_bytes: of(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)? / 8.0,
        })
    }

    /// Gives what freed tensors left with the process back to the GPU; waits for them to be freed.
    pub(super) fn release_freed_memory(&self) -> Result<()> {
        let Some(pool) = &self.pool else { return Ok(()) };
        let free = self.services.free;
        // SAFETY: the stream is alive.
        self.check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(free) })?;
        self.check("cuMemPoolTrimTo", pool.trim())
    }

    /// The error of a call that did not succeed; of a fault, it is the first one's.
    pub(super) fn error(&self, call: &'static str, code: sys::CUresult) -> Error {
        match is_fault(code) {
            true => Error::Fault(self.faults.note(&self.name, self.index, describe(code))),
            false => error(call, code),
        }
    }

    /// The error of a call that used the context, if it did not succeed.
    pub(super) fn check(&self, call: &'static str, result: sys::CUresult) -> Result<()> {
        match result {
            sys::CUresult::CUDA_SUCCESS => Ok(()),
            code => Err(self.error(call, code)),
        }
    }

    /// Whether it had a fault.
    pub(crate) fn is_lost(&self) -> bool {
        self.faults.known().is_some()
    }

    /// Whether things of the other one can be used with things of this one.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.context() == other.context()
    }

    /// `NVIDIA H200 (number 0)`
    pub(crate) fn described(&self) -> String {
        let lost = if self.is_lost() { ", which had a fault" } else { "" };
        format!("{} (number {}){lost}", self.name, self.index)
    }

    /// If there is a fault, this is asked what was launched.
    pub(crate) fn watch(&self, launches: Weak<dyn Launches>) {
        self.faults.watch(launches);
    }

    /// While this is held, nobody else who asks for it launches anything.
    pub(crate) fn alone(&self) -> MutexGuard<'_, ()> {
        self.alone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the context current on this thread; an error without a call of the driver if there was a fault.
    pub(crate) fn enter(&self) -> Result<()> {
        if let Some(fault) = self.faults.known() {
            return Err(Error::Fault(fault.clone()));
        }
        match &self.context {
            Some(context) => context.enter().map_err(|code| self.error("cuCtxSetCurrent", code)),
            None => Err(Error::Poisoned("a GPU")),
        }
    }

    pub(super) fn context(&self) -> sys::CUcontext {
        self.context.as_ref().map_or(std::ptr::null_mut(), Held::raw)
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

    /// Where tensors' memory comes from, if tensors can be allocated in stream order.
    pub(super) fn pool(&self) -> Option<sys::CUmemoryPool> {
        self.pool.as_ref().map(MemoryPool::raw)
    }

    pub(super) fn services(&self) -> &Services {
        &self.services
    }

    fn staging(&self) -> MutexGuard<'_, Kept> {
        self.staging.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The memory that it keeps for uploads, unless another upload has it; waits until it is made.
    pub(super) fn take_area(&self) -> Option<Area> {
        let kept = self.staging().take();
        kept.wait()
    }

    /// Gives it back; no copy uses it.
    pub(super) fn keep_area(&self, area: Area) {
        *self.staging() = Kept::Here(area);
    }

    /// Waits for everything on the GPU.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.enter()?;
        // SAFETY: a context is current.
        self.check("cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() })
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

/// A context of a device in which streams can be made, and streams. That is the primary one, unless a fault left it
/// unusable to whoever still holds it.
fn connect(device: sys::CUdevice) -> Result<(Held, Services)> {
    let streams = |context: Held| {
        let (allocate, free) = (Stream::create()?, Stream::create()?);
        Ok((context, Services { allocate, free }))
    };
    let code = match Held::primary(device).and_then(streams) {
        Ok(connected) => return Ok(connected),
        Err(code) if !is_fault(code) => return Err(error("cuDevicePrimaryCtxRetain", code)),
        Err(code) => code,
    };
    Held::leave();
    Held::own(device).and_then(streams).map_err(|own| {
        let doing = format!(
            "making another context, as the first one had {}; drop everything of the device that had it, or start \
             another process",
            describe(code)
        );
        Error::Driver { call: "cuCtxCreate", name: describe(own), doing }
    })
}

impl Drop for Gpu {
    fn drop(&mut self) {
        if self.enter().is_ok() {
            if let Kept::Here(area) = &mut *self.staging() {
                area.unlock();
            }
            let Services { allocate, free } = self.services;
            // SAFETY: both streams were made in this context and nothing uses them any more.
            unsafe {
                sys::cuStreamSynchronize(free);
                sys::cuStreamDestroy_v2(allocate);
                sys::cuStreamDestroy_v2(free);
            }
            self.pool = None;
        }
        self.context = None;
        // What is left of a lost context, the pool, is given back without it.
        Held::leave();
    }
}
