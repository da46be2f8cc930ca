//! Memory of the system's that a GPU keeps for uploads.

use std::mem::{ManuallyDrop, replace};

use cudarc::driver::sys;
use memmap2::MmapMut;

use super::Gpu;
use super::counts::count_allocation;
use crate::Result;
use crate::upload::Prepared;

/// The memory, or where it is.
#[derive(Debug)]
pub(super) enum Kept {
    /// A thread asks the system for it.
    Prepared(Prepared),
    Here(Area),
    /// An upload has it, or there is none.
    Gone,
}

impl Kept {
    /// What there is of it, for whoever asks first.
    pub(super) fn take(&mut self) -> Self {
        replace(self, Self::Gone)
    }

    /// The memory, as soon as it is there.
    pub(super) fn wait(self) -> Option<Area> {
        match self {
            Self::Prepared(prepared) => {
                let memory = ManuallyDrop::new(prepared.wait()?);
                Some(Area { memory, locked: Vec::new(), end: 0 })
            }
            Self::Here(area) => Some(area),
            Self::Gone => None,
        }
    }
}

/// Memory of which the driver locks the first pages, as many as were asked for so far, so that a GPU can copy from them.
///
/// Dropped while pages are locked, it stays mapped for ever: the driver would take other memory at the same place for it.
#[derive(Debug)]
pub(super) struct Area {
    memory: ManuallyDrop<MmapMut>,
    /// Where ranges begin that were locked as one.
    locked: Vec<usize>,
    /// Where the last one ends.
    end: usize,
}

/// Lengths that are locked are multiples of this, which is one of every page's size.
const GRAIN: usize = 1 << 20;

impl Area {
    /// Has the first `bytes` locked, as far as there are so many. The GPU's context is current.
    ///
    /// # Errors
    /// When the driver fails, which leaves locked what was.
    pub(super) fn lock(&mut self, gpu: &Gpu, bytes: usize) -> Result<()> {
        let end = bytes.next_multiple_of(GRAIN).min(self.memory.len());
        if end > self.end {
            count_allocation();
            let new = &mut self.memory[self.end..end];
            // SAFETY: the range is mapped, and stays so until it is unlocked or for ever.
            gpu.check("cuMemHostRegister", unsafe {
                sys::cuMemHostRegister_v2(new.as_mut_ptr().cast(), new.len(), 0)
            })?;
            self.locked.push(self.end);
            self.end = end;
        }
        Ok(())
    }

    /// What is locked.
    pub(super) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.memory[..self.end]
    }

    /// How many bytes are locked.
    pub(super) fn bytes(&self) -> usize {
        self.end
    }

    /// Unlocks it; no copy uses it. Its GPU's context is current.
    pub(super) fn unlock(&mut self) {
        while let Some(start) = self.locked.last() {
            let range = self.memory[*start..].as_mut_ptr();
            // SAFETY: a range that was locked begins there, and nothing copies from it.
            match unsafe { sys::cuMemHostUnregister(range.cast()) } {
                sys::CUresult::CUDA_SUCCESS => self.locked.pop(),
                _ => return,
            };
        }
        self.end = 0;
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        if self.locked.is_empty() {
            // SAFETY: this is done once, and the memory is not used any more.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}
