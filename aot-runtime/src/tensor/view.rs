//! Borrowed tensors in the host's memory.

use super::Tensor;
use super::owned::check_elements;
use crate::{Element, Result};

/// A borrowed tensor of rank `R`, in row-major order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TensorView<'a, T, const R: usize> {
    data: &'a [T],
    shape: [usize; R],
}

impl<'a, T: Element, const R: usize> TensorView<'a, T, R> {
    /// These elements as a tensor of `shape`.
    ///
    /// # Errors
    /// When the number of elements is not the product of the shape.
    pub fn new(data: &'a [T], shape: [usize; R]) -> Result<Self> {
        check_elements(data.len(), &shape)?;
        Ok(Self { data, shape })
    }

    pub(super) fn whole(data: &'a [T], shape: [usize; R]) -> Self {
        Self { data, shape }
    }

    /// Extents, outermost first.
    pub fn shape(&self) -> [usize; R] {
        self.shape
    }

    pub(crate) fn shape_ref(&self) -> &[usize] {
        &self.shape
    }

    /// The elements in row-major order.
    pub fn as_slice(&self) -> &'a [T] {
        self.data
    }

    /// The element at these coordinates, if they are inside.
    pub fn get(&self, at: [usize; R]) -> Option<&'a T> {
        let mut index = 0;
        for (coordinate, extent) in at.into_iter().zip(self.shape) {
            if coordinate >= extent {
                return None;
            }
            index = index * extent + coordinate;
        }
        self.data.get(index)
    }

    /// A copy that owns its elements.
    pub fn to_tensor(&self) -> Tensor<T, R> {
        Tensor::whole(self.data.to_vec(), self.shape)
    }
}

/// A borrowed tensor of rank `R` that can be written to, in row-major order.
#[derive(Debug, PartialEq)]
pub struct TensorViewMut<'a, T, const R: usize> {
    data: &'a mut [T],
    shape: [usize; R],
}

impl<'a, T: Element, const R: usize> TensorViewMut<'a, T, R> {
    /// These elements as a tensor of `shape`.
    ///
    /// # Errors
    /// When the number of elements is not the product of the shape.
    pub fn new(data: &'a mut [T], shape: [usize; R]) -> Result<Self> {
        check_elements(data.len(), &shape)?;
        Ok(Self { data, shape })
    }

    pub(super) fn whole(data: &'a mut [T], shape: [usize; R]) -> Self {
        Self { data, shape }
    }

    /// Extents, outermost first.
    pub fn shape(&self) -> [usize; R] {
        self.shape
    }

    pub(crate) fn shape_ref(&self) -> &[usize] {
        &self.shape
    }

    /// The elements in row-major order.
    pub fn as_slice(&self) -> &[T] {
        self.data
    }

    /// The elements in row-major order, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        self.data
    }
}

impl<'a, T: Element> From<&'a T> for TensorView<'a, T, 0> {
    fn from(scalar: &'a T) -> Self {
        Self { data: std::slice::from_ref(scalar), shape: [] }
    }
}

impl<'a, T: Element> From<&'a [T]> for TensorView<'a, T, 1> {
    fn from(data: &'a [T]) -> Self {
        Self { data, shape: [data.len()] }
    }
}

impl<'a, T: Element> From<&'a Vec<T>> for TensorView<'a, T, 1> {
    fn from(data: &'a Vec<T>) -> Self {
        data.as_slice().into()
    }
}

impl<'a, T: Element, const A: usize> From<&'a [T; A]> for TensorView<'a, T, 1> {
    fn from(data: &'a [T; A]) -> Self {
        data.as_slice().into()
    }
}

impl<'a, T: Element, const B: usize> From<&'a [[T; B]]> for TensorView<'a, T, 2> {
    fn from(rows: &'a [[T; B]]) -> Self {
        Self { data: rows.as_flattened(), shape: [rows.len(), B] }
    }
}

impl<'a, T: Element, const A: usize, const B: usize> From<&'a [[T; B]; A]>
    for TensorView<'a, T, 2>
{
    fn from(rows: &'a [[T; B]; A]) -> Self {
        rows.as_slice().into()
    }
}

impl<'a, T: Element, const B: usize, const C: usize> From<&'a [[[T; C]; B]]>
    for TensorView<'a, T, 3>
{
    fn from(planes: &'a [[[T; C]; B]]) -> Self {
        Self { data: planes.as_flattened().as_flattened(), shape: [planes.len(), B, C] }
    }
}

impl<'a, T: Element, const R: usize> From<&'a Tensor<T, R>> for TensorView<'a, T, R> {
    fn from(tensor: &'a Tensor<T, R>) -> Self {
        tensor.view()
    }
}

/// Elements and a shape.
impl<'a, T: Element, const R: usize> TryFrom<(&'a [T], [usize; R])> for TensorView<'a, T, R> {
    type Error = crate::Error;

    fn try_from((data, shape): (&'a [T], [usize; R])) -> Result<Self> {
        Self::new(data, shape)
    }
}

impl<'a, T: Element, const R: usize> From<&'a mut Tensor<T, R>> for TensorViewMut<'a, T, R> {
    fn from(tensor: &'a mut Tensor<T, R>) -> Self {
        tensor.view_mut()
    }
}
