//! The tensors of a call, on the host and on the device.

use super::{Failure, Opened, microseconds};
use aot_ir::exec::Tensor;
use aot_runtime::loaded::Loaded;
use aot_runtime::{Device, InputRef, OutputRef, Result, Stream};
use aot_tests::device::{OnDevice, on_device};
use aot_tests::manifest::{Entry, Varied};
use std::time::Instant;

/// Inputs of one size.
pub(super) struct Call {
    pub(super) size: i64,
    tensors: Vec<Tensor>,
    bytes: Vec<Vec<u8>>,
}

impl Call {
    pub(super) fn new(opened: &Opened, entry: &Entry, varied: &Varied, size: i64) -> Self {
        let mut sizes = varied.fixed.clone();
        sizes.push((varied.dim.clone(), size));
        let tensors = entry.inputs(&opened.graph, &sizes, 5);
        let bytes = tensors.iter().map(Tensor::to_bytes).collect();
        Self { size, tensors, bytes }
    }

    pub(super) fn refs(&self) -> Result<Vec<InputRef<'_>>> {
        let inputs = self.tensors.iter().zip(&self.bytes);
        inputs.map(|(t, bytes)| InputRef::host(t.dtype(), t.shape(), bytes)).collect()
    }

    /// Microseconds of a call with all tensors on the host.
    pub(super) fn run(&self, loaded: &Loaded, sinks: &mut [Vec<u8>]) -> Result<f64> {
        let start = Instant::now();
        let refs = self.refs()?;
        let bound = loaded.bind(&refs)?;
        let ports = loaded.signature().outputs.iter().zip(bound.outputs()).zip(sinks);
        let mut outputs: Vec<_> =
            ports.map(|((port, shape), sink)| OutputRef::bytes(port.dtype, shape, sink)).collect();
        loaded.run(&bound, None, &refs, &mut outputs)?;
        Ok(microseconds(start))
    }
}

/// Which tensors of a call are on the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resident {
    pub(super) inputs: bool,
    pub(super) outputs: bool,
}

/// Microseconds until a call returned, and until the device was done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) returned: f64,
    pub(super) done: f64,
}

/// A call whose tensors are on both sides.
pub(super) struct Placed<'a> {
    loaded: &'a Loaded,
    call: &'a Call,
    inputs: Vec<Box<dyn OnDevice>>,
    outputs: Vec<Box<dyn OnDevice>>,
    sinks: Vec<Vec<u8>>,
    stream: Stream,
}

impl<'a> Placed<'a> {
    pub(super) fn new(
        device: &Device,
        loaded: &'a Loaded,
        call: &'a Call,
    ) -> Result<Self, Failure> {
        let inputs = call.tensors.iter().zip(&call.bytes);
        let inputs = inputs.map(|(t, bytes)| on_device(device, t.dtype(), t.shape(), bytes));
        let bound = loaded.bind(&call.refs()?)?;
        let ports = &loaded.signature().outputs;
        let outputs = ports.iter().zip(bound.outputs());
        let outputs = outputs.map(|(port, shape)| on_device(device, port.dtype, shape, &[]));
        Ok(Self {
            loaded,
            call,
            inputs: inputs.collect::<Result<_>>()?,
            outputs: outputs.collect::<Result<_>>()?,
            sinks: vec![Vec::new(); ports.len()],
            stream: device.stream()?,
        })
    }

    /// A call and waiting for it.
    pub(super) fn run(&mut self, resident: Resident) -> Result<Times> {
        let start = Instant::now();
        let refs = match resident.inputs {
            true => self.inputs.iter().map(|t| t.input()).collect(),
            false => self.call.refs()?,
        };
        let bound = self.loaded.bind(&refs)?;
        let ports = self.loaded.signature().outputs.iter().zip(bound.outputs());
        let mut outputs: Vec<OutputRef<'_>> = match resident.outputs {
            true => self.outputs.iter_mut().map(|t| t.output()).collect(),
            false => ports
                .zip(&mut self.sinks)
                .map(|((port, shape), sink)| OutputRef::bytes(port.dtype, shape, sink))
                .collect(),
        };
        self.loaded.run(&bound, Some(&self.stream), &refs, &mut outputs)?;
        let returned = microseconds(start);
        self.stream.synchronize()?;
        Ok(Times { returned, done: microseconds(start) })
    }

    /// Microseconds of the device for each of so many runs, one behind the other, all tensors on the device.
    pub(super) fn device(&mut self, runs: usize) -> Result<f64> {
        let refs: Vec<_> = self.inputs.iter().map(|t| t.input()).collect();
        let bound = self.loaded.bind(&refs)?;
        let mut outputs: Vec<_> = self.outputs.iter_mut().map(|t| t.output()).collect();
        let milliseconds = self.stream.elapsed(|stream| {
            (0..runs).try_for_each(|_| self.loaded.run(&bound, Some(stream), &refs, &mut outputs))
        })?;
        Ok(milliseconds * 1e3 / runs as f64)
    }

    /// Bytes of the outputs that the last call left on the host.
    pub(super) fn output_bytes(&self) -> usize {
        self.sinks.iter().map(Vec::len).sum()
    }
}
