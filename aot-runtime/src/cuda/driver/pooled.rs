//! Memory of a GPU that tensors lie in.

use std::sync::Arc;

use cudarc::driver::sys;

use super::counts::count_allocation;
use super::{Event, Gpu, Pinned, Stream};
use crate::Result;

/// Memory of a GPU, taken from and given back to a pool in stream order where the GPU can.
#[derive(Debug)]
pub(crate) struct Pooled {
    gpu: Arc<Gpu>,
    address: u64,
    bytes: usize,
    in_order: bool,
}

impl Pooled {
    /// Memory of unspecified content and the event after which it may be used.
    pub(crate) fn new(
        gpu: &Arc<Gpu>,
        bytes: usize,
        what: &str,
    ) -> Result<(Self, Option<Arc<Event>>)> {
        gpu.enter()?;
        if bytes > 0 {
            count_allocation();
        }
        let failed = |error| gpu.allocation_error(error, what, bytes);
        let mut address = 0;
        let in_order = gpu.pool().filter(|_| bytes > 0);
        let Some(pool) = in_order else {
            if bytes > 0 {
                // SAFETY: a context is current; freed when this is dropped.
                gpu.check("cuMemAlloc", unsafe { sys::cuMemAlloc_v2(&mut address, bytes) })
                    .map_err(failed)?;
            }
            return Ok((Self { gpu: gpu.clone(), address, bytes, in_order: false }, None));
        };
        // SAFETY: the stream is alive; freed when this is dropped.
        gpu.check("cuMemAllocFromPoolAsync", unsafe {
            sys::cuMemAllocFromPoolAsync(&mut address, bytes, pool, gpu.services().allocate)
        })
        .map_err(failed)?;
        let this = Self { gpu: gpu.clone(), address, bytes, in_order: true };
        let ready = Event::record(gpu, gpu.services().allocate, (0, 0), false)?;
        Ok((this, Some(ready)))
    }

    /// The GPU that it is of.
    pub(crate) fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    /// Where it begins.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// How long it is.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Puts a copy of host memory to the beginning into the stream. The host memory may be changed
    /// once the stream has passed the copy. What exceeds either is left out.
    pub(crate) fn upload(&self, stream: &Stream, from: &Pinned) -> Result<()> {
        let bytes = self.bytes.min(from.bytes());
        if bytes == 0 {
            return Ok(());
        }
        self.gpu.enter()?;
        // SAFETY: both ranges lie within their memory.
        self.gpu.check("cuMemcpyHtoDAsync", unsafe {
            sys::cuMemcpyHtoDAsync_v2(
                self.address,
                from.pointer().cast_const().cast(),
                bytes,
                stream.raw(),
            )
        })
    }

    /// Puts a copy of the beginning to host memory into the stream. The host memory may be read
    /// once the stream has passed the copy. What exceeds either is left out.
    pub(crate) fn download(&self, stream: &Stream, to: &Pinned) -> Result<()> {
        let bytes = self.bytes.min(to.bytes());
        if bytes == 0 {
            return Ok(());
        }
        self.gpu.enter()?;
        // SAFETY: both ranges lie within their memory.
        self.gpu.check("cuMemcpyDtoHAsync", unsafe {
            sys::cuMemcpyDtoHAsync_v2(to.pointer().cast(), self.address, bytes, stream.raw())
        })
    }

    /// Puts a copy to the beginning of other memory of the same GPU into the stream. What exceeds either is left out.
    pub(crate) fn copy_to(&self, stream: &Stream, to: &Self) -> Result<()> {
        let bytes = self.bytes.min(to.bytes);
        if bytes == 0 {
            return Ok(());
        }
        self.gpu.enter()?;
        // SAFETY: both ranges lie within their memory, which is of one GPU.
        self.gpu.check("cuMemcpyDtoDAsync", unsafe {
            sys::cuMemcpyDtoDAsync_v2(to.address, self.address, bytes, stream.raw())
        })
    }

    /// Puts zeroing of all of it into the stream.
    pub(crate) fn clear(&self, stream: &Stream) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        self.gpu.enter()?;
        // SAFETY: the range is the memory's; the stream is of the same GPU.
        self.gpu.check("cuMemsetD8Async", unsafe {
            sys::cuMemsetD8Async(self.address, 0, self.bytes, stream.raw())
        })
    }

    /// Frees the memory once these events have happened.
    pub(crate) fn free_after<'a>(&mut self, events: impl Iterator<Item = &'a Event>) {
        if self.bytes == 0 || self.gpu.enter().is_err() {
            return;
        }
        match self.in_order {
            true => {
                let services = self.gpu.services();
                for event in events {
                    // SAFETY: both are alive and of this GPU.
                    unsafe { sys::cuStreamWaitEvent(services.free, event.raw(), 0) };
                }
                // SAFETY: allocated in `new`; freed once, as the length is 0 from here on.
                unsafe { sys::cuMemFreeAsync(self.address, services.free) };
            }
            false => {
                for event in events {
                    // An event that fails has ended too.
                    let _ = event.synchronize();
                }
                // SAFETY: as above.
                unsafe { sys::cuMemFree_v2(self.address) };
            }
        }
        self.bytes = 0;
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        self.free_after(std::iter::empty());
    }
}
