//! Memory of the host that a GPU copies from and to.

use std::ffi::c_void;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use cudarc::driver::sys;

use super::Gpu;
use super::counts::count_allocation;
use super::gpu::is_out_of_memory;
use crate::{Error, Result};

/// Page-locked memory of the host. Whoever reads, changes or drops it has waited for the copies
/// that use it.
#[derive(Debug)]
pub(crate) struct Pinned {
    gpu: Arc<Gpu>,
    pointer: *mut u8,
    bytes: usize,
}

// SAFETY: the memory is this value's own.
unsafe impl Send for Pinned {}
// SAFETY: shared access only reads.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// Memory of zeros.
    pub(crate) fn new(gpu: &Arc<Gpu>, bytes: usize) -> Result<Self> {
        gpu.enter()?;
        let mut pointer = std::ptr::null_mut::<c_void>();
        if bytes > 0 {
            count_allocation();
            // SAFETY: a context is current; freed when this is dropped. Without flags, the memory
            // is cached, so that reading it is fast.
            gpu.check("cuMemHostAlloc", unsafe { sys::cuMemHostAlloc(&mut pointer, bytes, 0) })
                .map_err(|error| match is_out_of_memory(&error) {
                    true => Error::OutOfHostMemory { needed: bytes as u64 },
                    false => error,
                })?;
            // SAFETY: the memory has this many bytes.
            unsafe { pointer.write_bytes(0, bytes) };
        }
        Ok(Self { gpu: gpu.clone(), pointer: pointer.cast(), bytes })
    }

    /// How long it is.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where it begins.
    pub(crate) fn address(&self) -> usize {
        self.pointer.addr()
    }

    pub(super) fn pointer(&self) -> *mut u8 {
        self.pointer
    }

    /// Its content.
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self.bytes {
            0 => &[],
            // SAFETY: allocated and initialised with this length; no copy writes it now.
            n => unsafe { std::slice::from_raw_parts(self.pointer, n) },
        }
    }

    /// A part of its content, to be changed; copies may use other parts.
    ///
    /// # Panics
    /// If it is not within the memory.
    pub(crate) fn part_mut(&mut self, part: std::ops::Range<usize>) -> &mut [u8] {
        assert!(part.start <= part.end && part.end <= self.bytes, "a part of page-locked memory");
        match part.len() {
            0 => &mut [],
            // SAFETY: within what was allocated and initialised; no copy uses the part now.
            n => unsafe { std::slice::from_raw_parts_mut(self.pointer.add(part.start), n) },
        }
    }

    /// Its content, to be changed.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        match self.bytes {
            0 => &mut [],
            // SAFETY: allocated and initialised with this length; no copy uses it now.
            n => unsafe { std::slice::from_raw_parts_mut(self.pointer, n) },
        }
    }
}

/// 64 bits of the host, 0 at first, that kernels store to at any time. Whoever drops it has waited for them.
#[derive(Debug)]
pub(crate) struct PinnedWord(Pinned);

impl PinnedWord {
    /// What it takes.
    pub(crate) const BYTES: usize = size_of::<AtomicU64>();

    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Self> {
        Pinned::new(gpu, Self::BYTES).map(Self)
    }

    /// Where it is, to the host and to kernels.
    pub(crate) fn address(&self) -> u64 {
        // All memory that the driver page-locks is mapped, and addresses are unified.
        self.0.address() as u64
    }
}

impl Deref for PinnedWord {
    type Target = AtomicU64;

    fn deref(&self) -> &AtomicU64 {
        // SAFETY: allocated with this length, initialised and aligned to pages; the host uses it in this way alone, and
        // kernels store all of it at once.
        unsafe { AtomicU64::from_ptr(self.0.pointer.cast()) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if self.bytes > 0 && self.gpu.enter().is_ok() {
            // SAFETY: allocated in `new`, freed once.
            unsafe { sys::cuMemFreeHost(self.pointer.cast()) };
        }
    }
}
