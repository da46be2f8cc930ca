//! Streams.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys;

use super::{Event, Gpu};
use crate::Result;

/// A queue of work for a GPU.
#[derive(Debug)]
pub(crate) struct Stream {
    gpu: Arc<Gpu>,
    raw: sys::CUstream,
    /// A number that no other stream has, ever.
    id: u64,
    /// How many events were recorded in it.
    recorded: Mutex<u64>,
}

// SAFETY: streams may be used from any thread, and the driver locks.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// A stream that does not wait for the default stream.
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Arc<Self>> {
        gpu.enter()?;
        let raw = Self::create().map_err(|code| gpu.error("cuStreamCreate", code))?;
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(Self { gpu: gpu.clone(), raw, id, recorded: Mutex::new(0) }))
    }

    /// A bare stream of the current context.
    pub(super) fn create() -> Result<sys::CUstream, sys::CUresult> {
        let mut raw = std::ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: a context is current.
        match unsafe { sys::cuStreamCreate(&mut raw, flags) } {
            sys::CUresult::CUDA_SUCCESS => Ok(raw),
            code => Err(code),
        }
    }

    /// The GPU that it is of.
    pub(crate) fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    pub(super) fn raw(&self) -> sys::CUstream {
        self.raw
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// Waits for everything in it.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.gpu.enter()?;
        // SAFETY: the stream is alive.
        self.gpu.check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.raw) })
    }

    /// Lets what comes later wait for an event.
    pub(crate) fn wait(&self, event: &Event) -> Result<()> {
        if event.is_of(self) {
            return Ok(());
        }
        // SAFETY: both are alive; the driver keeps what the wait needs.
        self.gpu
            .check("cuStreamWaitEvent", unsafe { sys::cuStreamWaitEvent(self.raw, event.raw(), 0) })
    }

    /// Records an event, given how many were recorded before: whichever thread does it, one after the other.
    pub(super) fn in_order<T>(&self, record: impl FnOnce(u64) -> T) -> T {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let result = record(*recorded);
        *recorded += 1;
        result
    }

    /// An event that happens when everything before it is done.
    pub(crate) fn record(&self) -> Result<Arc<Event>> {
        self.in_order(|place| Event::record(&self.gpu, self.raw, (self.id, place), false))
    }

    /// As [`Stream::record`], keeping the time.
    pub(crate) fn record_timed(&self) -> Result<Arc<Event>> {
        self.gpu.enter()?;
        self.in_order(|place| Event::record(&self.gpu, self.raw, (self.id, place), true))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.gpu.enter().is_ok() {
            // SAFETY: made by `create`, destroyed once; work in it goes on.
            unsafe { sys::cuStreamDestroy_v2(self.raw) };
        }
    }
}
