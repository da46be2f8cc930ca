//! One run of a program.

use std::ops::Range;
use std::sync::Arc;

use super::context::Context;
use super::driver::Transfer;
use super::evaluate::{Evaluated, How, evaluate};
use super::layout::Layout;
use super::on_device::OnDevice;
use super::pieces::whole_steps;
use super::replay::Run;
use super::timer::Timer;
use super::{CudaModel, Stream};
use crate::device::Memory;
use crate::loaded::{Known, Signature, Sizes};
use crate::ports::{InputData, InputRef, OutputData, OutputRef};
use crate::profile::Span;
use crate::program::Step;
use crate::{Error, Result};

/// A run that is going on.
pub(super) struct Execution<'r> {
    pub(super) model: &'r CudaModel,
    pub(super) signature: &'r Signature,
    sizes: &'r Sizes,
    pub(super) layout: Layout<'r>,
    /// Sizes known so far.
    pub(super) known: Known,
    pub(super) context: &'r mut Context,
    pub(super) stream: Arc<Stream>,
    /// Addresses.
    pub(super) inputs: Vec<u64>,
    /// Addresses; 0 of outputs whose size is not known yet.
    pub(super) outputs: Vec<u64>,
    /// Whether an output has its place.
    placed: Vec<bool>,
    /// Times every piece of the run.
    pub(super) timer: Option<Timer>,
    /// Inputs mean nothing, and what they lead to is no error.
    pub(super) rehearsed: bool,
}

/// Where inputs and outputs of the host lie in staging memory.
pub(super) struct Staging {
    inputs: Range<usize>,
    outputs: Range<usize>,
    /// By output.
    starts: Vec<usize>,
}

/// An output for the host.
#[derive(Debug)]
pub(super) struct Fetch {
    pub(super) from: From,
    pub(super) bytes: usize,
    pub(super) shape: Vec<usize>,
}

/// Where a context has an output.
#[derive(Clone, Copy, Debug)]
pub(super) enum From {
    /// From there on in staging memory.
    Staged(usize),
    /// In memory of its own: the output of this number.
    Late(usize),
}

impl<'r> Execution<'r> {
    pub(super) fn new(
        model: &'r CudaModel,
        signature: &'r Signature,
        sizes: &'r Sizes,
        layout: Layout<'r>,
        context: &'r mut Context,
        stream: Arc<Stream>,
    ) -> Self {
        Self {
            model,
            signature,
            sizes,
            layout,
            known: Known::new(&signature.symbols, sizes.atoms()),
            context,
            stream,
            inputs: Vec::new(),
            outputs: vec![0; signature.outputs.len()],
            placed: vec![false; signature.outputs.len()],
            timer: None,
            rehearsed: false,
        }
    }

    /// As [`Execution::whole`], on data that mean nothing: sizes that they give are moved into their ranges, and the run
    /// ends where sizes contradict each other. The context has memory for the greatest sizes then.
    pub(super) fn rehearse(
        &mut self,
        inputs: &[InputRef<'_>],
        outputs: &mut [OutputRef<'_>],
    ) -> Result<()> {
        self.rehearsed = true;
        self.context.finish()?;
        for (i, port) in self.signature.outputs.iter().enumerate() {
            if self.sizes.is_open(i) {
                self.context.reserve_late(i, self.model.most_bytes(port) as usize)?;
            }
        }
        self.context.reserve_host(self.model.host_bytes()? as usize)?;
        self.whole(inputs, outputs)
    }

    /// As [`Execution::whole`], piece by piece; gives their times.
    pub(super) fn timed(
        &mut self,
        inputs: &[InputRef<'_>],
        outputs: &mut [OutputRef<'_>],
    ) -> Result<Vec<Span>> {
        self.timer = Some(Timer::default());
        let whole = self.whole(inputs, outputs);
        // Nothing may be held up any longer when the run has failed.
        let mut timer = self.timer.take().unwrap_or_default();
        timer.open();
        whole?;
        self.stream.synchronize()?;
        timer.spans(self.model)
    }

    /// Puts the run into the stream, and waits for it if an output is on the host.
    pub(super) fn whole(
        &mut self,
        inputs: &[InputRef<'_>],
        outputs: &mut [OutputRef<'_>],
    ) -> Result<()> {
        let fetches = self.begin(inputs, outputs)?;
        self.let_pass();
        let sinks = outputs.iter_mut().filter_map(|output| match &mut output.data {
            OutputData::Host(sink) => Some(sink),
            OutputData::Device { .. } => None,
        });
        let mut sinks: Vec<_> = sinks.zip(&fetches).collect();
        // The system's time for fresh memory passes while the GPU works.
        sinks.iter_mut().for_each(|(sink, fetch)| sink.prepare(fetch.bytes));
        if let Some(done) = self.context.last.as_ref().filter(|_| !fetches.is_empty()) {
            done.synchronize()?;
        }
        for (sink, fetch) in sinks {
            sink.store(self.context.fetched(fetch));
        }
        Ok(())
    }

    /// Puts the run into the stream; tells where outputs for the host are once it is done, in order.
    pub(super) fn begin(
        &mut self,
        inputs: &[InputRef<'_>],
        outputs: &mut [OutputRef<'_>],
    ) -> Result<Vec<Fetch>> {
        self.context.reserve_arena(self.layout.arena())?;
        let staging = self.stage(inputs, outputs)?;
        self.place_outputs(outputs, &staging)?;
        match self.steps(outputs, &staging) {
            Err(Error::Guard { .. }) if self.rehearsed => {}
            result => result?,
        }
        self.finish(inputs, outputs, &staging)
    }

    /// Has memory for what is on the host, as far as its size is known, and puts inputs where uploads begin.
    fn stage(&mut self, inputs: &[InputRef<'_>], outputs: &[OutputRef<'_>]) -> Result<Staging> {
        let host_inputs = inputs.iter().map(|i| match &i.data {
            InputData::Host(bytes) => bytes.len(),
            InputData::Device(_) => 0,
        });
        let host_outputs = outputs.iter().enumerate().map(|(i, o)| match &o.data {
            OutputData::Host(_) if !self.sizes.is_open(i) => byte_length(o),
            _ => 0,
        });
        let lengths: Vec<usize> = host_inputs.chain(host_outputs).collect();
        let mut starts = self.context.reserve_staging(&lengths)?;
        if let Some(last) = &self.context.last {
            self.stream.wait(last)?;
        }
        let ports = &self.signature.inputs;
        for ((input, port), start) in inputs.iter().zip(ports).zip(&starts) {
            self.inputs.push(match &input.data {
                InputData::Host(bytes) => self.context.stage(*start, bytes),
                InputData::Device(Memory::Cuda(shared)) => {
                    self.model.check_gpu(shared.gpu(), &port.name)?;
                    shared.before_read(&self.stream)?;
                    shared.address()
                }
                InputData::Device(Memory::Host(_)) => {
                    return Err(self.model.elsewhere(&port.name));
                }
            });
        }
        let (middle, end) = (starts[inputs.len()], starts[lengths.len()]);
        let starts = starts.drain(inputs.len()..lengths.len()).collect();
        Ok(Staging { inputs: 0..middle, outputs: middle..end, starts })
    }

    /// Gives memory to the outputs whose size has become known.
    pub(super) fn place_outputs(
        &mut self,
        outputs: &mut [OutputRef<'_>],
        staging: &Staging,
    ) -> Result<()> {
        let ports = &self.signature.outputs;
        for (i, (output, port)) in outputs.iter_mut().zip(ports).enumerate() {
            if self.placed[i] || !self.known.has_all(&port.shape) {
                continue;
            }
            if let OutputData::Device { memory: Memory::Cuda(shared), .. } = &output.data {
                self.model.check_gpu(shared.gpu(), &port.name)?;
            }
            if self.sizes.is_open(i) {
                output.resize(&port.name, self.signature.shape(port, &self.known)?)?;
            }
            let bytes = byte_length(output);
            self.placed[i] = true;
            self.outputs[i] = match &output.data {
                OutputData::Host(_) if self.sizes.is_open(i) => {
                    self.context.reserve_late(i, bytes)?
                }
                OutputData::Host(_) => self.context.staged_address(staging.starts[i]),
                OutputData::Device { memory: Memory::Cuda(shared), .. } => {
                    shared.before_write(&self.stream)?;
                    shared.address()
                }
                OutputData::Device { memory: Memory::Host(_), .. } => {
                    return Err(self.model.elsewhere(&port.name));
                }
            };
        }
        Ok(())
    }

    /// Launches everything, waiting where a size is read.
    fn steps(&mut self, outputs: &mut [OutputRef<'_>], staging: &Staging) -> Result<()> {
        let model = self.model;
        if let Some(device) = model.on_device()
            && self.timer.is_none()
            && self.all_at_once(device, staging)?
        {
            return Ok(());
        }
        let all = model.program().steps.as_slice();
        let evaluated = match self.sizes.launches.get() {
            Some(evaluated) => evaluated,
            None => {
                let (first, _) = whole_steps(all, self.sizes.atoms());
                let evaluated = self.evaluate(first, None)?;
                self.sizes.launches.get_or_init(|| evaluated)
            }
        };
        let rest = &all[evaluated.steps..];
        if rest.is_empty() && self.timer.is_none() {
            return self.replay(evaluated, staging);
        }
        let upload = self.context.upload(staging.inputs.clone());
        self.submit(evaluated, upload)?;
        self.sequence(rest, outputs, staging)?;
        if let Some(download) = self.context.download(staging.outputs.clone()) {
            self.copy(download)?;
        }
        for (i, output) in outputs.iter().enumerate() {
            if let OutputData::Host(_) = &output.data
                && self.sizes.is_open(i)
                && let Some(download) = self.context.download_late(i, byte_length(output))
            {
                self.copy(download)?;
            }
        }
        Ok(())
    }

    /// Launches everything as one graph, in which the GPU decides what data decide; whether it may at these sizes.
    fn all_at_once(&mut self, device: &OnDevice, staging: &Staging) -> Result<bool> {
        let steps = &self.model.program().steps;
        let evaluate = || match device.is_safe(self.sizes.atoms()) {
            true => self.evaluate(steps, Some(device)).map(Some),
            false => Ok(None),
        };
        let rehearsed;
        let decided = match self.sizes.decided.get() {
            _ if self.rehearsed => {
                rehearsed = evaluate()?;
                &rehearsed
            }
            Some(decided) => decided,
            None => {
                let decided = evaluate()?;
                self.sizes.decided.get_or_init(|| decided)
            }
        };
        match decided {
            Some(decided) => self.replay(decided, staging).map(|()| true),
            None => Ok(false),
        }
    }

    /// Launches a run of which the host learns nothing on the way.
    fn replay(&mut self, evaluated: &Evaluated, staging: &Staging) -> Result<()> {
        let upload = self.context.upload(staging.inputs.clone());
        let download = self.context.download(staging.outputs.clone());
        self.put(evaluated, upload, download)
    }

    /// Launches what is a graph from its second time on.
    pub(super) fn put(
        &mut self,
        evaluated: &Evaluated,
        upload: Option<Transfer>,
        download: Option<Transfer>,
    ) -> Result<()> {
        let model = self.model;
        self.context.sizes.put(&self.stream, evaluated)?;
        let places = self.context.places(self.layout.offsets(), &self.inputs, &self.outputs);
        let flight = &self.context.flight;
        let run = Run { upload, download, ..model.whole(evaluated, places, flight) };
        self.context.replays.run(model.gpu(), &self.stream, &run)
    }

    /// Steps at the sizes that are known.
    pub(super) fn evaluate(&self, steps: &[Step], device: Option<&OnDevice>) -> Result<Evaluated> {
        let templates = self.model.templates();
        let how = How { layout: self.layout, templates, device, rehearsed: self.rehearsed };
        evaluate(how, steps, self.known.atoms())
    }

    /// Says when tensors may be used again, and where outputs for the host are then.
    fn finish(
        &mut self,
        inputs: &[InputRef<'_>],
        outputs: &[OutputRef<'_>],
        staging: &Staging,
    ) -> Result<Vec<Fetch>> {
        let done = self.context.record(&self.stream)?;
        self.context.last = Some(done.clone());
        self.context.flight.ends_with(&done);
        for input in inputs {
            if let InputData::Device(Memory::Cuda(shared)) = &input.data {
                shared.after_read(&done)?;
            }
        }
        for output in outputs.iter() {
            if let OutputData::Device { memory: Memory::Cuda(shared), .. } = &output.data {
                shared.after_write(&done)?;
            }
        }
        let on_host = |output: &OutputRef<'_>| matches!(output.data, OutputData::Host(_));
        let fetches = outputs.iter().enumerate().filter(|(_, output)| on_host(output));
        Ok(fetches
            .map(|(i, output)| Fetch {
                from: match self.sizes.is_open(i) {
                    true => From::Late(i),
                    false => From::Staged(staging.starts[i]),
                },
                bytes: byte_length(output),
                shape: output.shape().to_vec(),
            })
            .collect())
    }
}

fn byte_length(output: &OutputRef<'_>) -> usize {
    let elements = output.shape().iter().fold(1u64, |n, d| n.saturating_mul(*d as u64));
    output.dtype.bytes_for(elements).map_or(0, |b| b as usize)
}
