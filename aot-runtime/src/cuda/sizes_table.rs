//! What kernels of a context read of sizes.

// A copy is put into the stream; see `SizesTable::put`.
#![allow(unsafe_code)]

use std::sync::Arc;

use super::driver::{Block, Event, Pinned, Transfer, Work, execute};
use super::evaluate::Evaluated;
use super::{Gpu, Stream};
use crate::Result;

/// As many runs, each with other sizes than the one before, may be on their way before the host waits.
const SLOTS: usize = 16;

/// The sizes of the last run, on the GPU.
#[derive(Debug)]
pub(super) struct SizesTable {
    block: Block,
    /// Whose sizes they are: [`Evaluated::id`].
    holds: Option<u64>,
    slots: Vec<Slot>,
    next: usize,
}

/// Memory that a copy reads.
#[derive(Debug)]
struct Slot {
    pinned: Pinned,
    /// Happens when it has been read.
    read: Option<Arc<Event>>,
}

impl SizesTable {
    pub(super) fn new(gpu: &Arc<Gpu>) -> Result<Self> {
        let block = Block::new(gpu, 0, "sizes")?;
        Ok(Self { block, holds: None, slots: Vec::new(), next: 0 })
    }

    /// Bytes that it takes on the GPU.
    pub(super) fn bytes(&self) -> usize {
        self.block.bytes()
    }

    /// Bytes of page-locked memory that it takes.
    pub(super) fn pinned_bytes(&self) -> usize {
        self.slots.iter().map(|slot| slot.pinned.bytes()).sum()
    }

    /// Where it begins.
    pub(super) fn address(&self) -> u64 {
        self.block.address()
    }

    /// Lets what comes later in the stream find these sizes; everything that reads others is before it in the stream.
    pub(super) fn put(&mut self, stream: &Stream, evaluated: &Evaluated) -> Result<()> {
        let sizes = &evaluated.sizes;
        if sizes.is_empty() || self.holds == Some(evaluated.id) {
            return Ok(());
        }
        let gpu = stream.gpu();
        let room = sizes.len().next_power_of_two();
        if self.block.bytes() < sizes.len() {
            stream.synchronize()?;
            self.block = Block::new(gpu, room, "sizes")?;
        }
        if self.slots.len() <= self.next {
            self.slots.push(Slot { pinned: Pinned::new(gpu, room)?, read: None });
        }
        let slot = &mut self.slots[self.next];
        self.next = (self.next + 1) % SLOTS;
        self.holds = None;
        if let Some(read) = slot.read.take() {
            read.synchronize()?;
        }
        if slot.pinned.bytes() < sizes.len() {
            slot.pinned = Pinned::new(gpu, room)?;
        }
        slot.pinned.as_mut_slice()[..sizes.len()].copy_from_slice(sizes);
        let (from, to) = (slot.pinned.address(), self.block.address());
        let copy = Work::Copy(Transfer::Up { from, to, bytes: sizes.len() });
        // SAFETY: both ends are as long; they stay until the event after the copy, and the run, have happened.
        unsafe { execute(stream, &copy) }?;
        slot.read = Some(stream.record()?);
        self.holds = Some(evaluated.id);
        Ok(())
    }
}

impl Drop for SizesTable {
    fn drop(&mut self) {
        for slot in &self.slots {
            if let Some(read) = &slot.read {
                // A copy that failed has ended too.
                let _ = read.synchronize();
            }
        }
    }
}
