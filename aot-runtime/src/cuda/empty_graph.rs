//! A graph of no work: what launching one costs the host, no run can do without.

// The graph is put into streams; see `EmptyGraph::launch`.
#![allow(unsafe_code)]

use super::driver::{Graph, GraphBuilder};
use crate::device::{Kind, StreamKind};
use crate::{Device, Error, Result, Stream};

/// A CUDA graph without nodes, for benches.
#[derive(Debug)]
pub struct EmptyGraph(Graph);

impl EmptyGraph {
    /// A graph of this GPU.
    ///
    /// # Errors
    /// When the device is no GPU or the driver fails.
    pub fn new(device: &Device) -> Result<Self> {
        match device.kind() {
            Kind::Cuda(gpu) => Ok(Self(GraphBuilder::new(gpu)?.finish()?)),
            Kind::Cpu => Err(Error::NoCuda("the CPU has no graphs".to_owned())),
        }
    }

    /// Puts it into a stream.
    ///
    /// # Errors
    /// When the stream is not of the same GPU or the driver fails.
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        match stream.kind() {
            // SAFETY: there are no nodes; the driver refuses streams of other contexts.
            StreamKind::Cuda(stream) => unsafe { self.0.launch(stream) },
            StreamKind::Cpu => Err(Error::NoCuda("the CPU has no graphs".to_owned())),
        }
    }
}
