//! Runs.

use super::driver::{Function, Stream, copy};
use super::evaluate::{Action, Address, Base};
use super::{Context, CudaModel, Gpu, Shared};
use crate::device::Memory;
use crate::loaded::Sizes;
use crate::ports::{InputData, InputRef, OutputData, OutputRef};
use crate::{Error, Result};
use std::sync::Arc;

/// Where the blocks lie that a run uses.
#[derive(Debug, Default)]
pub(super) struct Bases {
    pub(super) inputs: Vec<u64>,
    pub(super) outputs: Vec<u64>,
    pub(super) weights: u64,
    pub(super) prepared: u64,
    pub(super) prepare_scratch: u64,
    pub(super) arena: u64,
    pub(super) scratch: u64,
}

impl Bases {
    fn resolve(&self, Address { base, offset }: Address) -> u64 {
        let port = |ports: &[u64], i: u32| ports.get(i as usize).copied().unwrap_or(0);
        let start = match base {
            Base::Input(i) => port(&self.inputs, i),
            Base::Output(i) => port(&self.outputs, i),
            Base::Weights => self.weights,
            Base::Prepared => self.prepared,
            Base::PrepareScratch => self.prepare_scratch,
            Base::Arena => self.arena,
            Base::Scratch => self.scratch,
        };
        start.wrapping_add(offset)
    }
}

/// Puts actions into a stream.
pub(super) fn perform(
    stream: &Stream,
    functions: &[Function],
    actions: &[Action],
    bases: &Bases,
) -> Result<()> {
    let mut packed = Vec::new();
    for action in actions {
        match action {
            Action::Launch { kernel, grid, arguments, addresses } => {
                packed.clear();
                packed.extend_from_slice(arguments);
                for (word, address) in addresses {
                    if let Some(word) = packed.get_mut(*word as usize) {
                        *word = bases.resolve(*address);
                    }
                }
                let missing = || Error::artifact("the program", "a launch has no kernel");
                let function = functions.get(*kernel as usize).ok_or_else(missing)?;
                // SAFETY: kernel and arguments were made together by `cargo aot build`, and their
                // artifact matches its checksum; where the driver tells the parameter's size, it
                // was compared at load. The blocks outlive the run: contexts and models wait
                // for their runs before they free memory, and device tensors are ordered by their
                // events.
                #[allow(unsafe_code)]
                unsafe {
                    function.launch(stream, *grid, &packed)?;
                }
            }
            Action::Copy { from, to, bytes } => {
                // SAFETY: both buffers have this size by the program that was evaluated, and
                // outlive the run as above.
                #[allow(unsafe_code)]
                unsafe {
                    copy(stream, bases.resolve(*from), bases.resolve(*to), *bytes)?;
                }
            }
        }
    }
    Ok(())
}

/// Inputs and outputs on the host begin at multiples of this in their block.
const ALIGNMENT: usize = 256;

impl CudaModel {
    /// Puts a run into a stream, and waits for it if an output is on the host.
    pub(crate) fn run(
        &self,
        sizes: &Sizes,
        stream: Option<&Arc<Stream>>,
        inputs: &[InputRef<'_>],
        outputs: &mut [OutputRef<'_>],
    ) -> Result<()> {
        self.gpu.enter()?;
        let mut context = self.contexts.take(&self.gpu)?;
        let stream = stream.unwrap_or(&context.stream).clone();
        match self.run_in(&mut context, sizes, &stream, inputs, outputs) {
            Ok(()) => {
                self.contexts.put(context);
                Ok(())
            }
            Err(error) => {
                // Part of it may be under way; its context is dropped, as its scratch memory need
                // not be zero any more.
                let _ = stream.synchronize();
                Err(error)
            }
        }
    }

    fn run_in(
        &self,
        context: &mut Context,
        sizes: &Sizes,
        stream: &Arc<Stream>,
        inputs: &[InputRef<'_>],
        outputs: &mut [OutputRef<'_>],
    ) -> Result<()> {
        let evaluated = self.evaluated(sizes)?;
        context.follow(stream)?;
        let mut staged = Staged::default();
        for (input, bytes) in inputs.iter().zip(&evaluated.inputs) {
            staged.inputs.push(matches!(input.data, InputData::Host(_)).then(|| staged.take(*bytes)));
        }
        for (output, bytes) in outputs.iter().zip(&evaluated.outputs) {
            let host = matches!(output.data, OutputData::Host(_));
            staged.outputs.push(host.then(|| staged.take(*bytes)));
        }
        let memory = context.reserve(stream, evaluated.arena, evaluated.scratch, staged.end)?;
        let mut bases = Bases {
            weights: self.weights.address(),
            prepared: self.prepared.address(),
            arena: memory.arena,
            scratch: memory.scratch,
            ..Bases::default()
        };
        for ((input, place), bytes) in inputs.iter().zip(&staged.inputs).zip(&evaluated.inputs) {
            bases.inputs.push(match (input.data, place) {
                (InputData::Host(data), Some(at)) => {
                    let n = data.len().min(*bytes);
                    memory.pinned.as_mut_slice()[*at..*at + n].copy_from_slice(&data[..n]);
                    memory.ports.upload(stream, *at, memory.pinned, *at, n)?;
                    memory.ports.address() + *at as u64
                }
                (InputData::Device(tensor), _) => {
                    let tensor = shared(tensor, &self.gpu, *bytes)?;
                    tensor.before_read(stream)?;
                    tensor.address()
                }
                (InputData::Host(_), None) => 0,
            });
        }
        for ((output, place), bytes) in outputs.iter().zip(&staged.outputs).zip(&evaluated.outputs) {
            bases.outputs.push(match (&output.data, place) {
                (OutputData::Device(tensor), _) => {
                    let tensor = shared(tensor, &self.gpu, *bytes)?;
                    tensor.before_write(stream)?;
                    tensor.address()
                }
                (OutputData::Host(_), at) => memory.ports.address() + at.unwrap_or(0) as u64,
            });
        }
        perform(stream, &self.functions, &evaluated.actions, &bases)?;
        let mut wait = false;
        for (place, bytes) in staged.outputs.iter().zip(&evaluated.outputs) {
            if let Some(at) = place {
                memory.ports.download(stream, *at, memory.pinned, *at, *bytes)?;
                wait = true;
            }
        }
        let done = stream.record()?;
        for (input, bytes) in inputs.iter().zip(&evaluated.inputs) {
            if let InputData::Device(tensor) = input.data {
                shared(tensor, &self.gpu, *bytes)?.after_read(stream, &done);
            }
        }
        for (output, bytes) in outputs.iter().zip(&evaluated.outputs) {
            if let OutputData::Device(tensor) = &output.data {
                shared(tensor, &self.gpu, *bytes)?.after_write(stream, &done);
            }
        }
        if wait {
            done.synchronize()?;
            for ((output, place), bytes) in
                outputs.iter_mut().zip(&staged.outputs).zip(&evaluated.outputs)
            {
                if let (OutputData::Host(sink), Some(at)) = (&mut output.data, place) {
                    sink.store(&memory.pinned.as_slice()[*at..*at + *bytes]);
                }
            }
        }
        context.ends(stream, &done);
        Ok(())
    }
}

/// Where inputs and outputs of the host are staged.
#[derive(Default)]
struct Staged {
    inputs: Vec<Option<usize>>,
    outputs: Vec<Option<usize>>,
    end: usize,
}

impl Staged {
    fn take(&mut self, bytes: usize) -> usize {
        let at = self.end.next_multiple_of(ALIGNMENT);
        self.end = at.saturating_add(bytes);
        at
    }
}

/// The memory of a tensor, if it is of this GPU and large enough.
fn shared<'a>(memory: &'a Memory, gpu: &Gpu, bytes: usize) -> Result<&'a Shared> {
    let other = |found: &str| Error::OtherDevice {
        name: "a device tensor".to_owned(),
        found: found.to_owned(),
        expected: gpu.name().to_owned(),
    };
    match memory {
        Memory::Cuda(shared) if shared.gpu().index() != gpu.index() => {
            Err(other(&format!("{} {}", shared.gpu().name(), shared.gpu().index())))
        }
        Memory::Cuda(shared) if shared.bytes() < bytes => {
            Err(Error::Elements { found: shared.bytes(), shape: vec![bytes] })
        }
        Memory::Cuda(shared) => Ok(shared),
        Memory::Host(_) => Err(other("the CPU")),
    }
}
