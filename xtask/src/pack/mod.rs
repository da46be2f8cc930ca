//! Folders that test kernels on a machine with a GPU and nothing but its driver.

mod bench;
mod conformance;
mod gpu;
mod models;
mod packer;

pub(crate) use bench::{Arguments as BenchArguments, bench};
pub(crate) use conformance::conformance_pack;
pub(crate) use gpu::{Arguments as GpuPackArguments, gpu_pack};
