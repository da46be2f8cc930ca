//! A model on a device.

use std::sync::{Arc, Mutex, MutexGuard};

use super::sizes::Recent;
use super::state::{State, run_given};
use super::{MemoryUse, Parts, Signature, Sizes, Uploaded};
use crate::artifact::ModelFile;
use crate::device::Kind;
#[cfg(feature = "cuda")]
use crate::device::StreamKind;
use crate::ports::{InputData, InputRef, OutputRef};
use crate::profile::Recorded;
use crate::{Device, DeviceTensor, Element, Error, Result, Stream};

/// A loaded model whose types are known at run time only, or a session of one; what generated models are made of.
///
/// Where the model keeps [state](Signature::state), runs take the other inputs and outputs alone, in order. A session
/// keeps the state for its next run; a run of the model itself begins with the initial state, which is zero. Runs may
/// also be given all inputs and outputs, and then keep nothing.
#[derive(Debug)]
pub struct Loaded {
    pub(super) model: Arc<Shared>,
    state: Option<Mutex<State>>,
}

/// What a model and its sessions have in common.
#[derive(Debug)]
pub(super) struct Shared {
    signature: Signature,
    device: Device,
    recent: Recent,
    pub(super) backend: Backend,
    /// Where all runs are recorded, if they are.
    pub(super) recorded: Option<Recorded>,
}

#[derive(Debug)]
pub(super) enum Backend {
    #[cfg(feature = "cpu")]
    Cpu(Box<crate::cpu::CpuModel>),
    #[cfg(feature = "cuda")]
    Cuda(Box<crate::cuda::CudaModel>),
}

impl Loaded {
    /// Loads a model.
    ///
    /// # Errors
    /// When the artifacts are damaged, have no kernels for the device, or do not fit its memory.
    pub fn load(device: &Device, parts: &Parts<'_>) -> Result<Self> {
        let file = ModelFile::open(parts.model)?;
        let weights = parts.weights.open(&file.info().weights)?;
        let (signature, backend) = match device.kind() {
            #[cfg(feature = "cpu")]
            Kind::Cpu => {
                let model = crate::cpu::CpuModel::load(&file.graph_with(&weights.read()?)?)?;
                (model.signature(), Backend::Cpu(Box::new(model)))
            }
            #[cfg(not(feature = "cpu"))]
            Kind::Cpu => return Err(Error::FeatureOff("cpu")),
            #[cfg(feature = "cuda")]
            Kind::Cuda(gpu) => {
                let program = file.program()?;
                let signature = Signature::of_program(&program);
                let model = crate::cuda::CudaModel::load(gpu, program, parts.images, &weights)?;
                (signature, Backend::Cuda(Box::new(model)))
            }
        };
        let recorded = Recorded::of(device.name(), &signature.model)?;
        let model = Shared {
            recorded,
            signature: signature.with_lines(parts.lines),
            device: device.clone(),
            recent: Recent::default(),
            backend,
        };
        Ok(Self { model: Arc::new(model), state: None })
    }

    /// A session in its initial state. It shares the model's weights and kernels.
    ///
    /// # Errors
    /// When the model keeps no state.
    pub fn session(&self) -> Result<Self> {
        match self.signature().state.is_empty() {
            true => Err(Error::NoState { model: self.signature().model.clone() }),
            false => Ok(Self { model: self.model.clone(), state: Some(Mutex::default()) }),
        }
    }

    /// Begins anew: the state is the initial one.
    ///
    /// # Errors
    /// When this is no session.
    pub fn reset(&self) -> Result<()> {
        *self.kept()? = State::default();
        Ok(())
    }

    /// A session whose state is a copy of this one's.
    ///
    /// # Errors
    /// When this is no session, or the device has too little memory.
    pub fn try_clone(&self) -> Result<Self> {
        let copy = self.kept()?.duplicate()?;
        Ok(Self { model: self.model.clone(), state: Some(Mutex::new(copy)) })
    }

    /// Bytes that the state takes on the device; 0 before the first run.
    ///
    /// # Errors
    /// When this is no session.
    pub fn state_bytes(&self) -> Result<u64> {
        Ok(self.kept()?.bytes())
    }

    /// The state as bytes, which do not depend on the device; waits for runs.
    ///
    /// # Errors
    /// When this is no session, or the device fails.
    pub fn save(&self) -> Result<Vec<u8>> {
        self.kept()?.save(self.signature())
    }

    /// Makes the state what it was when it was saved.
    ///
    /// # Errors
    /// When this is no session, when the bytes are damaged or of another model, and when the device has too little
    /// memory; the state then is as it was.
    pub fn restore(&self, saved: &[u8]) -> Result<()> {
        let state = State::restore(self.signature(), self.device(), saved)?;
        *self.kept()? = state;
        Ok(())
    }

    fn kept(&self) -> Result<MutexGuard<'_, State>> {
        match &self.state {
            Some(state) => state.lock().map_err(|_| Error::Poisoned("a session")),
            None => Err(Error::NoState { model: self.signature().model.clone() }),
        }
    }

    /// What goes in and out.
    pub fn signature(&self) -> &Signature {
        &self.model.signature
    }

    /// Where the model runs.
    pub fn device(&self) -> &Device {
        &self.model.device
    }

    /// Memory that the model takes.
    pub fn memory(&self) -> MemoryUse {
        match &self.model.backend {
            #[cfg(feature = "cpu")]
            Backend::Cpu(model) => {
                MemoryUse { weights: model.weight_bytes(), ..MemoryUse::default() }
            }
            #[cfg(feature = "cuda")]
            Backend::Cuda(model) => model.memory(),
        }
    }

    /// How the weights came to the device.
    pub fn uploaded(&self) -> Uploaded {
        match &self.model.backend {
            #[cfg(feature = "cpu")]
            Backend::Cpu(_) => Uploaded::default(),
            #[cfg(feature = "cuda")]
            Backend::Cuda(model) => model.uploaded(),
        }
    }

    /// Checks inputs and finds the sizes of a run with them.
    ///
    /// # Errors
    /// When an input does not fit the model.
    pub fn bind(&self, inputs: &[InputRef<'_>]) -> Result<Arc<Sizes>> {
        let atoms = match (self.takes_all(inputs.len())?, &self.state) {
            (true, _) => self.signature().atoms(inputs)?,
            (false, Some(_)) => self.atoms_after(&*self.kept()?, inputs)?,
            (false, None) => self.atoms_after(&State::default(), inputs)?,
        };
        self.model.recent.get(atoms, |atoms| self.signature().sizes(atoms))
    }

    /// The atoms of all symbols in a run that finds this state and has these other inputs.
    fn atoms_after(&self, state: &State, inputs: &[InputRef<'_>]) -> Result<Vec<i64>> {
        let signature = self.signature();
        let shapes = state.shapes(signature, inputs)?;
        let (mut kept, mut others) = (shapes.iter(), inputs.iter());
        let all = signature.inputs.iter().enumerate().filter_map(|(i, port)| {
            match signature.is_kept(i) {
                true => {
                    let (dtype, data) = (port.dtype, InputData::Host(&[]));
                    kept.next().map(|shape| InputRef { dtype, shape, data })
                }
                false => others.next().copied(),
            }
        });
        let all: Vec<InputRef<'_>> = all.collect();
        signature.atoms(&all)
    }

    /// Whether as many inputs as these are all of the model's, and not those alone that it does not keep.
    pub(super) fn takes_all(&self, found: usize) -> Result<bool> {
        let all = self.signature().inputs.len();
        let expected = all - self.signature().state.len();
        match found {
            n if n == all => Ok(true),
            n if n == expected => Ok(false),
            _ => Err(Error::Count { what: "inputs", found, expected }),
        }
    }

    /// A device tensor for an output of a run of these sizes; an empty one if the run computes its size.
    ///
    /// # Errors
    /// When there is no such output, or the device has too little memory.
    pub fn device_output<T: Element, const R: usize>(
        &self,
        sizes: &Sizes,
        index: usize,
    ) -> Result<DeviceTensor<T, R>> {
        DeviceTensor::uninit(self.device(), sizes.output(index)?)
    }

    /// Runs the model with inputs that [`Loaded::bind`] gave `sizes` for. Waits for the run if an
    /// output is on the host, and in its course for every size that it computes.
    ///
    /// Outputs whose size the run computes give `outputs` their shape: [`OutputRef::shape`].
    ///
    /// # Errors
    /// When the sizes are not those of these inputs and this model, an output's buffer does not fit, or the device fails.
    pub fn run(
        &self,
        sizes: &Sizes,
        stream: Option<&Stream>,
        inputs: &[InputRef<'_>],
        outputs: &mut [OutputRef<'_>],
    ) -> Result<()> {
        self.run_by(sizes, inputs, outputs, |i, o| self.run_all(sizes, stream, i, o))
    }

    /// Does a run with what is kept among the caller's tensors.
    pub(super) fn run_by(
        &self,
        sizes: &Sizes,
        inputs: &[InputRef<'_>],
        outputs: &mut [OutputRef<'_>],
        run: impl FnOnce(&[InputRef<'_>], &mut [OutputRef<'_>]) -> Result<()>,
    ) -> Result<()> {
        if self.takes_all(inputs.len())? && !self.signature().appends() {
            return run(inputs, outputs);
        }
        if self.takes_all(inputs.len())? {
            self.check_outputs(sizes, outputs)?;
            return run_given((self.signature(), self.device()), inputs, outputs, run);
        }
        let signature = self.signature();
        let expected = signature.outputs.len() - signature.state.len();
        if outputs.len() != expected {
            return Err(Error::Count { what: "outputs", found: outputs.len(), expected });
        }
        let mut kept = self.state.as_ref().map(|_| self.kept()).transpose()?;
        let mut initial = State::default();
        let state = kept.as_deref_mut().unwrap_or(&mut initial);
        // Sizes that were found before another run changed the state would be those of other memory.
        if self.atoms_after(state, inputs)? != sizes.atoms() {
            return Err(Error::StateChanged);
        }
        state.run((signature, self.device(), sizes), inputs, outputs, run)
    }

    /// Runs the model with all of its inputs and outputs.
    pub(super) fn run_all(
        &self,
        sizes: &Sizes,
        stream: Option<&Stream>,
        inputs: &[InputRef<'_>],
        outputs: &mut [OutputRef<'_>],
    ) -> Result<()> {
        self.check_inputs(sizes, inputs)?;
        self.check_outputs(sizes, outputs)?;
        if let Some(recorded) = &self.model.recorded {
            let start = recorded.now();
            return recorded.add(start, &self.timed(sizes, stream, inputs, outputs)?);
        }
        match &self.model.backend {
            #[cfg(feature = "cpu")]
            Backend::Cpu(model) => {
                self.check_stream(stream)?;
                model.run(self.signature(), inputs, outputs)
            }
            #[cfg(feature = "cuda")]
            Backend::Cuda(model) => {
                let stream = self.cuda_stream(stream)?;
                model.run(self.signature(), sizes, stream, inputs, outputs)
            }
        }
    }

    /// The stream, which must be of this model's GPU.
    #[cfg(feature = "cuda")]
    pub(super) fn cuda_stream<'s>(
        &self,
        stream: Option<&'s Stream>,
    ) -> Result<Option<&'s Arc<crate::cuda::Stream>>> {
        match (&self.model.backend, stream.map(Stream::kind)) {
            (Backend::Cuda(model), Some(StreamKind::Cuda(cuda))) if model.owns(cuda) => {
                Ok(Some(cuda))
            }
            _ => self.check_stream(stream).map(|()| None),
        }
    }

    /// Refuses a stream that is not of this model's kind of device.
    #[cfg_attr(not(feature = "cuda"), allow(unused_variables))]
    pub(super) fn check_stream(&self, stream: Option<&Stream>) -> Result<()> {
        #[cfg(feature = "cuda")]
        if let Some(stream) = stream
            && (self.device().is_cuda() || matches!(stream.kind(), StreamKind::Cuda(_)))
        {
            return Err(Error::OtherDevice {
                name: "the stream".to_owned(),
                found: stream.device(),
                expected: self.device().described(),
            });
        }
        Ok(())
    }

    /// Refuses all of a run's inputs where the sizes were found for others.
    pub(super) fn check_inputs(&self, sizes: &Sizes, inputs: &[InputRef<'_>]) -> Result<()> {
        let signature = self.signature();
        let ports = signature.inputs.iter().zip(sizes.inputs()).zip(inputs);
        let mut fit = inputs.len() == sizes.inputs().len() && self.model.recent.made(sizes);
        for ((port, shape), input) in ports {
            fit &= input.dtype == port.dtype && input.shape == shape.as_slice();
        }
        match fit {
            true => Ok(()),
            false => Err(Error::OtherSizes { model: signature.model.clone() }),
        }
    }

    pub(super) fn check_outputs(&self, sizes: &Sizes, outputs: &[OutputRef<'_>]) -> Result<()> {
        let ports = &self.signature().outputs;
        if outputs.len() != ports.len() {
            let (found, expected) = (outputs.len(), ports.len());
            return Err(Error::Count { what: "outputs", found, expected });
        }
        let shapes = ports.iter().zip(sizes.outputs()).enumerate();
        for ((i, (port, shape)), output) in shapes.zip(outputs) {
            if port.dtype != output.dtype {
                let (found, expected) = (output.dtype, port.dtype);
                return Err(Error::DType { name: port.name.clone(), found, expected });
            }
            let fits = match sizes.is_open(i) {
                true => output.shape().len() == shape.len(),
                false => output.shape() == shape,
            };
            if !fits {
                return Err(Error::OutputShape {
                    output: port.name.clone(),
                    found: output.shape().to_vec(),
                    expected: shape.clone(),
                });
            }
        }
        Ok(())
    }
}
