//! What one run needs for itself.

use std::ops::Range;
use std::sync::Arc;

use super::driver::{Block, Copy, Event, Pinned};
use super::evaluate::Where;
use super::replay::Replays;
use super::{Gpu, Stream};
use crate::{Error, Result};

/// Inputs and outputs of the host begin at multiples of this in staging memory.
const ALIGNMENT: usize = 256;

/// Memory and a stream for one run at a time.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) stream: Arc<Stream>,
    pub(super) arena: Block,
    scratch: Block,
    /// Inputs and outputs of the host, on the GPU and in pinned memory.
    staged: Block,
    pinned: Pinned,
    pub(super) replays: Replays,
    /// Happens when the run before is done with all of this.
    pub(super) last: Option<Arc<Event>>,
}

impl Context {
    pub(super) fn new(gpu: &Arc<Gpu>, scratch: usize) -> Result<Self> {
        let stream = Stream::new(gpu)?;
        let scratch = Block::zeroed(&stream, scratch, "scratch memory")?;
        let last = Some(stream.record()?);
        Ok(Self {
            arena: Block::new(gpu, 0, "the arena")?,
            staged: Block::new(gpu, 0, "inputs and outputs")?,
            pinned: Pinned::new(gpu, 0)?,
            replays: Replays::default(),
            scratch,
            stream,
            last,
        })
    }

    /// Bytes that it takes on the GPU.
    pub(super) fn bytes(&self) -> u64 {
        (self.arena.bytes() + self.scratch.bytes() + self.staged.bytes()) as u64
    }

    /// Waits for the run before; its memory may be replaced then.
    fn finish(&mut self) -> Result<()> {
        match self.last.take() {
            Some(event) => event.synchronize(),
            None => Ok(()),
        }
    }

    /// Has an arena of at least this many bytes.
    pub(super) fn reserve_arena(&mut self, bytes: u64) -> Result<()> {
        let bytes = usize::try_from(bytes)
            .map_err(|_| Error::Execution(format!("an arena of {bytes} bytes")))?;
        if bytes > self.arena.bytes() {
            self.finish()?;
            let gpu = self.stream.gpu().clone();
            self.arena = Block::new(&gpu, 0, "the arena")?;
            self.arena = Block::new(&gpu, bytes, "the arena")?;
        }
        Ok(())
    }

    /// Has room for staged tensors of these lengths; where each begins, and last where all end.
    pub(super) fn reserve_staging(&mut self, lengths: &[usize]) -> Result<Vec<usize>> {
        let mut end = 0usize;
        let mut starts = Vec::with_capacity(lengths.len() + 1);
        for length in lengths {
            starts.push(end);
            end = (end + length).next_multiple_of(ALIGNMENT);
        }
        starts.push(end);
        if end == 0 {
            return Ok(starts);
        }
        // Pinned memory is written by the host at once, so that the run before must be over.
        self.finish()?;
        if end > self.staged.bytes() {
            let gpu = self.stream.gpu().clone();
            self.staged = Block::new(&gpu, end, "inputs and outputs")?;
            self.pinned = Pinned::new(&gpu, end)?;
        }
        Ok(starts)
    }

    /// Puts an input where uploads begin; its address on the GPU.
    pub(super) fn stage(&mut self, start: usize, bytes: &[u8]) -> u64 {
        self.pinned.as_mut_slice()[start..start + bytes.len()].copy_from_slice(bytes);
        self.staged_address(start)
    }

    /// The address of a staged tensor.
    pub(super) fn staged_address(&self, start: usize) -> u64 {
        self.staged.address() + start as u64
    }

    /// The copy of staged tensors to the GPU, if there are any.
    pub(super) fn upload(&self, range: Range<usize>) -> Option<Copy> {
        let from = self.pinned.address() + range.start;
        let to = self.staged_address(range.start);
        (!range.is_empty()).then_some(Copy::Up { from, to, bytes: range.len() })
    }

    /// The copy of staged tensors to the host, if there are any.
    pub(super) fn download(&self, range: Range<usize>) -> Option<Copy> {
        let from = self.staged_address(range.start);
        let to = self.pinned.address() + range.start;
        (!range.is_empty()).then_some(Copy::Down { from, to, bytes: range.len() })
    }

    /// A fetched output, after the stream was waited for.
    pub(super) fn fetched(&self, start: usize, bytes: usize) -> &[u8] {
        &self.pinned.as_slice()[start..start + bytes]
    }

    /// Where a run's buffers are.
    pub(super) fn places<'a>(&self, inputs: &'a [u64], outputs: &'a [u64]) -> Places<'a> {
        let (arena, scratch) = (self.arena.address(), self.scratch.address());
        Places { arena, scratch, inputs, outputs }
    }
}

/// Addresses of a run's buffers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places<'a> {
    arena: u64,
    scratch: u64,
    inputs: &'a [u64],
    outputs: &'a [u64],
}

impl Places<'_> {
    /// The address of a place.
    pub(super) fn address(&self, place: Where) -> u64 {
        let nth = |list: &[u64], n: u32| list.get(n as usize).copied().unwrap_or(0);
        match place {
            Where::Fixed(address) => address,
            Where::Arena(offset) => self.arena + offset,
            Where::Scratch(offset) => self.scratch + offset,
            Where::Input(n) => nth(self.inputs, n),
            Where::Output(n) => nth(self.outputs, n),
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // A run that failed has ended too.
        let _ = self.finish();
    }
}
