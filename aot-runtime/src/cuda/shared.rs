//! Memory of device tensors, which several streams may use.

use std::sync::{Arc, Mutex};

use super::driver::{Event, Pinned, Pooled};
use super::{Gpu, Stream};
use crate::ports::HostSink;
use crate::{Error, Result};

/// Memory that knows what has to be waited for before it is read or written.
#[derive(Debug)]
pub(crate) struct Shared {
    memory: Pooled,
    order: Mutex<Order>,
}

#[derive(Debug, Default)]
struct Order {
    /// Happens when the content is written.
    written: Option<Arc<Event>>,
    /// Happen when the content is no longer read.
    read: Vec<Arc<Event>>,
}

fn poisoned<T>(_: T) -> Error {
    Error::Poisoned("a device tensor")
}

impl Shared {
    /// Memory of unspecified content; `what` it is for goes into the error.
    pub(crate) fn new(gpu: &Arc<Gpu>, bytes: usize, what: &str) -> Result<Self> {
        let (memory, written) = Pooled::new(gpu, bytes, what)?;
        Ok(Self { memory, order: Mutex::new(Order { written, read: Vec::new() }) })
    }

    pub(crate) fn gpu(&self) -> &Arc<Gpu> {
        self.memory.gpu()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.memory.bytes()
    }

    /// Other memory with the same content, copied after what writes this one.
    pub(crate) fn duplicate(&self) -> Result<Self> {
        let copy = Self::new(self.gpu(), self.memory.bytes(), "a copy of a tensor")?;
        let stream = Stream::new(self.gpu())?;
        self.before_read(&stream)?;
        copy.before_write(&stream)?;
        self.memory.copy_to(&stream, &copy.memory)?;
        let done = stream.record()?;
        self.after_read(&done)?;
        copy.after_write(&done)?;
        Ok(copy)
    }

    pub(super) fn address(&self) -> u64 {
        self.memory.address()
    }

    /// What is put into the stream from here on may read the memory.
    pub(super) fn before_read(&self, stream: &Stream) -> Result<()> {
        match &self.order.lock().map_err(poisoned)?.written {
            Some(event) => stream.wait(event),
            None => Ok(()),
        }
    }

    /// Reads end with this event.
    pub(super) fn after_read(&self, event: &Arc<Event>) -> Result<()> {
        /// Events beyond this many are waited for, oldest first.
        const KEPT: usize = 16;
        let mut order = self.order.lock().map_err(poisoned)?;
        order.read.retain(|earlier| !event.follows(earlier));
        if order.read.len() >= KEPT {
            order.read.remove(0).synchronize()?;
        }
        order.read.push(event.clone());
        Ok(())
    }

    /// What is put into the stream from here on may write the memory.
    pub(super) fn before_write(&self, stream: &Stream) -> Result<()> {
        let order = self.order.lock().map_err(poisoned)?;
        order.written.iter().chain(&order.read).try_for_each(|event| stream.wait(event))
    }

    /// Writes end with this event.
    pub(super) fn after_write(&self, event: &Arc<Event>) -> Result<()> {
        let mut order = self.order.lock().map_err(poisoned)?;
        *order = Order { written: Some(event.clone()), read: Vec::new() };
        Ok(())
    }

    /// Overwrites the content, after everything that uses it.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<()> {
        let stream = Stream::new(self.gpu())?;
        let mut staging = Pinned::new(self.gpu(), bytes.len())?;
        staging.as_mut_slice().copy_from_slice(bytes);
        self.before_write(&stream)?;
        self.memory.upload(&stream, &staging)?;
        let done = stream.record()?;
        self.after_write(&done)?;
        done.synchronize()
    }

    /// Makes the content zero, after everything that uses it.
    pub(crate) fn clear(&self) -> Result<()> {
        let stream = Stream::new(self.gpu())?;
        self.before_write(&stream)?;
        self.memory.clear(&stream)?;
        self.after_write(&stream.record()?)
    }

    /// Copies the content to the host, after what writes it.
    pub(crate) fn read(&self, sink: &mut dyn HostSink) -> Result<()> {
        let stream = Stream::new(self.gpu())?;
        let staging = Pinned::new(self.gpu(), self.memory.bytes())?;
        let written = self.order.lock().map_err(poisoned)?.written.clone();
        self.before_read(&stream)?;
        self.memory.download(&stream, &staging)?;
        stream.synchronize()?;
        if let Some(written) = written {
            written.see();
        }
        sink.store(staging.as_slice());
        Ok(())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let order = match self.order.get_mut() {
            Ok(order) => std::mem::take(order),
            Err(poisoned) => std::mem::take(poisoned.into_inner()),
        };
        self.memory.free_after(order.written.iter().chain(&order.read).map(|e| &**e));
    }
}
