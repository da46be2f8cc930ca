//! What kernels of a context read of sizes.

// A copy is put into the stream; see `SizesTable::put`.
#![allow(unsafe_code)]

use std::sync::Arc;

use super::driver::{Block, Event, Pinned, Transfer, Work, execute};
use super::evaluate::Evaluated;
use super::{Gpu, Stream};
use crate::{Error, Result};

/// As many runs, each with other sizes than the one before, may be on their way before the host waits.
const SLOTS: usize = 16;
/// Fewer where they would take more page-locked memory than this.
const MOST_PINNED: usize = 1 << 20;
/// Slots begin at multiples of this.
const ALIGNMENT: usize = 256;

/// The sizes of the last run, on the GPU.
#[derive(Debug)]
pub(super) struct SizesTable {
    block: Block,
    /// Whose sizes they are: [`Evaluated::id`].
    holds: Option<u64>,
    /// What copies read, a slot a run.
    pinned: Pinned,
    /// By slot: happens when it has been read.
    read: Vec<Option<Arc<Event>>>,
    next: usize,
}

impl SizesTable {
    /// A table for runs that need so many bytes at most.
    pub(super) fn new(gpu: &Arc<Gpu>, most: usize) -> Result<Self> {
        let room = Self::room(most);
        let block = Block::new(gpu, room, "sizes")?;
        let pinned = Pinned::new(gpu, Self::pinned_room(most))?;
        let read = std::iter::repeat_with(|| None).take(slots(room)).collect();
        Ok(Self { block, holds: None, pinned, read, next: 0 })
    }

    /// Bytes that a table takes on the GPU.
    pub(super) fn room(most: usize) -> usize {
        most.next_multiple_of(ALIGNMENT)
    }

    /// Bytes of page-locked memory that a table takes.
    pub(super) fn pinned_room(most: usize) -> usize {
        let room = Self::room(most);
        room * slots(room)
    }

    /// Bytes that it takes on the GPU.
    pub(super) fn bytes(&self) -> usize {
        self.block.bytes()
    }

    /// Bytes of page-locked memory that it takes.
    pub(super) fn pinned_bytes(&self) -> usize {
        self.pinned.bytes()
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
        let room = self.block.bytes();
        if room < sizes.len() {
            return Err(Error::artifact("the program", "a run has more sizes than it says"));
        }
        let slot = self.next;
        self.next = (slot + 1) % self.read.len();
        self.holds = None;
        if let Some(read) = &self.read[slot] {
            read.synchronize()?;
        }
        self.pinned.part_mut(slot * room..slot * room + sizes.len()).copy_from_slice(sizes);
        let (from, to) = (self.pinned.address() + slot * room, self.block.address());
        let copy = Work::Copy(Transfer::Up { from, to, bytes: sizes.len() });
        // SAFETY: both ends are as long; they stay until the event after the copy, and the run, have happened.
        unsafe { execute(stream, &copy) }?;
        match self.read[slot].as_mut().and_then(Arc::get_mut) {
            Some(read) => read.record_again(stream)?,
            None => self.read[slot] = Some(stream.record()?),
        }
        self.holds = Some(evaluated.id);
        Ok(())
    }
}

/// How many runs a table of so many bytes has page-locked memory for.
fn slots(room: usize) -> usize {
    (MOST_PINNED / room.max(1)).clamp(2, SLOTS)
}

impl Drop for SizesTable {
    fn drop(&mut self) {
        for read in self.read.iter().flatten() {
            // A copy that failed has ended too.
            let _ = read.synchronize();
        }
    }
}
