//! Tensors in a device's memory.

use std::marker::PhantomData;

use super::owned::elements_of;
use super::{Tensor, TensorView};
use crate::device::Memory;
use crate::{Device, Element, Error, Result};

/// A tensor of rank `R` in the memory of a [`Device`], in row-major order.
///
/// Models take and give these without a copy to the host, and without waiting: a run that writes
/// one may still be going on, and everything that reads it is ordered after that run.
#[derive(Debug)]
pub struct DeviceTensor<T, const R: usize> {
    memory: Memory,
    shape: [usize; R],
    element: PhantomData<T>,
}

impl<T: Element, const R: usize> DeviceTensor<T, R> {
    /// A tensor of unspecified content, for runs to write to.
    ///
    /// # Errors
    /// When the device has too little memory.
    pub fn uninit(device: &Device, shape: [usize; R]) -> Result<Self> {
        let memory = device.allocate(bytes_of::<T>(&shape)?)?;
        Ok(Self { memory, shape, element: PhantomData })
    }

    /// A copy of a tensor of the host.
    ///
    /// # Errors
    /// When the device has too little memory or fails.
    pub fn upload(device: &Device, tensor: TensorView<'_, T, R>) -> Result<Self> {
        let mut this = Self::uninit(device, tensor.shape())?;
        this.memory.write(T::bytes_of(tensor.as_slice()))?;
        Ok(this)
    }

    /// Overwrites the elements with those of a tensor of the host.
    ///
    /// # Errors
    /// When the shapes differ or the device fails.
    pub fn write(&mut self, tensor: TensorView<'_, T, R>) -> Result<()> {
        if tensor.shape() != self.shape {
            let found = tensor.as_slice().len();
            return Err(Error::Elements { found, shape: self.shape.to_vec() });
        }
        self.memory.write(T::bytes_of(tensor.as_slice()))
    }

    /// Waits for what writes this tensor and copies it to the host.
    ///
    /// # Errors
    /// When the device fails.
    pub fn to_tensor(&self) -> Result<Tensor<T, R>> {
        let mut tensor = Tensor::zeros(self.shape)?;
        self.memory.read(&mut tensor)?;
        Ok(tensor)
    }

    /// Extents, outermost first.
    pub fn shape(&self) -> [usize; R] {
        self.shape
    }

    pub(crate) fn shape_ref(&self) -> &[usize] {
        &self.shape
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn parts_mut(&mut self) -> (&mut [usize], &mut Memory) {
        (&mut self.shape, &mut self.memory)
    }
}

/// Bytes of a tensor of this element type and shape.
fn bytes_of<T: Element>(shape: &[usize]) -> Result<usize> {
    let bytes = elements_of(shape).and_then(|n| n.checked_mul(size_of::<T>()));
    bytes.ok_or_else(|| Error::Elements { found: 0, shape: shape.to_vec() })
}
