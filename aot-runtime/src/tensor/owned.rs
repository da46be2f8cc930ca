//! Tensors in the host's memory.

use super::{TensorView, TensorViewMut};
use crate::{Element, Error, Result};

/// A tensor of rank `R` that owns its elements, in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor<T, const R: usize> {
    data: Vec<T>,
    shape: [usize; R],
}

impl<T: Element, const R: usize> Tensor<T, R> {
    /// The tensor of `shape` with these elements.
    ///
    /// # Errors
    /// When the number of elements is not the product of the shape.
    pub fn new(data: Vec<T>, shape: [usize; R]) -> Result<Self> {
        check_elements(data.len(), &shape)?;
        Ok(Self { data, shape })
    }

    pub(super) fn whole(data: Vec<T>, shape: [usize; R]) -> Self {
        Self { data, shape }
    }

    /// A tensor of zeros (`false` for `bool`).
    ///
    /// # Errors
    /// When the shape has more elements than memory has addresses.
    pub fn zeros(shape: [usize; R]) -> Result<Self> {
        let too_many = || Error::Elements { found: 0, shape: shape.to_vec() };
        let elements = elements_of(&shape).ok_or_else(too_many)?;
        let mut data = Vec::new();
        data.try_reserve_exact(elements).map_err(|_| too_many())?;
        data.resize(elements, T::default());
        Ok(Self { data, shape })
    }

    /// Gets another shape. Its elements are unspecified then.
    pub(crate) fn resize(&mut self, shape: [usize; R]) -> Result<()> {
        let too_many = || Error::Elements { found: 0, shape: shape.to_vec() };
        let elements = elements_of(&shape).ok_or_else(too_many)?;
        self.data
            .try_reserve_exact(elements.saturating_sub(self.data.len()))
            .map_err(|_| too_many())?;
        self.data.resize(elements, T::default());
        self.shape = shape;
        Ok(())
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
        &self.data
    }

    /// The elements in row-major order, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.data
    }

    /// The elements in row-major order, given up.
    pub fn into_vec(self) -> Vec<T> {
        self.data
    }

    /// The element at these coordinates, if they are inside.
    pub fn get(&self, at: [usize; R]) -> Option<&T> {
        self.view().get(at)
    }

    /// A view of the whole.
    pub fn view(&self) -> TensorView<'_, T, R> {
        TensorView::whole(&self.data, self.shape)
    }

    /// A view of the whole that can be written to.
    pub fn view_mut(&mut self) -> TensorViewMut<'_, T, R> {
        TensorViewMut::whole(&mut self.data, self.shape)
    }
}

impl<T: Element> From<Vec<T>> for Tensor<T, 1> {
    fn from(data: Vec<T>) -> Self {
        let shape = [data.len()];
        Self { data, shape }
    }
}

/// The number of elements of a shape; `None` when its extents exceed what memory can address.
pub(crate) fn elements_of(shape: &[usize]) -> Option<usize> {
    // Extents beside one of 0 are bounded too, as ndarray bounds them.
    let bound = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d.max(1)))?;
    isize::try_from(bound).ok()?;
    Some(if shape.contains(&0) { 0 } else { bound })
}

pub(super) fn check_elements(found: usize, shape: &[usize]) -> Result<()> {
    match elements_of(shape) {
        Some(expected) if expected == found => Ok(()),
        _ => Err(Error::Elements { found, shape: shape.to_vec() }),
    }
}
