//! Events.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cudarc::driver::sys;

use super::{Gpu, Stream};
use crate::Result;

/// `CUDA 12.8`: drivers from there on have the function that tells the time between events.
const TELLS_TIME: u32 = 12080;

/// A point in a stream.
#[derive(Debug)]
pub(crate) struct Event {
    gpu: Arc<Gpu>,
    raw: sys::CUevent,
    /// The stream's number; 0 of the GPU's own streams.
    stream: u64,
    /// How many events of the stream were recorded before.
    place: u64,
    /// Whether somebody waited until it happened.
    seen: AtomicBool,
}

// SAFETY: events may be used from any thread, and the driver locks.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// The current end of a stream, of this number, whose context is current; `place` is how many events of it were
    /// recorded before.
    pub(super) fn record(
        gpu: &Arc<Gpu>,
        stream: sys::CUstream,
        (number, place): (u64, u64),
        timed: bool,
    ) -> Result<Arc<Self>> {
        let flags = match timed {
            true => sys::CUevent_flags::CU_EVENT_DEFAULT,
            false => sys::CUevent_flags::CU_EVENT_DISABLE_TIMING,
        };
        let mut raw = std::ptr::null_mut();
        // SAFETY: a context is current.
        gpu.check("cuEventCreate", unsafe { sys::cuEventCreate(&mut raw, flags as u32) })?;
        let (gpu_of, seen) = (gpu.clone(), AtomicBool::new(false));
        let event = Arc::new(Self { gpu: gpu_of, raw, stream: number, place, seen });
        // SAFETY: both are alive and of one context.
        gpu.check("cuEventRecord", unsafe { sys::cuEventRecord(raw, stream) })?;
        Ok(event)
    }

    /// The current end of a stream, instead of where it was.
    pub(crate) fn record_again(&mut self, stream: &Stream) -> Result<()> {
        *self.seen.get_mut() = false;
        stream.in_order(|place| {
            (self.stream, self.place) = (stream.id(), place);
            // SAFETY: both are alive and of one context.
            self.gpu.check("cuEventRecord", unsafe { sys::cuEventRecord(self.raw, stream.raw()) })
        })
    }

    /// Whether it is a point in this stream.
    pub(crate) fn is_of(&self, stream: &Stream) -> bool {
        self.stream == stream.id()
    }

    /// Whether it is known to happen no sooner than another: it was recorded later in the same stream.
    pub(crate) fn follows(&self, other: &Self) -> bool {
        self.stream != 0 && self.stream == other.stream && self.place > other.place
    }

    /// Notes that it has happened, which who says so has waited for.
    pub(crate) fn see(&self) {
        self.seen.store(true, Ordering::Relaxed);
    }

    /// Whether somebody waited until it happened.
    pub(crate) fn has_been_seen(&self) -> bool {
        self.seen.load(Ordering::Relaxed)
    }

    pub(super) fn raw(&self) -> sys::CUevent {
        self.raw
    }

    /// Waits until it has happened.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.gpu.enter()?;
        // SAFETY: the event is alive.
        self.gpu.check("cuEventSynchronize", unsafe { sys::cuEventSynchronize(self.raw) })?;
        self.see();
        Ok(())
    }

    /// Time from this event to a later one; both keep the time and have happened.
    pub(crate) fn milliseconds_until(&self, later: &Self) -> Result<f64> {
        self.gpu.enter()?;
        let call = "cuEventElapsedTime_v2";
        if self.gpu.driver() < TELLS_TIME {
            let name = "a driver for less than CUDA 12.8".to_owned();
            return Err(crate::Error::Driver { call, name, doing: "timing a run".to_owned() });
        }
        let mut milliseconds = 0f32;
        // SAFETY: both are alive and the driver has the function; one number is written.
        self.gpu.check(call, unsafe {
            sys::cuEventElapsedTime_v2(&mut milliseconds, self.raw, later.raw)
        })?;
        Ok(f64::from(milliseconds))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.gpu.enter().is_ok() {
            // SAFETY: destroyed once; waits for it that are in streams go on.
            unsafe { sys::cuEventDestroy_v2(self.raw) };
        }
    }
}
