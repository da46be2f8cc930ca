//! The CPU device: graphs run by the reference executor.

mod model;

pub(crate) use model::CpuModel;
