//! Tensors that runs make.

use super::Tensor;
use super::owned::elements_of;
use crate::ports::HostSink;
use crate::{Element, Error, OutputRef, Result};

/// A tensor in the making: it has its elements once a run has stored them. Its memory is written to for the first time
/// while the device works, not before the run begins.
#[doc(hidden)]
#[derive(Debug)]
pub struct Awaited<T, const R: usize> {
    data: Vec<T>,
    shape: [usize; R],
}

impl<T: Element, const R: usize> Awaited<T, R> {
    /// A tensor of this shape; one whose size the run computes gets another.
    ///
    /// # Errors
    /// When the shape has more elements than memory has addresses.
    pub fn new(shape: [usize; R]) -> Result<Self> {
        let mut awaited = Self { data: Vec::new(), shape };
        awaited.reserve(shape)?;
        Ok(awaited)
    }

    fn reserve(&mut self, shape: [usize; R]) -> Result<()> {
        let too_many = || Error::Elements { found: 0, shape: shape.to_vec() };
        let elements = elements_of(&shape).ok_or_else(too_many)?;
        self.data.clear();
        self.data.try_reserve_exact(elements).map_err(|_| too_many())?;
        self.shape = shape;
        Ok(())
    }

    /// As a buffer without its type.
    pub fn erase(&mut self) -> OutputRef<'_> {
        OutputRef::host(T::DTYPE, self.shape.to_vec(), self)
    }

    /// The tensor.
    ///
    /// # Errors
    /// When no run has stored its elements.
    pub fn tensor(self) -> Result<Tensor<T, R>> {
        Tensor::new(self.data, self.shape)
    }
}

impl<T: Element, const R: usize> HostSink for Awaited<T, R> {
    fn prepare(&mut self, _: usize) {
        // `reserve` has checked the shape, and found memory.
        self.data.resize(elements_of(&self.shape).unwrap_or(0), T::default());
    }

    fn store(&mut self, bytes: &[u8]) {
        self.prepare(bytes.len());
        T::copy_from_bytes(&mut self.data, bytes);
    }

    fn resize(&mut self, shape: &[usize]) -> Result<bool> {
        match <[usize; R]>::try_from(shape) {
            Ok(shape) => self.reserve(shape).map(|()| true),
            Err(_) => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_there_once_they_are_stored() {
        let mut awaited = Awaited::<f32, 2>::new([2, 2]).unwrap();
        awaited.prepare(16);
        awaited.store(&[1f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes).concat());
        assert_eq!(awaited.tensor().unwrap().as_slice(), [1.0, 2.0, 3.0, 4.0]);

        let mut awaited = Awaited::<i32, 1>::new([9]).unwrap();
        assert!(awaited.resize(&[2]).unwrap() && !awaited.resize(&[1, 2]).unwrap());
        awaited.store(&[5i32, 6].map(i32::to_le_bytes).concat());
        assert_eq!(awaited.tensor().unwrap().as_slice(), [5, 6]);

        assert!(Awaited::<i32, 1>::new([9]).unwrap().tensor().is_err());
        assert!(Awaited::<i32, 2>::new([usize::MAX, 2]).is_err());
    }
}
