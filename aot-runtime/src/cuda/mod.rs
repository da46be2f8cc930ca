//! Models on NVIDIA GPUs.

mod actions;
mod context;
mod driver;
mod empty_graph;
mod evaluate;
mod execution;
mod flight;
mod layout;
mod load;
mod model;
mod on_device;
mod order;
mod peak;
mod pieces;
mod replay;
mod rows;
mod shared;
mod sizes_table;
mod started;
mod templates;
mod timer;
mod upload;
mod values;

pub use driver::{DriverCounts, driver_counts};
pub(crate) use driver::{Gpu, Stream};
pub use empty_graph::EmptyGraph;
pub(crate) use evaluate::Evaluated;
pub(crate) use model::CudaModel;
pub(crate) use shared::Shared;
pub(crate) use started::Started;
