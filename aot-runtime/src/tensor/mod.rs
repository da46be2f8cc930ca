//! Tensors whose element type and rank are types.

mod awaited;
mod device;
#[cfg(feature = "ndarray")]
mod nd;
mod owned;
mod view;

#[doc(hidden)]
pub use awaited::Awaited;
pub use device::DeviceTensor;
pub use owned::Tensor;
pub(crate) use owned::elements_of;
pub use view::{TensorView, TensorViewMut};
