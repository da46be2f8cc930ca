//! What one run at a time needs.

use std::sync::{Arc, Mutex, PoisonError};

use super::driver::{Block, Event, Gpu, Pinned, Stream};
use crate::{Error, Result};

/// Memory and a stream for runs of one model that follow each other.
#[derive(Debug)]
pub(super) struct Context {
    /// Where runs go whose caller gives no stream.
    pub(super) stream: Arc<Stream>,
    /// Intermediate results.
    arena: Option<Block>,
    /// Zero between runs.
    scratch: Option<Block>,
    /// Inputs and outputs that are on the host.
    ports: Option<Block>,
    pinned: Option<Pinned>,
    /// When the last run is done, and the number of its stream.
    last: Option<(u64, Arc<Event>)>,
}

/// The memory of a context as a run uses it.
pub(super) struct Reserved<'a> {
    pub(super) arena: u64,
    pub(super) scratch: u64,
    pub(super) ports: &'a Block,
    pub(super) pinned: &'a mut Pinned,
}

impl Context {
    fn new(gpu: &Arc<Gpu>) -> Result<Self> {
        Ok(Self {
            stream: Stream::new(gpu)?,
            arena: None,
            scratch: None,
            ports: None,
            pinned: None,
            last: None,
        })
    }

    /// Lets a stream wait for the last run, whose memory the next one uses.
    pub(super) fn follow(&self, stream: &Stream) -> Result<()> {
        match &self.last {
            Some((id, event)) if *id != stream.id() => stream.wait(event),
            _ => Ok(()),
        }
    }

    /// Notes when a run will be done.
    pub(super) fn ends(&mut self, stream: &Stream, event: &Arc<Event>) {
        self.last = Some((stream.id(), event.clone()));
    }

    /// Waits for the last run.
    fn settle(&self) -> Result<()> {
        self.last.as_ref().map_or(Ok(()), |(_, event)| event.synchronize())
    }

    /// Makes sure that there is enough memory. `ports` is for inputs and outputs on the host.
    pub(super) fn reserve(
        &mut self,
        stream: &Stream,
        arena: u64,
        scratch: u64,
        ports: usize,
    ) -> Result<Reserved<'_>> {
        let large = |_| Error::artifact("the program", "its memory plan is too large");
        let arena = usize::try_from(arena).map_err(large)?;
        let scratch = usize::try_from(scratch).map_err(large)?;
        let short = |block: &Option<Block>, bytes| block.as_ref().is_none_or(|b| b.bytes() < bytes);
        // Staged bytes may still be on their way.
        if ports > 0 || [short(&self.arena, arena), short(&self.scratch, scratch)].contains(&true) {
            self.settle()?;
        }
        let gpu = stream.gpu();
        if short(&self.arena, arena) {
            self.arena = None;
            self.arena = Some(Block::new(gpu, arena, "intermediate results of a run")?);
        }
        if short(&self.scratch, scratch) {
            self.scratch = None;
            self.scratch = Some(Block::zeroed(stream, scratch, "scratch memory of a run")?);
        }
        if short(&self.ports, ports) {
            self.ports = None;
            self.ports = Some(Block::new(gpu, ports, "inputs and outputs of a run")?);
        }
        if self.pinned.as_ref().is_none_or(|p| p.bytes() < ports) {
            self.pinned = None;
            self.pinned = Some(Pinned::new(gpu, ports)?);
        }
        let address = |block: &Option<Block>| block.as_ref().map_or(0, Block::address);
        match (&self.ports, &mut self.pinned) {
            (Some(block), Some(pinned)) => Ok(Reserved {
                arena: address(&self.arena),
                scratch: address(&self.scratch),
                ports: block,
                pinned,
            }),
            _ => Err(Error::artifact("the program", "its inputs have no memory")),
        }
    }

    fn bytes(&self) -> u64 {
        let blocks = [&self.arena, &self.scratch, &self.ports];
        blocks.into_iter().flatten().map(|b| b.bytes() as u64).sum()
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // A run that failed has ended too.
        let _ = self.settle();
    }
}

/// Contexts that no run uses, the one used last at the end.
#[derive(Debug, Default)]
pub(super) struct Contexts(Mutex<Vec<Context>>);

impl Contexts {
    /// A context for a run; made if all are in use.
    pub(super) fn take(&self, gpu: &Arc<Gpu>) -> Result<Context> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            Some(context) => Ok(context),
            None => Context::new(gpu),
        }
    }

    /// Gives a context back after a run that did not fail.
    pub(super) fn put(&self, context: Context) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(context);
    }

    /// Bytes of all that no run uses now.
    pub(super) fn bytes(&self) -> u64 {
        let contexts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        contexts.iter().map(Context::bytes).sum()
    }
}
