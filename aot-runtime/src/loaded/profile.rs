//! Runs that are timed piece by piece.

use super::model::Backend;
use super::{Loaded, Sizes};
use crate::ports::{InputRef, OutputRef};
use crate::{Profile, Result, Stream};

impl Loaded {
    /// Runs the model twice, the first time so that memory and kernels are ready, and tells what the second run did and
    /// how long that took. Outputs are dropped; a session's state goes on by two runs.
    ///
    /// # Errors
    /// As [`Loaded::run`].
    pub fn profile(&self, inputs: &[InputRef<'_>]) -> Result<Profile> {
        let sizes = &*self.bind(inputs)?;
        self.with_sinks(sizes, inputs, |inputs, outputs| self.run(sizes, None, inputs, outputs))?;
        // State has grown.
        let sizes = &*self.bind(inputs)?;
        let mut spans = Vec::new();
        self.with_sinks(sizes, inputs, |inputs, outputs| {
            self.run_by(sizes, inputs, outputs, |inputs, outputs| {
                self.check_outputs(sizes, outputs)?;
                spans = self.timed(sizes, None, inputs, outputs)?;
                Ok(())
            })
        })?;
        let model = self.signature().model.clone();
        Ok(Profile { model, device: self.device().name().to_owned(), spans })
    }

    /// Runs the model piece by piece, waits for it, and tells what it did.
    #[cfg_attr(not(feature = "cuda"), allow(unused_variables))]
    pub(super) fn timed(
        &self,
        sizes: &Sizes,
        stream: Option<&Stream>,
        inputs: &[InputRef<'_>],
        outputs: &mut [OutputRef<'_>],
    ) -> Result<Vec<crate::Span>> {
        match &self.model.backend {
            #[cfg(feature = "cpu")]
            Backend::Cpu(model) => {
                self.check_stream(stream)?;
                model.profile(self.signature(), inputs, outputs)
            }
            #[cfg(feature = "cuda")]
            Backend::Cuda(model) => {
                let stream = self.cuda_stream(stream)?;
                model.profile(self.signature(), sizes, stream, inputs, outputs)
            }
        }
    }
}
