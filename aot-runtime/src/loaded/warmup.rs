//! Runs whose results nobody wants.

use super::model::Backend;
use super::{Loaded, Sizes};
use crate::ports::{InputRef, OutputRef};
use crate::{Error, Result};

/// The first run is launched piece by piece, the second makes the graph that later ones use.
const RUNS: usize = 2;

impl Loaded {
    /// Runs the model at the greatest sizes of all dims, on zeros, so that one run at a time, with inputs and
    /// outputs on the host, finds memory, kernels and the graph ready;
    /// [`Model::warmup`](crate::Model::warmup) says which runs do not. Sizes that zeros give are moved into
    /// their ranges. Does nothing on the CPU.
    ///
    /// # Errors
    /// When the greatest sizes do not fit together or into the device's memory, or the device fails.
    pub fn warmup(&self) -> Result<()> {
        if !self.device().is_cuda() {
            return Ok(());
        }
        let signature = self.signature();
        let greatest: Vec<i64> = signature.symbols.iter().map(|(_, s)| s.hi).collect();
        let mut tensors = Vec::with_capacity(signature.inputs.len());
        for port in &signature.inputs {
            let mut shape = Vec::with_capacity(port.shape.len());
            for dim in &port.shape {
                let extent = usize::try_from(dim.eval(greatest.as_slice())?);
                shape.push(extent.map_err(|_| Error::Elements { found: 0, shape: shape.clone() })?);
            }
            let elements = shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d as u64));
            let bytes = elements.and_then(|n| port.dtype.bytes_for(n));
            let bytes = bytes.and_then(|n| usize::try_from(n).ok());
            let too_many = || Error::Elements { found: 0, shape: shape.clone() };
            tensors.push((port.dtype, vec![0u8; bytes.ok_or_else(too_many)?], shape));
        }
        let all = tensors.iter().map(|(dtype, bytes, shape)| InputRef::host(*dtype, shape, bytes));
        let all: Vec<InputRef<'_>> = all.collect::<Result<_>>()?;
        self.run_for_nothing(&all)?;
        if signature.state.is_empty() {
            return Ok(());
        }
        let others = all.iter().enumerate().filter(|(i, _)| !signature.is_kept(*i));
        let others: Vec<InputRef<'_>> = others.map(|(_, input)| *input).collect();
        self.session()?.run_for_nothing(&others)
    }

    fn run_for_nothing(&self, inputs: &[InputRef<'_>]) -> Result<()> {
        for _ in 0..RUNS {
            let sizes = self.bind(inputs)?;
            let run = |inputs: &[InputRef<'_>], outputs: &mut [OutputRef<'_>]| {
                self.run_by(&sizes, inputs, outputs, |i, o| self.rehearse(&sizes, i, o))
            };
            self.with_sinks(&sizes, inputs, run)?;
        }
        Ok(())
    }

    fn rehearse(
        &self,
        sizes: &Sizes,
        inputs: &[InputRef<'_>],
        outputs: &mut [OutputRef<'_>],
    ) -> Result<()> {
        match &self.model.backend {
            #[cfg(feature = "cpu")]
            Backend::Cpu(_) => self.run_all(sizes, None, inputs, outputs),
            #[cfg(feature = "cuda")]
            Backend::Cuda(model) => model.rehearse(self.signature(), sizes, inputs, outputs),
        }
    }
}
