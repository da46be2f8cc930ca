//! Memory of a GPU that lives as long as a model or an execution context.

use std::sync::Arc;

use cudarc::driver::sys;

use super::counts::count_allocation;
use super::{Gpu, Slot, Stream};
use crate::{Error, Result};

/// Memory of a GPU. Whoever drops it has waited for what uses it.
#[derive(Debug)]
pub(crate) struct Block {
    gpu: Arc<Gpu>,
    address: u64,
    bytes: usize,
}

impl Block {
    /// Memory of unspecified content; `what` it is for goes into the error.
    pub(crate) fn new(gpu: &Arc<Gpu>, bytes: usize, what: &str) -> Result<Self> {
        gpu.enter()?;
        let mut address = 0;
        if bytes > 0 {
            count_allocation();
            let mut allocate = || {
                // SAFETY: a context is current; freed when this is dropped.
                gpu.check("cuMemAlloc", unsafe { sys::cuMemAlloc_v2(&mut address, bytes) })
            };
            if let Err(error) = allocate() {
                // Freed tensors stay with the process until others need their memory.
                match gpu.release_freed_memory() {
                    Ok(()) => {
                        allocate().map_err(|error| gpu.allocation_error(error, what, bytes))?
                    }
                    Err(_) => return Err(gpu.allocation_error(error, what, bytes)),
                }
            }
        }
        Ok(Self { gpu: gpu.clone(), address, bytes })
    }

    /// Memory of zeros.
    pub(crate) fn zeroed(stream: &Stream, bytes: usize, what: &str) -> Result<Self> {
        let block = Self::new(stream.gpu(), bytes, what)?;
        if bytes > 0 {
            // SAFETY: the range is the block's; the stream is of the same GPU.
            stream.gpu().check("cuMemsetD8Async", unsafe {
                sys::cuMemsetD8Async(block.address, 0, bytes, stream.raw())
            })?;
        }
        Ok(block)
    }

    /// Where it begins.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// How long it is.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Puts a copy of `bytes` of what a slot of staging memory holds, from `start` on, to `offset` into the stream, whose
    /// context is current.
    ///
    /// The slot stays as it is until the stream has passed the copy.
    ///
    /// # Errors
    /// When either does not have as many bytes there.
    pub(crate) fn upload(
        &self,
        stream: &Stream,
        offset: usize,
        from: &Slot<'_>,
        start: usize,
        bytes: usize,
    ) -> Result<()> {
        let within =
            |length: usize, start: usize| start.checked_add(bytes).is_some_and(|end| end <= length);
        if !within(self.bytes, offset) || !within(from.held().len(), start) {
            return Err(Error::artifact("the program", "a weight has no place"));
        }
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: both ranges lie within their memory.
        self.gpu.check("cuMemcpyHtoDAsync", unsafe {
            sys::cuMemcpyHtoDAsync_v2(
                self.address + offset as u64,
                from.held().as_ptr().add(start).cast(),
                bytes,
                stream.raw(),
            )
        })
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.bytes > 0 && self.gpu.enter().is_ok() {
            // SAFETY: allocated in `new`, freed once.
            unsafe { sys::cuMemFree_v2(self.address) };
        }
    }
}
