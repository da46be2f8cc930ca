//! A program on a GPU.

use std::sync::Arc;

use super::driver::{Block, Function, Gpu, Stream};
use super::evaluate::{Evaluated, evaluate};
use super::layout::Layout;
use super::run::{Bases, perform};
use super::upload::upload_weights;
use super::{Contexts, target};
use crate::loaded::{MemoryUse, Sizes};
use crate::program::Program;
use crate::{Error, Result};

/// A program with its weights and kernels on a GPU.
#[derive(Debug)]
pub(crate) struct CudaModel {
    // Dropped first: waits for runs that use what is below.
    pub(super) contexts: Contexts,
    pub(super) gpu: Arc<Gpu>,
    pub(super) program: Program,
    target: usize,
    layout: Layout,
    pub(super) functions: Vec<Function>,
    pub(super) weights: Block,
    pub(super) prepared: Block,
}

impl CudaModel {
    /// Loads kernels, uploads weights and does what the program prepares.
    pub(crate) fn load(
        gpu: &Arc<Gpu>,
        program: Program,
        images: &[&[u8]],
        weights: &[u8],
    ) -> Result<Self> {
        gpu.enter()?;
        let (target, functions) = target::load(gpu, &program, images)?;
        let layout = Layout::new(&program)?;
        let stream = Stream::new(gpu)?;
        let weights = upload_weights(&stream, &program, &layout, weights)?;
        let size = |bytes| {
            let wrong = |_| Error::artifact("the program", "what it prepares is too large");
            usize::try_from(bytes).map_err(wrong)
        };
        let what = format!("what is prepared of `{}`", program.model);
        let prepared = Block::zeroed(&stream, size(layout.prepared_bytes)?, &what)?;
        let scratch = Block::new(gpu, size(layout.prepare_scratch_bytes)?, &what)?;
        let prepare = evaluate(&program, &program.targets[target], &layout, &program.prepare, &[])?;
        let bases = Bases {
            weights: weights.address(),
            prepared: prepared.address(),
            prepare_scratch: scratch.address(),
            ..Bases::default()
        };
        let done = perform(&stream, &functions, &prepare.actions, &bases);
        // Before scratch memory is freed, whatever came of it.
        stream.synchronize()?;
        done?;
        let contexts = Contexts::default();
        let gpu = gpu.clone();
        Ok(Self { contexts, gpu, program, target, layout, functions, weights, prepared })
    }

    /// Memory that the model takes.
    pub(crate) fn memory(&self) -> MemoryUse {
        let weights = (self.weights.bytes() + self.prepared.bytes()) as u64;
        MemoryUse { weights, runs: self.contexts.bytes() }
    }

    /// Whether a stream is of the model's GPU.
    pub(crate) fn owns(&self, stream: &Stream) -> bool {
        stream.gpu().index() == self.gpu.index()
    }

    /// What a run of these sizes does; computed once for each.
    pub(super) fn evaluated<'a>(&self, sizes: &'a Sizes) -> Result<&'a Evaluated> {
        if let Some(evaluated) = sizes.launches.get() {
            return Ok(evaluated);
        }
        let Program { targets, steps, .. } = &self.program;
        let made =
            evaluate(&self.program, &targets[self.target], &self.layout, steps, sizes.atoms())?;
        Ok(sizes.launches.get_or_init(|| made))
    }
}
