//! Conversions from and to ndarray.

use ndarray::{Array, ArrayBase, ArrayView, Data, Ix0, Ix1, Ix2, Ix3, Ix4, Ix5, Ix6};

use super::{Tensor, TensorView};
use crate::{Element, Input};

macro_rules! ranks {
    ($($rank:literal $ix:ident),*) => {$(
        /// Copies only where the elements do not lie in row-major order.
        impl<T: Element> From<Array<T, $ix>> for Tensor<T, $rank> {
            fn from(array: Array<T, $ix>) -> Self {
                let shape: [usize; $rank] = std::array::from_fn(|i| array.shape()[i]);
                let elements = array.len();
                if !array.is_standard_layout() {
                    return Tensor::whole(array.iter().copied().collect(), shape);
                }
                let (mut data, start) = array.into_raw_vec_and_offset();
                data.drain(..start.unwrap_or(0));
                data.truncate(elements);
                Tensor::whole(data, shape)
            }
        }

        impl<T: Element> From<Tensor<T, $rank>> for Array<T, $ix> {
            fn from(tensor: Tensor<T, $rank>) -> Self {
                let shape = tensor.shape();
                // The elements of a tensor fill its shape, so that an array of it exists.
                Array::from_shape_vec(shape, tensor.into_vec())
                    .unwrap_or_else(|_| Array::from_elem(shape, T::default()))
            }
        }

        /// Borrows elements that lie in row-major order, and copies others.
        impl<'a, T: Element, S: Data<Elem = T>> From<&'a ArrayBase<S, $ix>> for Input<'a, T, $rank> {
            fn from(array: &'a ArrayBase<S, $ix>) -> Self {
                let shape: [usize; $rank] = std::array::from_fn(|i| array.shape()[i]);
                match array.as_slice() {
                    Some(data) => Input::View(TensorView::whole(data, shape)),
                    None => Input::Owned(Tensor::whole(array.iter().copied().collect(), shape)),
                }
            }
        }

        /// Borrows elements that lie in row-major order, and copies others.
        impl<'a, T: Element> From<ArrayView<'a, T, $ix>> for Input<'a, T, $rank> {
            fn from(array: ArrayView<'a, T, $ix>) -> Self {
                let shape: [usize; $rank] = std::array::from_fn(|i| array.shape()[i]);
                match array.to_slice() {
                    Some(data) => Input::View(TensorView::whole(data, shape)),
                    None => Input::Owned(Tensor::whole(array.iter().copied().collect(), shape)),
                }
            }
        }
    )*};
}
ranks!(0 Ix0, 1 Ix1, 2 Ix2, 3 Ix3, 4 Ix4, 5 Ix5, 6 Ix6);

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{array, s};

    #[test]
    fn arrays_of_any_layout_keep_their_elements() {
        let a = array![[1i32, 2, 3], [4, 5, 6]];
        let t: Tensor<i32, 2> = a.clone().into();
        assert_eq!((t.shape(), t.as_slice()), ([2, 3], &[1, 2, 3, 4, 5, 6][..]));
        let flipped: Tensor<i32, 2> = a.clone().reversed_axes().into();
        assert_eq!((flipped.shape(), flipped.as_slice()), ([3, 2], &[1, 4, 2, 5, 3, 6][..]));
        let cut: Tensor<i32, 2> = a.clone().slice_move(s![1.., ..]).into();
        assert_eq!((cut.shape(), cut.as_slice()), ([1, 3], &[4, 5, 6][..]));
        assert_eq!(Array::from(t), a);
        assert!(matches!(Input::from(&a), Input::View(v) if v.shape() == [2, 3]));
        let columns = a.slice(s![.., ..2]);
        assert!(matches!(Input::from(columns), Input::Owned(t) if t.as_slice() == [1, 2, 4, 5]));
    }
}
