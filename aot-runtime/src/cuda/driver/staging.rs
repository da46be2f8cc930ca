//! Memory that data passes through on its way to a GPU.

use std::mem::MaybeUninit;
use std::sync::Arc;

use super::{Event, Gpu, Pinned, Stream};
use crate::Result;

/// Page-locked memory of the host for one piece of data at a time, and when it is copied.
#[derive(Debug)]
pub(crate) struct Staging {
    memory: Pinned,
    /// So many bytes, from the beginning, are initialised.
    held: usize,
    /// Happens when the copies are done.
    copied: Option<Arc<Event>>,
}

impl Staging {
    /// Memory for so many bytes, which holds none.
    pub(crate) fn new(gpu: &Arc<Gpu>, bytes: usize) -> Result<Self> {
        Ok(Self { memory: Pinned::uninit(gpu, bytes)?, held: 0, copied: None })
    }

    /// Replaces what it holds by as much of some bytes as it has room for; what it then holds. The copies of what it held are
    /// done. Calls nothing of the driver's.
    pub(crate) fn fill(&mut self, bytes: &[u8]) -> &[u8] {
        let held = bytes.len().min(self.memory.bytes());
        self.held = held;
        if held == 0 {
            return &[];
        }
        let memory = self.memory.pointer().cast::<MaybeUninit<u8>>();
        // SAFETY: within the memory, which is this value's alone; no copy uses it now.
        let memory = unsafe { std::slice::from_raw_parts_mut(memory, held) };
        memory.write_copy_of_slice(&bytes[..held])
    }

    /// How many bytes it holds.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Where they begin.
    pub(super) fn pointer(&self) -> *const u8 {
        self.memory.pointer().cast_const()
    }

    /// What was put into the stream are all copies of what it holds. The stream's context is current.
    pub(crate) fn end_copies(&mut self, stream: &Stream) -> Result<()> {
        match self.copied.as_mut().and_then(Arc::get_mut) {
            Some(event) => event.record_again(stream)?,
            None => self.copied = Some(stream.record()?),
        }
        Ok(())
    }

    /// Whether its copies are done; waits for them if it should.
    pub(crate) fn is_copied(&self, wait: bool) -> Result<bool> {
        match &self.copied {
            None => Ok(true),
            Some(event) if wait => event.synchronize().map(|()| true),
            Some(event) => event.has_happened(),
        }
    }
}
