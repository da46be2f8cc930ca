//! A program on a GPU.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use aot_ir::{Scope, SymId};

use super::context::{Context, Places};
use super::driver::{Block, Notice, PinnedWord};
use super::evaluate::{Evaluated, How, evaluate, most_sizes};
use super::execution::Execution;
use super::flight::{Flight, Names};
use super::layout::{Layout, Placement};
use super::load::{self, Functions};
use super::on_device::{Decisions, OnDevice};
use super::replay::Run;
use super::sizes_table::SizesTable;
use super::started::Started;
use super::templates::Templates;
use super::upload::upload;
use super::{Gpu, Stream};
use crate::artifact::{ImagesFile, UncheckedWeights};
use crate::concurrent::Pool;
use crate::loaded::{ContextMemory, MemoryUse, Signature, Sizes, Uploaded};
use crate::ports::{InputRef, OutputRef};
use crate::profile::Span;
use crate::program::{BufferId, LaunchWork, Place, Port, Program, Step, Target};
use crate::{Error, Result};

/// Execution contexts that a model has at most, unless it is told otherwise. A GPU is busy with fewer runs at once.
const MOST_CONTEXTS: usize = 8;
/// Compute capability from which kernels wait for the launch before by themselves.
const WAITS: u16 = 90;

/// A loaded program.
#[derive(Debug)]
pub(crate) struct CudaModel {
    /// Dropped first: a context waits for its run, which uses the rest.
    contexts: Pool<Context>,
    gpu: Arc<Gpu>,
    program: Program,
    target: Target,
    functions: Functions,
    /// What is decided on the GPU.
    decisions: Decisions,
    /// The launches of runs.
    templates: Arc<Templates>,
    resources: Resources,
    names: Arc<Names>,
    /// Whether runs wait for every kernel.
    blocking: bool,
    uploaded: Uploaded,
}

/// A context that a run is to have; given back if there is no run.
#[derive(Debug)]
pub(crate) struct Taken<'m> {
    model: &'m CudaModel,
    context: Option<Context>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some(context) = self.context.take() {
            self.model.give_back(context);
        }
    }
}

/// Memory that lives as long as the model.
#[derive(Debug)]
struct Resources {
    placement: Placement,
    scratch_bytes: usize,
    /// Bytes of what kernels read of sizes, at most.
    sizes: usize,
    blocks: Vec<Block>,
}

impl CudaModel {
    /// Resolves kernels, uploads weights, which are checked on the way, and prepares.
    pub(crate) fn load(
        gpu: &Arc<Gpu>,
        program: Program,
        images: &[&[u8]],
        weights: &UncheckedWeights,
    ) -> Result<Self> {
        let off = program.steps.iter().flat_map(Step::on_host).find(|op| !op.is_available());
        if let Some(op) = off {
            return Err(Error::FeatureOff(op.feature()));
        }
        let (target, file): (&Target, ImagesFile<'_>) = load::choose(gpu, &program, images)?;
        let target = target.clone();
        let names = Arc::new(Names::new(&program, &target));
        let blocking = load::blocking(load::variable)?;
        let functions = load::functions(gpu, &program.model, &target, &file)?;
        let stream = Stream::new(gpu)?;
        let in_runs = load::used(&target, &program.steps);
        let ids = |wanted: &dyn Fn(BufferId, Place) -> bool| -> Vec<BufferId> {
            let all = program.buffers.iter().enumerate();
            let all = all.map(|(i, b)| (BufferId(i as u32), b.place));
            let mut ids: Vec<_> =
                all.filter(|(id, place)| wanted(*id, *place)).map(|(id, _)| id).collect();
            // Weights lie as they do in their file.
            ids.sort_by_key(|id| match program.buffers[id.0 as usize].place {
                Place::Weight(n) => program.weights[n as usize].offset,
                _ => u64::MAX,
            });
            ids
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
        let begun = Instant::now();
        let destinations = [(&kept_block, &kept_places), (&passing_block, &passing_places)];
        upload(&stream, &program, weights, &destinations)?;
        let uploaded = Uploaded { bytes: weights.data().len() as u64, time: begun.elapsed() };
        let address = |block: &Block, places: &HashMap<BufferId, u64>| {
            let base = block.address();
            places.iter().map(|(id, offset)| (*id, base + offset)).collect::<Vec<_>>()
        };
        let mut fixed: HashMap<BufferId, u64> =
            address(&kept_block, &kept_places).into_iter().collect();
        fixed.extend(address(&passing_block, &passing_places));
        let mut placement = Placement::new(&program, &fixed, &scratch);
        let templates = |placement: &Placement, steps: &[Step]| {
            let templates = Templates::new(&target, steps, |id| placement.place(id))?;
            load::check_parameters(&templates, &functions.launched)?;
            Ok::<_, Error>(Arc::new(templates))
        };
        let prepare = {
            let templates = templates(&placement, &program.prepare)?;
            // Preparing depends on no sizes; any will do.
            let atoms: Vec<i64> = program.symbols.iter().map(|(_, s)| s.lo).collect();
            let layout = Layout::new(&program, &placement, &atoms);
            let (templates, device, rehearsed) = (&templates, None, false);
            evaluate(How { layout, templates, device, rehearsed }, &program.prepare, &atoms)?
        };
        passing_places.keys().for_each(|id| placement.remove(*id));
        let templates = templates(&placement, &program.steps)?;
        let decisions = match functions.control {
            Some(_) if !blocking => Decisions::new(&program, &target, &templates),
            _ => Decisions::default(),
        };
        let sizes = most_sizes(&templates, &program.steps, &Scope::new(&program.symbols), None);
        let sizes = sizes.max(decisions.sizes).max(prepare.sizes.len());
        let blocks = vec![kept_block];
        let model = Self {
            gpu: gpu.clone(),
            target,
            functions,
            decisions,
            templates,
            resources: Resources { placement, scratch_bytes, sizes, blocks },
            contexts: Pool::new(MOST_CONTEXTS),
            uploaded,
            program,
            names,
            blocking,
        };
        let mut context = model.contexts.take(|| model.new_context())?;
        context.stream.synchronize()?;
        let stream = context.stream.clone();
        context.sizes.put(&stream, &prepare)?;
        let places = context.places(&[], &[], &[]);
        model.whole(&prepare, places, &context.flight).submit(&context.stream)?;
        context.stream.synchronize()?;
        context.flight.over();
        model.give_back(context);
        drop(passing_block);
        Ok(model)
    }

    /// Whether a stream is of the model's GPU.
    pub(crate) fn owns(&self, stream: &Stream) -> bool {
        stream.gpu().is(&self.gpu)
    }

    /// How its weights came to the GPU.
    pub(crate) fn uploaded(&self) -> Uploaded {
        self.uploaded
    }

    /// What the model takes.
    pub(crate) fn memory(&self) -> MemoryUse {
        let weights = self.resources.blocks.iter().map(|b| b.bytes() as u64).sum();
        let idle = self.contexts.idle(Context::memory);
        let ports = self.program.inputs.iter().chain(&self.program.outputs);
        let staging = Context::staging(ports.map(|port| self.most_bytes(port)));
        let context = ContextMemory {
            arena: self.program.plans.last().map_or(0, |plan| plan.total),
            workspace: (self.resources.scratch_bytes + SizesTable::room(self.resources.sizes))
                as u64,
            staging,
            pinned: staging
                + SizesTable::pinned_room(self.resources.sizes) as u64
                + self.host_bytes().unwrap_or(0)
                + PinnedWord::BYTES as u64,
        };
        let (contexts, idle) =
            (idle.len(), idle.into_iter().fold(ContextMemory::default(), ContextMemory::plus));
        MemoryUse { weights, contexts, idle, context }
    }

    /// The launches of runs.
    pub(super) fn templates(&self) -> &Arc<Templates> {
        &self.templates
    }

    /// What of all steps the GPU decides, if that is everything that data decide.
    pub(super) fn on_device(&self) -> Option<&OnDevice> {
        self.decisions.all.as_ref()
    }

    /// What of a loop, which is known by what counts its iterations, the GPU decides at these sizes.
    pub(super) fn on_device_loop(&self, iteration: SymId, atoms: &[i64]) -> Option<&OnDevice> {
        self.decisions.loops.get(&iteration).filter(|device| device.is_safe(atoms))
    }

    pub(super) fn program(&self) -> &Program {
        &self.program
    }

    pub(super) fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    fn new_context(&self) -> Result<Context> {
        let Resources { scratch_bytes, sizes, .. } = self.resources;
        Context::new(&self.gpu, &self.names, scratch_bytes, sizes)
    }

    /// Changes how many execution contexts there are at most.
    pub(crate) fn limit_contexts(&self, most: usize) {
        self.contexts.limit(most);
    }

    pub(super) fn give_back(&self, context: Context) {
        self.contexts.give_back(context);
    }

    /// Runs the program; waits if an output is on the host, and for every size that the run computes.
    pub(crate) fn run(
        &self,
        signature: &Signature,
        sizes: &Sizes,
        stream: Option<&Arc<Stream>>,
        inputs: &[InputRef<'_>],
        outputs: &mut [OutputRef<'_>],
    ) -> Result<()> {
        self.in_a_context(signature, sizes, stream, |execution| execution.whole(inputs, outputs))
    }

    /// Runs the program on data that mean nothing, so that later runs find memory and graphs ready.
    pub(crate) fn rehearse(
        &self,
        signature: &Signature,
        sizes: &Sizes,
        inputs: &[InputRef<'_>],
        outputs: &mut [OutputRef<'_>],
    ) -> Result<()> {
        self.in_a_context(signature, sizes, None, |execution| execution.rehearse(inputs, outputs))
    }

    /// Bytes of an input or output at the greatest sizes.
    pub(super) fn most_bytes(&self, port: &Port) -> u64 {
        load::most_bytes(&self.program, port)
    }

    /// Bytes that steps of the host take at the greatest sizes.
    pub(super) fn host_bytes(&self) -> Result<u64> {
        load::host_bytes(&self.program, &self.program.steps)
    }

    /// Runs the program piece by piece; what it did, and how long that took.
    pub(crate) fn profile(
        &self,
        signature: &Signature,
        sizes: &Sizes,
        stream: Option<&Arc<Stream>>,
        inputs: &[InputRef<'_>],
        outputs: &mut [OutputRef<'_>],
    ) -> Result<Vec<Span>> {
        self.in_a_context(signature, sizes, stream, |execution| execution.timed(inputs, outputs))
    }

    /// Does something with a run in a context that waits for its turn, in a stream of the caller's or the context's own.
    fn in_a_context<T>(
        &self,
        signature: &Signature,
        sizes: &Sizes,
        stream: Option<&Arc<Stream>>,
        work: impl FnOnce(&mut Execution<'_>) -> Result<T>,
    ) -> Result<T> {
        self.gpu.enter()?;
        let context = self.contexts.take(|| self.new_context())?;
        let stream = stream.cloned().unwrap_or_else(|| context.stream.clone());
        let (result, context) = self.within(context, signature, sizes, &stream, work)?;
        self.give_back(context);
        Ok(result)
    }

    /// The kernel of a launch, and the nodes of the source model that it computes.
    pub(super) fn named(&self, launch: u32, function: usize) -> (String, Vec<String>) {
        let kernel = self.target.kernels.get(function).map(|kernel| kernel.entry.clone());
        let nodes = self.program.origins.get(launch as usize).cloned();
        (kernel.unwrap_or_default(), nodes.unwrap_or_default())
    }

    /// What a launch has to do.
    pub(super) fn work(&self, launch: u32) -> Option<&LaunchWork> {
        self.program.work.get(launch as usize)
    }

    /// A context for [`CudaModel::start`], without holding up the thread.
    pub(crate) async fn context(&self) -> Result<Taken<'_>> {
        let make = || self.gpu.enter().and_then(|()| self.new_context());
        let context = self.contexts.take_async(make).await?;
        Ok(Taken { model: self, context: Some(context) })
    }

    /// Puts a run into a stream. Outputs on the host are not written to: [`Started`] has them. Waits for every size
    /// that the run computes.
    pub(crate) fn start<'m>(
        mut taken: Taken<'m>,
        signature: &Signature,
        sizes: &Sizes,
        inputs: &[InputRef<'_>],
        outputs: &mut [OutputRef<'_>],
    ) -> Result<Started<'m>> {
        let model = taken.model;
        model.gpu.enter()?;
        let context = taken.context.take().ok_or(Error::Poisoned("a model"))?;
        let stream = context.stream.clone();
        let begin = |execution: &mut Execution<'_>| {
            let fetches = execution.begin(inputs, outputs)?;
            Ok((fetches, Notice::of(&stream)?))
        };
        let ((fetches, notice), context) =
            model.within(context, signature, sizes, &stream, begin)?;
        Ok(Started::new(model, context, fetches, notice))
    }

    /// Does something with a run in a context, which it gives back.
    fn within<T>(
        &self,
        mut context: Context,
        signature: &Signature,
        sizes: &Sizes,
        stream: &Arc<Stream>,
        work: impl FnOnce(&mut Execution<'_>) -> Result<T>,
    ) -> Result<(T, Context)> {
        let layout = Layout::new(&self.program, &self.resources.placement, sizes.atoms());
        let mut execution =
            Execution::new(self, signature, sizes, layout, &mut context, stream.clone());
        match work(&mut execution) {
            Ok(result) => Ok((result, context)),
            Err(error) => {
                // What was launched before the failure may still use the context, which is dropped here,
                // and tensors of the caller. The first error is the one to tell.
                let _ = stream.synchronize();
                drop(context);
                self.contexts.forget();
                Err(error)
            }
        }
    }

    /// A run without staged tensors.
    pub(super) fn whole<'a>(
        &'a self,
        evaluated: &'a Evaluated,
        places: Places<'a>,
        flight: &'a Flight,
    ) -> Run<'a> {
        let (functions, waits) =
            (self.functions.launched.as_slice(), self.target.arch.capability() >= WAITS);
        let control = self.functions.control.as_ref();
        let (blocking, upload, download) = (self.blocking, None, None);
        Run { functions, control, waits, evaluated, places, flight, blocking, upload, download }
    }

    pub(super) fn check_gpu(&self, other: &Gpu, name: &str) -> Result<()> {
        match other.is(&self.gpu) {
            true => Ok(()),
            false => Err(self.other(name, other.described())),
        }
    }

    pub(super) fn elsewhere(&self, name: &str) -> Error {
        self.other(name, "the CPU".to_owned())
    }

    fn other(&self, name: &str, found: String) -> Error {
        Error::OtherDevice { name: name.to_owned(), found, expected: self.gpu.described() }
    }
}
