//! Memory that data passes through on its way to a GPU.

use std::sync::Arc;

use super::area::Area;
use super::{Event, Gpu, Pinned, Stream};
use crate::{Error, Result};

/// Bytes of memory that is made for one upload, at most. To make a MiB takes as long as to send ten.
const MOST_OWN: usize = 12 << 20;

/// Page-locked memory for one upload. Whoever drops it has waited for the copies that use it.
#[derive(Debug)]
pub(crate) struct Staging {
    gpu: Arc<Gpu>,
    /// What the GPU keeps for uploads, and gets back.
    kept: Option<Area>,
    /// Memory of the upload's own.
    own: Pinned,
}

impl Staging {
    /// Room for as many slots of so many bytes, or for fewer, but for one: of what the GPU keeps for uploads, or else,
    /// where another upload has that or the driver can't lock it, memory that is made for this one.
    pub(crate) fn new(gpu: &Arc<Gpu>, slots: usize, slot: usize) -> Result<Self> {
        gpu.enter()?;
        let bytes = slots * slot;
        let mut kept = if bytes > 0 { gpu.take_area() } else { None };
        if let Some(area) = &mut kept {
            match area.lock(gpu, bytes) {
                Err(fault @ Error::Fault(_)) => return Err(fault),
                // What was locked before serves as well.
                _ if area.bytes() >= slot => {}
                _ => kept = None,
            }
        }
        let own = if kept.is_some() { 0 } else { bytes.min(MOST_OWN) };
        let own = Pinned::new(gpu, own)?;
        Ok(Self { gpu: gpu.clone(), kept, own })
    }

    /// As many slots as it has room for, of at most so many, each of so many bytes.
    pub(crate) fn slots(&mut self, count: usize, bytes: usize) -> Vec<Slot<'_>> {
        let memory = match &mut self.kept {
            Some(area) => area.as_mut_slice(),
            None => self.own.as_mut_slice(),
        };
        let slots = memory.chunks_exact_mut(bytes.max(1)).take(count);
        slots.map(|memory| Slot { memory, held: 0, copied: None }).collect()
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if let Some(area) = self.kept.take() {
            self.gpu.keep_area(area);
        }
    }
}

/// A part of staging memory, for one piece of data at a time, and when that is copied.
#[derive(Debug)]
pub(crate) struct Slot<'s> {
    memory: &'s mut [u8],
    /// So many bytes, from the beginning, are of the piece.
    held: usize,
    /// Happens when the copies are done.
    copied: Option<Arc<Event>>,
}

impl Slot<'_> {
    /// Replaces what it holds by as much of some bytes as it has room for; what it then holds. The copies of what it held are
    /// done. Calls nothing of the driver's.
    pub(crate) fn fill(&mut self, bytes: &[u8]) -> &[u8] {
        self.held = bytes.len().min(self.memory.len());
        let memory = &mut self.memory[..self.held];
        memory.copy_from_slice(&bytes[..self.held]);
        memory
    }

    /// What it holds.
    pub(super) fn held(&self) -> &[u8] {
        &self.memory[..self.held]
    }

    /// What was put into the stream are all copies of what it holds. The stream's context is current.
    pub(crate) fn end_copies(&mut self, stream: &Stream) -> Result<()> {
        match self.copied.as_mut().and_then(Arc::get_mut) {
            Some(event) => event.record_again(stream)?,
            None => self.copied = Some(stream.record()?),
        }
        Ok(())
    }

    /// Waits until its copies are done.
    pub(crate) fn wait(&self) -> Result<()> {
        self.copied.as_ref().map_or(Ok(()), |event| event.synchronize())
    }
}
