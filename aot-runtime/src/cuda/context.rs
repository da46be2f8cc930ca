//! What one run needs for itself.

use std::sync::Arc;

use super::driver::{Block, Event, Pinned};
use super::evaluate::Where;
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

    /// Has room for staged tensors of these lengths; where each begins.
    pub(super) fn reserve_staging(&mut self, lengths: &[usize]) -> Result<Vec<usize>> {
        let mut end = 0usize;
        let mut starts = Vec::with_capacity(lengths.len());
        for length in lengths {
            starts.push(end);
            end = (end + length).next_multiple_of(ALIGNMENT);
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

    /// Copies a staged input to the GPU; its address.
    pub(super) fn stage(&mut self, stream: &Stream, start: usize, bytes: &[u8]) -> Result<u64> {
        self.pinned.as_mut_slice()[start..start + bytes.len()].copy_from_slice(bytes);
        self.staged.upload(stream, start, &self.pinned, start, bytes.len())?;
        Ok(self.staged.address() + start as u64)
    }

    /// The address of a staged output.
    pub(super) fn staged_address(&self, start: usize) -> u64 {
        self.staged.address() + start as u64
    }

    /// Puts the copy of a staged output to the host into the stream.
    pub(super) fn fetch(&self, stream: &Stream, start: usize, bytes: usize) -> Result<()> {
        self.staged.download(stream, start, &self.pinned, start, bytes)
    }

    /// A fetched output, after the stream was waited for.
    pub(super) fn fetched(&self, start: usize, bytes: usize) -> &[u8] {
        &self.pinned.as_slice()[start..start + bytes]
    }

    /// The address of a place.
    pub(super) fn address(&self, place: Where, inputs: &[u64], outputs: &[u64]) -> u64 {
        let nth = |list: &[u64], n: u32| list.get(n as usize).copied().unwrap_or(0);
        match place {
            Where::Fixed(address) => address,
            Where::Arena(offset) => self.arena.address() + offset,
            Where::Scratch(offset) => self.scratch.address() + offset,
            Where::Input(n) => nth(inputs, n),
            Where::Output(n) => nth(outputs, n),
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // A run that failed has ended too.
        let _ = self.finish();
    }
}
