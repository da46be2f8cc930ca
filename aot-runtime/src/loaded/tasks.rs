//! Runs that do not hold up the thread.

use super::model::Backend;
use super::outputs::HostOutput;
use super::{Loaded, RunOutputs, Sizes};
use crate::ports::{InputRef, OutputRef};
use crate::{Error, Result};

impl Loaded {
    /// As [`Loaded::run`], without holding up the thread, for tasks: the run begins when this is first polled, and a
    /// run that is dropped goes on. The thread waits for sizes that the run computes, and for the whole run on the CPU or
    /// where runs are recorded.
    ///
    /// At most [as many](Loaded::limit_contexts) runs as a model has execution contexts are going on at once; the
    /// others wait for their turn. So a thread that has begun as many without polling them must not call
    /// [`Loaded::run`].
    ///
    /// # Errors
    /// As [`Loaded::run`]; and of a model that appends to its state, when inputs of state are given.
    #[cfg_attr(not(feature = "cpu"), allow(irrefutable_let_patterns))]
    pub async fn run_async(
        &self,
        sizes: &Sizes,
        inputs: &[InputRef<'_>],
    ) -> Result<RunOutputs<'_>> {
        if self.takes_all(inputs.len())? && self.signature().appends() {
            let expected = inputs.len() - self.signature().state.len();
            return Err(Error::Count { what: "inputs", found: inputs.len(), expected });
        }
        #[cfg(feature = "cuda")]
        if let Backend::Cuda(model) = &self.model.backend
            && self.model.recorded.is_none()
        {
            let context = model.context().await?;
            let mut context = Some(context);
            let mut started = None;
            self.with_sinks(sizes, inputs, |inputs, outputs| {
                self.run_by(sizes, inputs, outputs, |inputs, outputs| {
                    self.check_inputs(sizes, inputs)?;
                    self.check_outputs(sizes, outputs)?;
                    let context = context.take().ok_or(Error::Poisoned("a run"))?;
                    let begin = crate::cuda::CudaModel::start;
                    started = Some(begin(context, self.signature(), sizes, inputs, outputs)?);
                    Ok(())
                })
            })?;
            let started = started.ok_or(Error::Poisoned("a run"))?;
            started.ended().await?;
            return Ok(RunOutputs::of_gpu(started));
        }
        let run = |inputs: &[InputRef<'_>], outputs: &mut [OutputRef<'_>]| {
            self.run(sizes, None, inputs, outputs)
        };
        Ok(RunOutputs::of_host(self.with_sinks(sizes, inputs, run)?))
    }

    /// Does a run with buffers of the host for its outputs; gives what they hold.
    pub(super) fn with_sinks(
        &self,
        sizes: &Sizes,
        inputs: &[InputRef<'_>],
        run: impl FnOnce(&[InputRef<'_>], &mut [OutputRef<'_>]) -> Result<()>,
    ) -> Result<Vec<HostOutput>> {
        let signature = self.signature();
        let all = self.takes_all(inputs.len())?;
        let theirs = signature.outputs.iter().zip(sizes.outputs()).enumerate();
        let theirs = theirs.filter(|(i, _)| all || !signature.is_made(*i));
        let mut sinks: Vec<Vec<u8>> = vec![Vec::new(); theirs.clone().count()];
        let outputs = theirs.zip(&mut sinks);
        let mut outputs: Vec<OutputRef<'_>> = outputs
            .map(|((_, (port, shape)), sink)| OutputRef::bytes(port.dtype, shape, sink))
            .collect();
        run(inputs, &mut outputs)?;
        let shapes: Vec<Vec<usize>> = outputs.iter().map(|o| o.shape().to_vec()).collect();
        drop(outputs);
        let held = shapes.into_iter().zip(sinks);
        Ok(held.map(|(shape, bytes)| HostOutput { shape, bytes }).collect())
    }

    /// Changes how many runs can be going on at once, each with memory of its own (an execution context); 8
    /// unless this is called, and 1 if this is 0. Runs beyond that wait. A lower limit frees idle contexts
    /// beyond it at once, and those in use when they are given back. On the CPU there is no limit.
    #[cfg_attr(not(feature = "cuda"), allow(unused_variables))]
    pub fn limit_contexts(&self, most: usize) {
        match &self.model.backend {
            #[cfg(feature = "cpu")]
            Backend::Cpu(_) => {}
            #[cfg(feature = "cuda")]
            Backend::Cuda(model) => model.limit_contexts(most),
        }
    }
}
