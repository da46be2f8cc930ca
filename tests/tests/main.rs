//! Workspace tests, one binary for all.

mod cpu_models;
mod exporters;
mod groups;
mod host;
mod images;
mod kernels;
mod memory;
mod model_groups;
mod models;
mod reference;
mod rounding;
mod state;
