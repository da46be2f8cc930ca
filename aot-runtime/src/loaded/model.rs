//! A model on a device.

use std::sync::Arc;

use super::sizes::Recent;
use super::{MemoryUse, Parts, Signature, Sizes};
use crate::artifact::ModelFile;
use crate::device::Kind;
#[cfg(feature = "cuda")]
use crate::device::StreamKind;
use crate::ports::{InputRef, OutputRef};
use crate::{Device, DeviceTensor, Element, Error, Result, Stream};

/// A loaded model whose types are known at run time only; what generated models are made of.
#[derive(Debug)]
pub struct Loaded {
    signature: Signature,
    device: Device,
    recent: Recent,
    backend: Backend,
}

#[derive(Debug)]
enum Backend {
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
        let weights = parts.weights.read(&file.info().weights)?;
        let (signature, backend) = match device.kind() {
            #[cfg(feature = "cpu")]
            Kind::Cpu => {
                let model = crate::cpu::CpuModel::load(&file.graph_with(&weights)?)?;
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
        Ok(Self {
            signature: signature.with_lines(parts.lines),
            device: device.clone(),
            recent: Recent::default(),
            backend,
        })
    }

    /// What goes in and out.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Where the model runs.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Memory that the model takes.
    pub fn memory(&self) -> MemoryUse {
        match &self.backend {
            #[cfg(feature = "cpu")]
            Backend::Cpu(model) => {
                MemoryUse { weights: model.weight_bytes(), ..MemoryUse::default() }
            }
            #[cfg(feature = "cuda")]
            Backend::Cuda(model) => model.memory(),
        }
    }

    /// Checks inputs and finds the sizes of a run with them.
    ///
    /// # Errors
    /// When an input does not fit the model.
    pub fn bind(&self, inputs: &[InputRef<'_>]) -> Result<Arc<Sizes>> {
        let atoms = self.signature.atoms(inputs)?;
        self.recent.get(atoms, |atoms| self.signature.sizes(atoms))
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
        DeviceTensor::uninit(&self.device, sizes.output(index)?)
    }

    /// Runs the model with inputs that [`Loaded::bind`] gave `sizes` for. Waits for the run if an
    /// output is on the host, and in its course for every size that it computes.
    ///
    /// Outputs whose size the run computes give `outputs` their shape: [`OutputRef::shape`].
    ///
    /// # Errors
    /// When an output's buffer does not fit or the device fails.
    pub fn run(
        &self,
        sizes: &Sizes,
        stream: Option<&Stream>,
        inputs: &[InputRef<'_>],
        outputs: &mut [OutputRef<'_>],
    ) -> Result<()> {
        self.check_outputs(sizes, outputs)?;
        match &self.backend {
            #[cfg(feature = "cpu")]
            Backend::Cpu(model) => {
                if let Some(stream) = stream {
                    self.check_stream(stream)?;
                }
                model.run(&self.signature, inputs, outputs)
            }
            #[cfg(feature = "cuda")]
            Backend::Cuda(model) => {
                let stream = match stream.map(|s| (s, s.kind())) {
                    None => None,
                    Some((_, StreamKind::Cuda(cuda))) if model.owns(cuda) => Some(cuda),
                    Some((stream, _)) => return self.check_stream(stream),
                };
                model.run(&self.signature, sizes, stream, inputs, outputs)
            }
        }
    }

    /// Refuses a stream that is not of this model's kind of device.
    #[cfg_attr(not(feature = "cuda"), allow(unused_variables))]
    fn check_stream(&self, stream: &Stream) -> Result<()> {
        #[cfg(feature = "cuda")]
        if self.device.is_cuda() || matches!(stream.kind(), StreamKind::Cuda(_)) {
            return Err(Error::OtherDevice {
                name: "the stream".to_owned(),
                found: "another device".to_owned(),
                expected: self.device.name().to_owned(),
            });
        }
        Ok(())
    }

    fn check_outputs(&self, sizes: &Sizes, outputs: &[OutputRef<'_>]) -> Result<()> {
        let ports = &self.signature.outputs;
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
