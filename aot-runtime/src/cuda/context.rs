//! What one run needs for itself.

use std::ops::Range;
use std::sync::{Arc, Weak};

use super::actions::Where;
use super::driver::{Block, Event, Launches, Pinned, PinnedWord, Transfer};
use super::execution::{Fetch, From};
use super::flight::{Flight, Names};
use super::replay::Replays;
use super::sizes_table::SizesTable;
use super::{Gpu, Stream};
use crate::loaded::ContextMemory;
use crate::{Error, Result};

/// Inputs and outputs of the host begin at multiples of this in staging memory.
const ALIGNMENT: u64 = 256;
/// Tensors of fewer bytes are staged in room for the next power of two, so that they are moved and copied alike at most
/// sizes.
const SMALL: u64 = 1 << 16;
/// Events that are kept to be recorded again.
const KEPT_EVENTS: usize = 8;
/// Bytes of a size.
const WORD: usize = 8;

/// Bytes of staging memory for a tensor.
fn room(length: u64) -> u64 {
    match length {
        0 => 0,
        small if small < SMALL => small.next_power_of_two().max(ALIGNMENT),
        large => large.checked_next_multiple_of(ALIGNMENT).unwrap_or(large),
    }
}

/// Memory and a stream for one run at a time.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) stream: Arc<Stream>,
    pub(super) arena: Block,
    scratch: Block,
    /// Inputs and outputs of the host, on the GPU and in pinned memory.
    staged: Block,
    pinned: Pinned,
    /// By output: memory of those of the host whose size the run computes.
    late: Vec<Option<(Block, Pinned)>>,
    /// Sizes that the run computes.
    words: Pinned,
    /// What the host reads and makes during a run. Whoever uses it waits for its copies.
    host: Pinned,
    /// What kernels read of sizes.
    pub(super) sizes: SizesTable,
    pub(super) replays: Replays,
    /// What it has launched.
    pub(super) flight: Arc<Flight>,
    /// Events of earlier runs.
    events: Vec<Arc<Event>>,
    /// Happens when the run before is done with all of this.
    pub(super) last: Option<Arc<Event>>,
}

impl Context {
    pub(super) fn new(
        gpu: &Arc<Gpu>,
        names: &Arc<Names>,
        scratch: usize,
        sizes: usize,
    ) -> Result<Self> {
        let stream = Stream::new(gpu)?;
        let flight = Flight::new(names, PinnedWord::new(gpu)?);
        let launches: Weak<dyn Launches> = Arc::<Flight>::downgrade(&flight);
        gpu.watch(launches);
        let scratch = Block::zeroed(&stream, scratch, "scratch memory")?;
        let last = Some(stream.record()?);
        Ok(Self {
            arena: Block::new(gpu, 0, "the arena")?,
            staged: Block::new(gpu, 0, "inputs and outputs")?,
            pinned: Pinned::new(gpu, 0)?,
            late: Vec::new(),
            words: Pinned::new(gpu, 0)?,
            host: Pinned::new(gpu, 0)?,
            sizes: SizesTable::new(gpu, sizes)?,
            replays: Replays::default(),
            flight,
            events: Vec::new(),
            scratch,
            stream,
            last,
        })
    }

    /// What it takes.
    pub(super) fn memory(&self) -> ContextMemory {
        let mut memory = ContextMemory {
            arena: self.arena.bytes() as u64,
            workspace: (self.scratch.bytes() + self.sizes.bytes()) as u64,
            staging: self.staged.bytes() as u64,
            pinned: (self.pinned.bytes()
                + self.words.bytes()
                + self.host.bytes()
                + self.sizes.pinned_bytes()
                + PinnedWord::BYTES) as u64,
        };
        for (block, pinned) in self.late.iter().flatten() {
            memory.staging += block.bytes() as u64;
            memory.pinned += pinned.bytes() as u64;
        }
        memory
    }

    /// Bytes of staging memory for tensors of these lengths.
    pub(super) fn staging(lengths: impl Iterator<Item = u64>) -> u64 {
        lengths.map(room).fold(0, u64::saturating_add)
    }

    /// An event at the current end of a stream.
    pub(super) fn record(&mut self, stream: &Stream) -> Result<Arc<Event>> {
        for event in &mut self.events {
            if let Some(free) = Arc::get_mut(event) {
                free.record_again(stream)?;
                return Ok(event.clone());
            }
        }
        let event = stream.record()?;
        if self.events.len() < KEPT_EVENTS {
            self.events.push(event.clone());
        }
        Ok(event)
    }

    /// Waits for the run before; its memory may be replaced then.
    pub(super) fn finish(&mut self) -> Result<()> {
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
            end = usize::try_from(room(*length as u64))
                .ok()
                .and_then(|room| end.checked_add(room))
                .ok_or_else(|| Error::Execution(format!("a tensor of {length} bytes")))?;
        }
        starts.push(end);
        if end == 0 {
            return Ok(starts);
        }
        // Pinned memory is written by the host at once, so that the run before must be over.
        self.finish()?;
        if end > self.staged.bytes() {
            let gpu = self.stream.gpu().clone();
            // Copies take what lies between tensors along, which nothing writes: zeros, from before any run.
            self.staged = Block::zeroed(&self.stream, end, "inputs and outputs")?;
            self.stream.synchronize()?;
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
    pub(super) fn upload(&self, range: Range<usize>) -> Option<Transfer> {
        let from = self.pinned.address() + range.start;
        let to = self.staged_address(range.start);
        (!range.is_empty()).then_some(Transfer::Up { from, to, bytes: range.len() })
    }

    /// The copy of staged tensors to the host, if there are any.
    pub(super) fn download(&self, range: Range<usize>) -> Option<Transfer> {
        let from = self.staged_address(range.start);
        let to = self.pinned.address() + range.start;
        (!range.is_empty()).then_some(Transfer::Down { from, to, bytes: range.len() })
    }

    /// An output, after the run was waited for.
    pub(super) fn fetched(&self, fetch: &Fetch) -> &[u8] {
        match fetch.from {
            From::Staged(start) => &self.pinned.as_slice()[start..start + fetch.bytes],
            From::Late(output) => self.fetched_late(output, fetch.bytes),
        }
    }

    /// Has memory of this length for an output whose size the run computed; its address. The stream has been waited
    /// for, so that nothing uses what was there.
    pub(super) fn reserve_late(&mut self, output: usize, bytes: usize) -> Result<u64> {
        if self.late.len() <= output {
            self.late.resize_with(output + 1, || None);
        }
        let slot = &mut self.late[output];
        if slot.as_ref().is_none_or(|(block, _)| block.bytes() < bytes) {
            let gpu = self.stream.gpu();
            *slot = None;
            *slot = Some((Block::new(gpu, bytes, "an output")?, Pinned::new(gpu, bytes)?));
        }
        Ok(slot.as_ref().map_or(0, |(block, _)| block.address()))
    }

    /// The copy of such an output to the host.
    pub(super) fn download_late(&self, output: usize, bytes: usize) -> Option<Transfer> {
        let (block, pinned) = self.late.get(output)?.as_ref()?;
        let (from, to) = (block.address(), pinned.address());
        (bytes > 0).then_some(Transfer::Down { from, to, bytes: bytes.min(pinned.bytes()) })
    }

    fn fetched_late(&self, output: usize, bytes: usize) -> &[u8] {
        match self.late.get(output) {
            Some(Some((_, pinned))) => &pinned.as_slice()[..bytes.min(pinned.bytes())],
            _ => &[],
        }
    }

    /// The copies of 64-bit integers at these addresses to the host.
    pub(super) fn download_words(&mut self, addresses: &[u64]) -> Result<Vec<Transfer>> {
        if self.words.bytes() < addresses.len() * WORD {
            self.words = Pinned::new(self.stream.gpu(), addresses.len() * WORD)?;
        }
        let words = (self.words.address()..).step_by(WORD);
        let copies = addresses.iter().zip(words);
        Ok(copies.map(|(&from, to)| Transfer::Down { from, to, bytes: WORD }).collect())
    }

    /// The first of these integers, after the stream was waited for.
    pub(super) fn words(&self, count: usize) -> Vec<i64> {
        let (words, _) = self.words.as_slice().as_chunks::<WORD>();
        words.iter().take(count).map(|word| i64::from_le_bytes(*word)).collect()
    }

    /// The copy of a byte at this address to the host.
    pub(super) fn download_byte(&mut self, from: u64) -> Result<Transfer> {
        if self.words.bytes() == 0 {
            self.words = Pinned::new(self.stream.gpu(), WORD)?;
        }
        Ok(Transfer::Down { from, to: self.words.address(), bytes: 1 })
    }

    /// This byte, after the stream was waited for.
    pub(super) fn byte(&self) -> u8 {
        self.words.as_slice().first().copied().unwrap_or(0)
    }

    /// Has memory for what the host reads or makes: at least this many bytes.
    pub(super) fn reserve_host(&mut self, bytes: usize) -> Result<()> {
        if self.host.bytes() < bytes {
            self.host = Pinned::new(self.stream.gpu(), bytes)?;
        }
        Ok(())
    }

    /// The copy of this many bytes of a buffer to that memory, from `start` on there.
    pub(super) fn download_host(&self, from: u64, start: usize, bytes: usize) -> Transfer {
        Transfer::Down { from, to: self.host.address() + start, bytes }
    }

    /// That memory, after the stream was waited for.
    pub(super) fn host(&self) -> &[u8] {
        self.host.as_slice()
    }

    /// The copy of bytes, which are put into that memory, to a buffer.
    pub(super) fn upload_host(&mut self, bytes: &[u8], to: u64) -> Result<Transfer> {
        self.reserve_host(bytes.len())?;
        self.host.as_mut_slice()[..bytes.len()].copy_from_slice(bytes);
        Ok(Transfer::Up { from: self.host.address(), to, bytes: bytes.len() })
    }

    /// Where a run's buffers are, those of the arena at these [offsets](super::layout::Layout::offsets).
    pub(super) fn places<'a>(
        &self,
        offsets: &'a [u64],
        inputs: &'a [u64],
        outputs: &'a [u64],
    ) -> Places<'a> {
        Places {
            arena: self.arena.address(),
            offsets,
            scratch: self.scratch.address(),
            sizes: self.sizes.address(),
            progress: self.flight.progress().address(),
            inputs,
            outputs,
        }
    }
}

/// Addresses of a run's buffers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places<'a> {
    pub(super) arena: u64,
    /// By buffer: bytes into the arena.
    pub(super) offsets: &'a [u64],
    pub(super) scratch: u64,
    /// What kernels read of sizes.
    pub(super) sizes: u64,
    /// Where kernels tell which launch has begun.
    pub(super) progress: u64,
    pub(super) inputs: &'a [u64],
    pub(super) outputs: &'a [u64],
}

impl Places<'_> {
    /// All addresses, by which runs of the same sizes are told apart.
    pub(super) fn all(&self) -> impl Iterator<Item = u64> + '_ {
        let tensors = self.inputs.iter().chain(self.outputs).copied();
        [self.arena, self.scratch, self.sizes, self.progress].into_iter().chain(tensors)
    }

    /// The address of a place.
    pub(super) fn address(&self, place: Where) -> u64 {
        let nth = |list: &[u64], n: u32| list.get(n as usize).copied().unwrap_or(0);
        match place {
            Where::Fixed(address) => address,
            Where::Arena(id) => self.arena + nth(self.offsets, id.0),
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
