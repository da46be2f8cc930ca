//! A program on a GPU.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use aot_ir::Bytes;

use super::context::{Context, Places};
use super::driver::{Block, Function};
use super::evaluate::{Action, Evaluated, evaluate};
use super::load;
use super::replay::Run;
use super::{Gpu, Stream};
use crate::artifact::ImagesFile;
use crate::device::Memory;
use crate::loaded::{MemoryUse, Sizes};
use crate::ports::{InputData, InputRef, OutputData, OutputRef};
use crate::program::{BufferId, Place, Program, Step, Target};
use crate::{Error, Result};

/// Execution contexts that are kept for later runs.
const KEPT_CONTEXTS: usize = 8;

/// A loaded program.
#[derive(Debug)]
pub(crate) struct CudaModel {
    gpu: Arc<Gpu>,
    program: Program,
    target: Target,
    functions: Vec<Function>,
    resources: Resources,
    contexts: Mutex<Vec<Context>>,
}

/// Memory that lives as long as the model.
#[derive(Debug)]
pub(super) struct Resources {
    /// Addresses of weights and of what was prepared from them.
    pub(super) fixed: HashMap<BufferId, u64>,
    /// Offsets in the zeroed scratch of each execution context.
    pub(super) scratch: HashMap<BufferId, u64>,
    scratch_bytes: usize,
    blocks: Vec<Block>,
}

impl CudaModel {
    /// Uploads weights, resolves kernels and prepares.
    pub(crate) fn load(
        gpu: &Arc<Gpu>,
        program: Program,
        images: &[&[u8]],
        weights: &Bytes,
    ) -> Result<Self> {
        let (target, file): (&Target, ImagesFile<'_>) = load::choose(gpu, &program, images)?;
        let target = target.clone();
        let functions = load::functions(gpu, &program.model, &target, &file)?;
        let stream = Stream::new(gpu)?;
        let in_runs = load::used(&target, &program.steps);
        let ids = |wanted: &dyn Fn(BufferId, Place) -> bool| -> Vec<BufferId> {
            let all = program.buffers.iter().enumerate();
            let all = all.map(|(i, b)| (BufferId(i as u32), b.place));
            all.filter(|(id, place)| wanted(*id, *place)).map(|(id, _)| id).collect()
        };
        let is_weight = |place: Place| matches!(place, Place::Weight(_));
        let kept = ids(&|id, place| {
            place == Place::Prepared || (is_weight(place) && in_runs.contains(&id))
        });
        let passing = ids(&|id, place| {
            place == Place::PrepareScratch || (is_weight(place) && !in_runs.contains(&id))
        });
        let scratch = ids(&|_, place| place == Place::ZeroedScratch);
        let (kept_places, kept_bytes) = load::layout(&program, &kept)?;
        let (passing_places, passing_bytes) = load::layout(&program, &passing)?;
        let (scratch, scratch_bytes) = load::layout(&program, &scratch)?;
        let kept_block = Block::new(gpu, kept_bytes, "weights")?;
        let passing_block = Block::new(gpu, passing_bytes, "weights while they are prepared")?;
        load::upload(&stream, &program, weights, &kept_places, &kept_block)?;
        load::upload(&stream, &program, weights, &passing_places, &passing_block)?;
        let address = |block: &Block, places: &HashMap<BufferId, u64>| {
            let base = block.address();
            places.iter().map(|(id, offset)| (*id, base + offset)).collect::<Vec<_>>()
        };
        let mut fixed: HashMap<BufferId, u64> =
            address(&kept_block, &kept_places).into_iter().collect();
        fixed.extend(address(&passing_block, &passing_places));
        let mut model = Self {
            gpu: gpu.clone(),
            target,
            functions,
            resources: Resources { fixed, scratch, scratch_bytes, blocks: vec![kept_block] },
            contexts: Mutex::new(Vec::new()),
            program,
        };
        // Preparing depends on no sizes; any will do.
        let atoms: Vec<i64> = model.program.symbols.iter().map(|(_, s)| s.lo).collect();
        let prepare = model.evaluate(&model.program.prepare, &atoms)?;
        model.check_parameters(&prepare)?;
        let context = Context::new(gpu, model.resources.scratch_bytes)?;
        context.stream.synchronize()?;
        model.whole(&prepare, context.places(&[], &[])).submit(&context.stream)?;
        context.stream.synchronize()?;
        model.give_back(context)?;
        for id in passing_places.keys() {
            model.resources.fixed.remove(id);
        }
        drop(passing_block);
        Ok(model)
    }

    /// Whether a stream is of the model's GPU.
    pub(crate) fn owns(&self, stream: &Stream) -> bool {
        stream.gpu().index() == self.gpu.index()
    }

    /// Bytes on the GPU.
    pub(crate) fn memory(&self) -> MemoryUse {
        let weights = self.resources.blocks.iter().map(|b| b.bytes() as u64).sum();
        let idle = self.contexts.lock().map_or(0, |c| c.iter().map(Context::bytes).sum());
        MemoryUse { weights, runs: idle }
    }

    fn evaluate(&self, steps: &[Step], atoms: &[i64]) -> Result<Evaluated> {
        evaluate(&self.program, &self.target, &self.resources, steps, atoms)
    }

    /// Checks that kernels take as many bytes of arguments as they are given, where the driver
    /// tells.
    fn check_parameters(&self, evaluated: &Evaluated) -> Result<()> {
        for action in &evaluated.actions {
            let Action::Launch { function, words, .. } = action else { continue };
            let wanted = self.functions.get(*function).map(Function::parameter);
            let given = words.len() * 8;
            match wanted {
                None => return Err(Error::artifact("the program", "a kernel is missing")),
                Some(Some(wanted)) if wanted.next_multiple_of(8) != given => {
                    let reason = format!("a kernel takes {wanted} bytes, not {given}");
                    return Err(Error::artifact("the kernel images", reason));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn take_context(&self) -> Result<Context> {
        let kept = self.contexts.lock().map_err(|_| Error::Poisoned("a model"))?.pop();
        match kept {
            Some(context) => Ok(context),
            None => Context::new(&self.gpu, self.resources.scratch_bytes),
        }
    }

    fn give_back(&self, context: Context) -> Result<()> {
        let mut contexts = self.contexts.lock().map_err(|_| Error::Poisoned("a model"))?;
        if contexts.len() < KEPT_CONTEXTS {
            contexts.push(context);
        }
        Ok(())
    }

    /// Runs the program; waits if an output is on the host.
    pub(crate) fn run(
        &self,
        sizes: &Sizes,
        stream: Option<&Arc<Stream>>,
        inputs: &[InputRef<'_>],
        outputs: &mut [OutputRef<'_>],
    ) -> Result<()> {
        self.gpu.enter()?;
        let evaluated = match sizes.launches.get() {
            Some(evaluated) => evaluated,
            None => {
                let evaluated = self.evaluate(&self.program.steps, sizes.atoms())?;
                self.check_parameters(&evaluated)?;
                sizes.launches.get_or_init(|| evaluated)
            }
        };
        let mut context = self.take_context()?;
        let stream = stream.cloned().unwrap_or_else(|| context.stream.clone());
        let result = self.run_in(&mut context, &stream, evaluated, inputs, outputs);
        if result.is_err() {
            // What was launched before the failure may still use the context, which is dropped here,
            // and tensors of the caller. The first error is the one to tell.
            let _ = stream.synchronize();
            return result;
        }
        self.give_back(context)
    }

    fn run_in(
        &self,
        context: &mut Context,
        stream: &Stream,
        evaluated: &Evaluated,
        inputs: &[InputRef<'_>],
        outputs: &mut [OutputRef<'_>],
    ) -> Result<()> {
        context.reserve_arena(evaluated.arena)?;
        let host_inputs = inputs.iter().map(|i| match &i.data {
            InputData::Host(bytes) => bytes.len(),
            InputData::Device(_) => 0,
        });
        let host_outputs = outputs.iter().map(|o| match &o.data {
            OutputData::Host(_) => byte_length(o),
            OutputData::Device(_) => 0,
        });
        let lengths: Vec<usize> = host_inputs.chain(host_outputs).collect();
        let starts = context.reserve_staging(&lengths)?;
        if let Some(last) = &context.last {
            stream.wait(last)?;
        }
        let mut addresses = Vec::with_capacity(inputs.len());
        for (i, input) in inputs.iter().enumerate() {
            addresses.push(match &input.data {
                InputData::Host(bytes) => context.stage(starts[i], bytes),
                InputData::Device(Memory::Cuda(shared)) => {
                    self.check_gpu(shared.gpu(), "an input")?;
                    shared.before_read(stream)?;
                    shared.address()
                }
                InputData::Device(Memory::Host(_)) => return Err(self.elsewhere("an input")),
            });
        }
        let mut results = Vec::with_capacity(outputs.len());
        for (i, output) in outputs.iter().enumerate() {
            results.push(match &output.data {
                OutputData::Host(_) => context.staged_address(starts[inputs.len() + i]),
                OutputData::Device(Memory::Cuda(shared)) => {
                    self.check_gpu(shared.gpu(), "an output")?;
                    shared.before_write(stream)?;
                    shared.address()
                }
                OutputData::Device(Memory::Host(_)) => return Err(self.elsewhere("an output")),
            });
        }
        let run = Run {
            upload: context.upload(0..starts[inputs.len()]),
            download: context.download(starts[inputs.len()]..starts[lengths.len()]),
            ..self.whole(evaluated, context.places(&addresses, &results))
        };
        context.replays.run(&self.gpu, stream, &run)?;
        let done = stream.record()?;
        context.last = Some(done.clone());
        for input in inputs {
            if let InputData::Device(Memory::Cuda(shared)) = &input.data {
                shared.after_read(&done)?;
            }
        }
        for output in outputs.iter() {
            if let OutputData::Device(Memory::Cuda(shared)) = &output.data {
                shared.after_write(&done)?;
            }
        }
        if outputs.iter().any(|o| matches!(o.data, OutputData::Host(_))) {
            done.synchronize()?;
            for (i, output) in outputs.iter_mut().enumerate() {
                let bytes = byte_length(output);
                if let OutputData::Host(sink) = &mut output.data {
                    sink.store(context.fetched(starts[inputs.len() + i], bytes));
                }
            }
        }
        Ok(())
    }

    /// A run without staged tensors.
    fn whole<'a>(&'a self, evaluated: &'a Evaluated, places: Places<'a>) -> Run<'a> {
        Run { functions: &self.functions, evaluated, places, upload: None, download: None }
    }

    fn check_gpu(&self, other: &Gpu, name: &str) -> Result<()> {
        if other.index() == self.gpu.index() {
            return Ok(());
        }
        Err(Error::OtherDevice {
            name: name.to_owned(),
            found: format!("{} (number {})", other.name(), other.index()),
            expected: format!("{} (number {})", self.gpu.name(), self.gpu.index()),
        })
    }

    fn elsewhere(&self, name: &str) -> Error {
        let (found, expected) = ("the CPU".to_owned(), self.gpu.name().to_owned());
        Error::OtherDevice { name: name.to_owned(), found, expected }
    }
}

fn byte_length(output: &OutputRef<'_>) -> usize {
    let elements = output.shape.iter().fold(1u64, |n, d| n.saturating_mul(*d as u64));
    output.dtype.bytes_for(elements).map_or(0, |b| b as usize)
}
