//! Runs that go on from one to the next.

use crate::{Model, Result, Stream};

/// Runs of a model one after the other, each of which finds what the one before left: the state of a recurrent network,
/// or the keys and values of a decoder.
///
/// Aot.toml says which outputs are inputs of the next run (`state`). These tensors stay on the device; they are no
/// inputs and outputs for the caller. Sessions of one model share its weights, and have a state each.
///
/// The state begins as zeros; a dim that no other input has, such as the length of the past, begins at its least size.
/// Its other sizes are those of the first run's inputs, and stay until a [reset](Session::reset). A run that fails
/// leaves the state as it was.
#[derive(Debug)]
pub struct Session<M> {
    model: M,
}

impl<M: Model> Session<M> {
    /// A session in its initial state.
    ///
    /// # Errors
    /// [`NoState`](crate::Error::NoState) when the model keeps none.
    pub fn new(model: &M) -> Result<Self> {
        Ok(Self { model: M::from_loaded(model.loaded().session()?) })
    }

    /// As [`Model::run`], from where the run before ended.
    ///
    /// # Errors
    /// As [`Model::run`].
    pub fn run(&mut self, inputs: M::Inputs<'_>) -> Result<M::Outputs> {
        self.model.run(inputs)
    }

    /// As [`Model::run_async`], from where the run before ended.
    ///
    /// # Errors
    /// As [`Model::run_async`].
    pub fn run_async<'a>(
        &'a mut self,
        inputs: M::Inputs<'a>,
    ) -> impl Future<Output = Result<M::Outputs>> + Send + 'a {
        self.model.run_async(inputs)
    }

    /// As [`Model::run_on_device`], from where the run before ended.
    ///
    /// # Errors
    /// As [`Model::run_on_device`].
    pub fn run_on_device(&mut self, inputs: M::Inputs<'_>) -> Result<M::DeviceOutputs> {
        self.model.run_on_device(inputs)
    }

    /// As [`Model::run_into`], from where the run before ended.
    ///
    /// # Errors
    /// As [`Model::run_into`].
    pub fn run_into(&mut self, inputs: M::Inputs<'_>, outputs: M::OutputsMut<'_>) -> Result<()> {
        self.model.run_into(inputs, outputs)
    }

    /// As [`Model::run_on`], from where the run before ended. Runs in different streams are done in order all the same.
    ///
    /// # Errors
    /// As [`Model::run_on`].
    pub fn run_on(
        &mut self,
        stream: &Stream,
        inputs: M::Inputs<'_>,
        outputs: M::OutputsMut<'_>,
    ) -> Result<()> {
        self.model.run_on(stream, inputs, outputs)
    }

    /// Begins anew: the state is the initial one.
    ///
    /// # Errors
    /// When an earlier run panicked.
    pub fn reset(&mut self) -> Result<()> {
        self.model.loaded().reset()
    }

    /// A session that goes on from the same state, as for the branches of a beam search. The state is copied on the
    /// device.
    ///
    /// # Errors
    /// [`OutOfMemory`](crate::Error::OutOfMemory) when the device has too little.
    pub fn try_clone(&self) -> Result<Self> {
        Ok(Self { model: M::from_loaded(self.model.loaded().try_clone()?) })
    }

    /// Bytes that the state takes on the device, beside [what the model takes](Model::memory); 0 before the first run.
    ///
    /// # Errors
    /// When an earlier run panicked.
    pub fn state_bytes(&self) -> Result<u64> {
        self.model.loaded().state_bytes()
    }

    /// The state as bytes, after all runs. They do not depend on the device: what a GPU left can go on on the CPU.
    ///
    /// # Errors
    /// When the device fails.
    pub fn save(&self) -> Result<Vec<u8>> {
        self.model.loaded().save()
    }

    /// Goes on from where a session of the same model was saved.
    ///
    /// # Errors
    /// [`SavedState`](crate::Error::SavedState) when the bytes are damaged, of another model, or longer than
    /// the model holds; and when the device fails. The state then is as it was.
    pub fn restore(&mut self, saved: &[u8]) -> Result<()> {
        self.model.loaded().restore(saved)
    }
}
