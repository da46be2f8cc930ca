//! Runs that are timed piece by piece.

use super::model::Backend;
use super::{Loaded, Sizes};
use crate::ports::{InputRef, OutputRef};
use crate::{Profile, Result};

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
                spans = self.timed(sizes, inputs, outputs)?;
                Ok(())
            })
        })?;
        let model = self.signature().model.clone();
        Ok(Profile { model, device: self.device().name().to_owned(), spans })
    }

    #[cfg_attr(not(feature = "cuda"), allow(unused_variables))]
    fn timed(
        &self,
        sizes: &Sizes,
        inputs: &[InputRef<'_>],
        outputs: &mut [OutputRef<'_>],
    ) -> Result<Vec<crate::Span>> {
        match &self.model.backend {
            #[cfg(feature = "cpu")]
            Backend::Cpu(model) => model.profile(self.signature(), inputs, outputs),
            #[cfg(feature = "cuda")]
            Backend::Cuda(model) => model.profile(self.signature(), sizes, inputs, outputs),
        }
    }
}
