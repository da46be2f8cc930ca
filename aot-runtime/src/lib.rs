//! Runs models that `cargo aot` compiled.
//!
//! `cargo aot build` writes a crate with a type per model. It is used like this:
//!
//! ```ignore
//! use models::minilm::{Inputs, Minilm};
//!
//! let device = aot_runtime::Device::best()?; // CUDA, or the CPU with the reason why
//! let minilm = Minilm::load(&device)?;
//! let out = minilm.run(Inputs { input_ids: ids.view().into(), attention_mask: mask.view().into() })?;
//! println!("{:?}", out.last_hidden_state.shape());
//! ```
//!
//! [`Tensor`], [`TensorView`] and [`DeviceTensor`] have their element type and rank as types.
//! Inputs convert from slices, tensors, device tensors and, with feature `ndarray`, arrays. Every
//! generated model implements [`Model`], so that programs can be generic over models.
//!
//! The NVIDIA driver is looked for at run time: a program that links this crate starts on every
//! machine, and [`Device::cuda`] says what is missing.
//!
//! # Features
//! * `cuda` (default): GPUs.
//! * `cpu` (default): the CPU, by the reference executor of aot-ir.
//! * `ndarray` (default): conversions from and to arrays.
//! * `image`: decoders of images, which models that decode them need.

#[cfg(not(any(feature = "cpu", feature = "cuda")))]
compile_error!("aot-runtime needs one of its features `cpu` and `cuda`");

pub mod artifact;
#[cfg(any(feature = "cuda", test))]
mod concurrent;
#[cfg(feature = "cpu")]
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
mod element;
mod error;
mod fault;
pub mod loaded;
mod model;
mod ports;
mod profile;
pub mod program;
mod session;
mod tensor;
#[cfg(any(feature = "cuda", test))]
mod upload;

pub use aot_ir::{DType, dim::BindError};
#[cfg(feature = "cuda")]
#[doc(hidden)]
pub use cuda::EmptyGraph;
#[cfg(feature = "cuda")]
pub use cuda::{DriverCounts, driver_counts};
pub use device::{Device, Stream};
pub use element::Element;
pub use error::{Error, Result};
pub use fault::{Fault, Launched};
pub use half::{bf16, f16};
pub use loaded::{ContextMemory, Loaded, MemoryUse, Uploaded};
pub use model::{DimMeta, Meta, Model, PortMeta, StateMeta};
pub use ports::{Input, InputRef, Output, OutputRef};
pub use profile::{Profile, Span, Work};
pub use session::Session;
#[doc(hidden)]
pub use tensor::Awaited;
pub use tensor::{DeviceTensor, Tensor, TensorView, TensorViewMut};
