//! Tensors whose element type and rank are types.

mod device;
#[cfg(feature = "ndarray")]
mod nd;
mod owned;
mod view;

pub use device::DeviceTensor;
pub use owned::Tensor;
pub(crate) use owned::elements_of;
pub use view::{TensorView, TensorViewMut};
