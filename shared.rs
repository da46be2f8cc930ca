//! Memory of device tensors, ordered between the streams that use it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::driver::{Event, Gpu, Pinned, Pooled, Stream};
use crate::Result;
use crate::ports::HostSink;

/// Memory that several runs may use, each in a stream of its own.
#[derive(Debug)]
pub(crate) struct Shared {
    memory: Pooled,
    uses: Mutex<Uses>,
}

/// The last uses that later ones must come after.
#[derive(Debug, Default)]
struct Uses {
    write: Option<Use>,
    reads: Vec<Use>,
}

#[derive(Clone, Debug)]
struct Use {
    /// The stream's number.
    stream: u64,
    event: Arc<Event>,
}

impl Shared {
    /// Memory of unspecified content; `what` it is for goes into the error.
    pub(crate) fn new(gpu: &Arc<Gpu>, bytes: usize, what: &str) -> Result<Self> {
        let (memory, ready) = Pooled::new(gpu, bytes, what)?;
        // No stream has number 0.
        let write = ready.map(|event| Use { stream: 0, event });
        Ok(Self { memory, uses: Mutex::new(Uses { write, reads: Vec::new() }) })
    }

    pub(super) fn gpu(&self) -> &Arc<Gpu> {
        self.memory.gpu()
    }

    pub(super) fn address(&self) -> u64 {
        self.memory.address()
    }

    pub(super) fn bytes(&self) -> usize {
        self.memory.bytes()
    }

    /// What is guarded stays consistent at every step, so that a panic elsewhere does not matter.
    fn uses(&self) -> MutexGuard<'_, Uses> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a stream wait for what writes the memory.
    pub(super) fn before_read(&self, stream: &Stream) -> Result<()> {
        match &self.uses().write {
            Some(write) if write.stream != stream.id() => stream.wait(&write.event),
            _ => Ok(()),
        }
    }

    /// Notes that what a stream has up to `event` reads the memory.
    pub(super) fn after_read(&self, stream: &Stream, event: &Arc<Event>) {
        let mut uses = self.uses();
        uses.reads.retain(|read| read.stream != stream.id());
        uses.reads.push(Use { stream: stream.id(), event: event.clone() });
    }

    /// Lets a stream wait for everything that uses the memory.
    pub(super) fn before_write(&self, stream: &Stream) -> Result<()> {
        let uses = self.uses();
        let others = uses.reads.iter().chain(&uses.write).filter(|u| u.stream != stream.id());
        others.into_iter().try_for_each(|u| stream.wait(&u.event))
    }

    /// Notes that what a stream has up to `event` writes the memory.
    pub(super) fn after_write(&self, stream: &Stream, event: &Arc<Event>) {
        let write = Some(Use { stream: stream.id(), event: event.clone() });
        *self.uses() = Uses { write, reads: Vec::new() };
    }

    /// Overwrites the memory.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let stream = Stream::new(self.gpu())?;
        let mut pinned = Pinned::new(self.gpu(), self.bytes())?;
        let n = bytes.len().min(self.bytes());
        pinned.as_mut_slice()[..n].copy_from_slice(&bytes[..n]);
        self.before_write(&stream)?;
        self.memory.upload(&stream, &pinned)?;
        self.after_write(&stream, &stream.record()?);
        stream.synchronize()
    }

    /// Waits for what writes the memory and copies it to the host.
    pub(crate) fn read(&self, sink: &mut dyn HostSink) -> Result<()> {
        let stream = Stream::new(self.gpu())?;
        let pinned = Pinned::new(self.gpu(), self.bytes())?;
        self.before_read(&stream)?;
        self.memory.download(&stream, &pinned)?;
        stream.synchronize()?;
        sink.store(pinned.as_slice());
        Ok(())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let uses = std::mem::take(&mut *self.uses());
        let events = uses.reads.iter().chain(&uses.write).map(|u| &*u.event);
        self.memory.free_after(events);
    }
}
