//! What a model's inputs and outputs can be.

use crate::device::Memory;
use crate::{DeviceTensor, Element, Tensor, TensorView, TensorViewMut};
use aot_ir::DType;

/// An input of a run: a tensor of the host or of the model's device.
#[derive(Debug)]
#[non_exhaustive]
pub enum Input<'a, T, const R: usize> {
    /// Borrowed from the host.
    View(TensorView<'a, T, R>),
    /// Given up by the host.
    Owned(Tensor<T, R>),
    /// On the device.
    Device(&'a DeviceTensor<T, R>),
}

impl<T: Element, const R: usize> Input<'_, T, R> {
    /// Extents, outermost first.
    pub fn shape(&self) -> [usize; R] {
        match self {
            Self::View(view) => view.shape(),
            Self::Owned(tensor) => tensor.shape(),
            Self::Device(tensor) => tensor.shape(),
        }
    }

    /// The input without its type.
    pub fn erase(&self) -> InputRef<'_> {
        let (shape, data) = match self {
            Self::View(view) => (view.shape_ref(), InputData::Host(T::bytes_of(view.as_slice()))),
            Self::Owned(tensor) => {
                (tensor.shape_ref(), InputData::Host(T::bytes_of(tensor.as_slice())))
            }
            Self::Device(tensor) => (tensor.shape_ref(), InputData::Device(tensor.memory())),
        };
        InputRef { dtype: T::DTYPE, shape, data }
    }
}

impl<'a, T: Element, const R: usize> DeviceTensor<T, R> {
    /// The tensor as an input without its type.
    pub fn erase_input(&'a self) -> InputRef<'a> {
        InputRef {
            dtype: T::DTYPE,
            shape: self.shape_ref(),
            data: InputData::Device(self.memory()),
        }
    }
}

/// An input whose type is known at run time only.
#[derive(Clone, Copy, Debug)]
pub struct InputRef<'a> {
    pub(crate) dtype: DType,
    pub(crate) shape: &'a [usize],
    pub(crate) data: InputData<'a>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum InputData<'a> {
    Host(&'a [u8]),
    Device(&'a Memory),
}

impl<'a> InputRef<'a> {
    /// A tensor of the host: its elements in row-major order, laid out as [`DType`] says.
    ///
    /// # Errors
    /// When the number of bytes is not what type and shape take.
    pub fn host(dtype: DType, shape: &'a [usize], bytes: &'a [u8]) -> crate::Result<Self> {
        let elements = crate::tensor::elements_of(shape);
        if elements.and_then(|n| dtype.bytes_for(n as u64)) != Some(bytes.len() as u64) {
            let found = bytes.len() * 8 / dtype.bits() as usize;
            return Err(crate::Error::Elements { found, shape: shape.to_vec() });
        }
        Ok(Self { dtype, shape, data: InputData::Host(bytes) })
    }
}

/// Where a run puts an output: a buffer of the host or of the model's device, of the output's
/// shape.
///
/// Where the run computes the output's size, a tensor of any shape will do: it gets the shape of the result, and
/// other memory if it does not hold as much. A view must have the shape of the result, as it has no other memory.
#[derive(Debug)]
#[non_exhaustive]
pub enum Output<'a, T, const R: usize> {
    /// Borrowed from the host; the run is over when the call returns.
    Host(TensorViewMut<'a, T, R>),
    /// A tensor of the host; the run is over when the call returns.
    Tensor(&'a mut Tensor<T, R>),
    /// On the device; the call does not wait for the run.
    Device(&'a mut DeviceTensor<T, R>),
}

impl<T: Element, const R: usize> Output<'_, T, R> {
    /// Extents, outermost first.
    pub fn shape(&self) -> [usize; R] {
        match self {
            Self::Host(view) => view.shape(),
            Self::Tensor(tensor) => tensor.shape(),
            Self::Device(tensor) => tensor.shape(),
        }
    }

    /// The output without its type.
    pub fn erase(&mut self) -> OutputRef<'_> {
        match self {
            Self::Host(view) => view.erase(),
            Self::Tensor(tensor) => tensor.erase_mut(),
            Self::Device(tensor) => tensor.erase(),
        }
    }
}

/// A buffer for an output whose type is known at run time only.
#[derive(Debug)]
pub struct OutputRef<'a> {
    pub(crate) dtype: DType,
    shape: Vec<usize>,
    pub(crate) data: OutputData<'a>,
}

#[derive(Debug)]
pub(crate) enum OutputData<'a> {
    Host(&'a mut dyn HostSink),
    Device {
        memory: &'a mut Memory,
        /// The tensor's shape, which is the output's.
        shape: &'a mut [usize],
    },
}

/// Host memory that takes bytes of the device.
pub(crate) trait HostSink: std::fmt::Debug {
    /// Has memory ready for so many bytes, before a device has them.
    fn prepare(&mut self, bytes: usize) {
        let _ = bytes;
    }

    /// Overwrites all elements.
    fn store(&mut self, bytes: &[u8]);

    /// Gets another shape of the same rank; `false` if it can't.
    fn resize(&mut self, shape: &[usize]) -> crate::Result<bool> {
        let _ = shape;
        Ok(false)
    }
}

impl<T: Element, const R: usize> HostSink for Tensor<T, R> {
    fn store(&mut self, bytes: &[u8]) {
        T::copy_from_bytes(self.as_mut_slice(), bytes);
    }

    fn resize(&mut self, shape: &[usize]) -> crate::Result<bool> {
        match <[usize; R]>::try_from(shape) {
            Ok(shape) => Tensor::resize(self, shape).map(|()| true),
            Err(_) => Ok(false),
        }
    }
}

impl<T: Element, const R: usize> HostSink for TensorViewMut<'_, T, R> {
    fn store(&mut self, bytes: &[u8]) {
        T::copy_from_bytes(self.as_mut_slice(), bytes);
    }
}

impl HostSink for Vec<u8> {
    fn prepare(&mut self, bytes: usize) {
        if self.len() < bytes {
            self.resize(bytes, 0);
        }
    }

    fn store(&mut self, bytes: &[u8]) {
        self.clear();
        self.extend_from_slice(bytes);
    }

    fn resize(&mut self, _: &[usize]) -> crate::Result<bool> {
        Ok(true)
    }
}

impl<'a> OutputRef<'a> {
    /// A buffer of the host that is overwritten with the output's bytes.
    pub fn bytes(dtype: DType, shape: &[usize], bytes: &'a mut Vec<u8>) -> Self {
        Self { dtype, shape: shape.to_vec(), data: OutputData::Host(bytes) }
    }

    /// Another buffer of the host.
    pub(crate) fn host(dtype: DType, shape: Vec<usize>, sink: &'a mut dyn HostSink) -> Self {
        Self { dtype, shape, data: OutputData::Host(sink) }
    }

    /// A buffer on the device.
    pub(crate) fn device(dtype: DType, memory: &'a mut Memory, shape: &'a mut [usize]) -> Self {
        Self { dtype, shape: shape.to_vec(), data: OutputData::Device { memory, shape } }
    }

    /// The same buffer for a while.
    pub(crate) fn reborrow(&mut self) -> OutputRef<'_> {
        let data = match &mut self.data {
            OutputData::Host(sink) => OutputData::Host(&mut **sink),
            OutputData::Device { memory, shape } => OutputData::Device { memory, shape },
        };
        OutputRef { dtype: self.dtype, shape: self.shape.clone(), data }
    }

    /// Overwrites the buffer with a result of its shape.
    pub(crate) fn store(&mut self, bytes: &[u8]) -> crate::Result<()> {
        match &mut self.data {
            OutputData::Host(sink) => {
                sink.store(bytes);
                Ok(())
            }
            OutputData::Device { memory, .. } => memory.write(bytes),
        }
    }

    /// Says which shape the result has.
    pub(crate) fn set_shape(&mut self, shape: Vec<usize>) {
        self.shape = shape;
    }

    /// Extents, outermost first; after a run, those of the result.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Gets the shape of a result whose size the run computed.
    pub(crate) fn resize(&mut self, output: &str, shape: Vec<usize>) -> crate::Result<()> {
        if self.shape == shape {
            return Ok(());
        }
        let can = match &mut self.data {
            OutputData::Host(sink) => sink.resize(&shape)?,
            OutputData::Device { memory, shape: own } if own.len() == shape.len() => {
                let elements = crate::tensor::elements_of(&shape);
                let bytes = elements.and_then(|n| self.dtype.bytes_for(n as u64));
                let bytes = bytes.and_then(|n| usize::try_from(n).ok());
                let too_many = || crate::Error::Elements { found: 0, shape: shape.clone() };
                memory.replace(bytes.ok_or_else(too_many)?)?;
                own.copy_from_slice(&shape);
                true
            }
            OutputData::Device { .. } => false,
        };
        if !can {
            let (output, found) = (output.to_owned(), self.shape.clone());
            return Err(crate::Error::OutputShape { output, found, expected: shape });
        }
        self.shape = shape;
        Ok(())
    }
}

impl<T: Element, const R: usize> TensorViewMut<'_, T, R> {
    /// The buffer without its type.
    pub fn erase(&mut self) -> OutputRef<'_> {
        let shape = self.shape_ref().to_vec();
        OutputRef { dtype: T::DTYPE, shape, data: OutputData::Host(self) }
    }
}

impl<T: Element, const R: usize> Tensor<T, R> {
    /// The tensor as a buffer without its type.
    pub(crate) fn erase_mut(&mut self) -> OutputRef<'_> {
        let shape = self.shape().to_vec();
        OutputRef { dtype: T::DTYPE, shape, data: OutputData::Host(self) }
    }
}

impl<T: Element, const R: usize> DeviceTensor<T, R> {
    /// The tensor as a buffer without its type.
    #[doc(hidden)]
    pub fn erase(&mut self) -> OutputRef<'_> {
        let (shape, memory) = self.parts_mut();
        let extents = shape.to_vec();
        OutputRef { dtype: T::DTYPE, shape: extents, data: OutputData::Device { memory, shape } }
    }
}

impl<'a, T: Element, const R: usize> From<TensorView<'a, T, R>> for Input<'a, T, R> {
    fn from(view: TensorView<'a, T, R>) -> Self {
        Self::View(view)
    }
}

impl<'a, T: Element, const R: usize> From<&'a Tensor<T, R>> for Input<'a, T, R> {
    fn from(tensor: &'a Tensor<T, R>) -> Self {
        Self::View(tensor.view())
    }
}

impl<T: Element, const R: usize> From<Tensor<T, R>> for Input<'_, T, R> {
    fn from(tensor: Tensor<T, R>) -> Self {
        Self::Owned(tensor)
    }
}

impl<'a, T: Element, const R: usize> From<&'a DeviceTensor<T, R>> for Input<'a, T, R> {
    fn from(tensor: &'a DeviceTensor<T, R>) -> Self {
        Self::Device(tensor)
    }
}

impl<'a, T: Element> From<&'a [T]> for Input<'a, T, 1> {
    fn from(data: &'a [T]) -> Self {
        Self::View(data.into())
    }
}

impl<'a, T: Element> From<&'a Vec<T>> for Input<'a, T, 1> {
    fn from(data: &'a Vec<T>) -> Self {
        Self::View(data.into())
    }
}

impl<'a, T: Element, const A: usize> From<&'a [T; A]> for Input<'a, T, 1> {
    fn from(data: &'a [T; A]) -> Self {
        Self::View(data.into())
    }
}

impl<'a, T: Element, const B: usize> From<&'a [[T; B]]> for Input<'a, T, 2> {
    fn from(rows: &'a [[T; B]]) -> Self {
        Self::View(rows.into())
    }
}

impl<'a, T: Element, const A: usize, const B: usize> From<&'a [[T; B]; A]> for Input<'a, T, 2> {
    fn from(rows: &'a [[T; B]; A]) -> Self {
        Self::View(rows.into())
    }
}

impl<'a, T: Element, const R: usize> From<TensorViewMut<'a, T, R>> for Output<'a, T, R> {
    fn from(view: TensorViewMut<'a, T, R>) -> Self {
        Self::Host(view)
    }
}

impl<'a, T: Element, const R: usize> From<&'a mut Tensor<T, R>> for Output<'a, T, R> {
    fn from(tensor: &'a mut Tensor<T, R>) -> Self {
        Self::Tensor(tensor)
    }
}

impl<'a, T: Element, const R: usize> From<&'a mut DeviceTensor<T, R>> for Output<'a, T, R> {
    fn from(tensor: &'a mut DeviceTensor<T, R>) -> Self {
        Self::Device(tensor)
    }
}
