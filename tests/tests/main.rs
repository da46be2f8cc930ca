//! Workspace tests, one binary for all.

mod conformance;
mod cpu_models;
mod groups;
mod kernels;
mod models;
mod reference;
