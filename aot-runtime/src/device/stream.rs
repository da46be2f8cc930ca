//! Streams.

#[cfg(feature = "cuda")]
use std::sync::Arc;

use crate::Result;
#[cfg(feature = "cuda")]
use crate::cuda;

/// A queue of work for a device, done in order, beside what is in other streams.
///
/// On the CPU, work is done when it is put in.
#[derive(Debug)]
pub struct Stream {
    kind: StreamKind,
}

#[derive(Debug)]
pub(crate) enum StreamKind {
    Cpu,
    #[cfg(feature = "cuda")]
    Cuda(Arc<cuda::Stream>),
}

impl Stream {
    pub(crate) fn new(kind: StreamKind) -> Self {
        Self { kind }
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn kind(&self) -> &StreamKind {
        &self.kind
    }

    /// What people call its device.
    #[cfg(feature = "cuda")]
    pub(crate) fn device(&self) -> String {
        match &self.kind {
            StreamKind::Cpu => "the CPU".to_owned(),
            StreamKind::Cuda(stream) => stream.gpu().described(),
        }
    }

    /// Waits for everything in the stream.
    ///
    /// # Errors
    /// When something of it failed.
    pub fn synchronize(&self) -> Result<()> {
        match &self.kind {
            StreamKind::Cpu => Ok(()),
            #[cfg(feature = "cuda")]
            StreamKind::Cuda(stream) => stream.synchronize(),
        }
    }

    /// Milliseconds that the device takes for what `work` puts into the stream, by the device's
    /// own clock; waits until it is done.
    ///
    /// # Errors
    /// When `work` or the device fails.
    pub fn elapsed(&self, work: impl FnOnce(&Self) -> Result<()>) -> Result<f64> {
        match &self.kind {
            StreamKind::Cpu => {
                let start = std::time::Instant::now();
                work(self)?;
                Ok(start.elapsed().as_secs_f64() * 1e3)
            }
            #[cfg(feature = "cuda")]
            StreamKind::Cuda(stream) => {
                let start = stream.record_timed()?;
                work(self)?;
                let end = stream.record_timed()?;
                end.synchronize()?;
                start.milliseconds_until(&end)
            }
        }
    }
}
