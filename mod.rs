//! The CUDA device.
//!
//! [`driver`] wraps the driver's API. [`evaluate`] computes what a program does at given sizes,
//! without a GPU. A [`CudaModel`] has weights and kernels; runs take a [`Context`] from its pool,
//! which has the memory that one run needs.

mod context;
mod driver;
mod evaluate;
mod layout;
mod model;
mod run;
mod shared;
mod target;
mod upload;

use context::{Context, Contexts};
pub(crate) use driver::{Gpu, Stream};
pub(crate) use evaluate::Evaluated;
pub(crate) use model::CudaModel;
pub(crate) use shared::Shared;
