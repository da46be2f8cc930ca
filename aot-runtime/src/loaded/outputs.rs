//! What a run gives that was waited for by a task.

use std::marker::PhantomData;

#[cfg(feature = "cuda")]
use crate::cuda::Started;
use crate::ports::HostSink;
use crate::{Element, Error, Result, Tensor};

/// Outputs of a run, in order.
#[derive(Debug)]
pub struct RunOutputs<'m>(Source<'m>);

#[derive(Debug)]
enum Source<'m> {
    Host(Vec<HostOutput>, PhantomData<&'m ()>),
    #[cfg(feature = "cuda")]
    Gpu(Box<Started<'m>>),
}

/// An output as bytes of the host.
#[derive(Debug)]
pub(super) struct HostOutput {
    pub(super) shape: Vec<usize>,
    pub(super) bytes: Vec<u8>,
}

impl<'m> RunOutputs<'m> {
    pub(super) fn of_host(outputs: Vec<HostOutput>) -> Self {
        Self(Source::Host(outputs, PhantomData))
    }

    /// Those of a run that has ended.
    #[cfg(feature = "cuda")]
    pub(super) fn of_gpu(started: Started<'m>) -> Self {
        Self(Source::Gpu(Box::new(started)))
    }

    /// The n-th output.
    ///
    /// # Errors
    /// When there is none, or it is of another rank.
    pub fn tensor<T: Element, const R: usize>(&self, index: usize) -> Result<Tensor<T, R>> {
        let (shape, bytes) = self.bytes(index)?;
        let rank = |_| Error::OutputShape {
            output: format!("number {index}"),
            found: vec![0; R],
            expected: shape.to_vec(),
        };
        let mut tensor = Tensor::zeros(shape.try_into().map_err(rank)?)?;
        tensor.store(bytes);
        Ok(tensor)
    }

    /// The shape and the bytes of the n-th output.
    ///
    /// # Errors
    /// When there is none.
    pub fn bytes(&self, index: usize) -> Result<(&[usize], &[u8])> {
        let found = match &self.0 {
            Source::Host(outputs, _) => outputs
                .get(index)
                .map(|HostOutput { shape, bytes }| (shape.as_slice(), bytes.as_slice())),
            #[cfg(feature = "cuda")]
            Source::Gpu(started) => started.output(index),
        };
        let missing = || Error::Count { what: "outputs", found: index, expected: index + 1 };
        found.ok_or_else(missing)
    }
}
