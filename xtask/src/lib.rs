//! The project's own chores, one module a chore; [`cli`] dispatches to them.
//!
//! Everything that a chore fetches or makes lands in folders that git ignores: `.venv/`, `assets/`
//! and `target/`. [`layout`] is the one place that names them.

pub mod catalogue;
pub mod cli;
mod conformance;
pub mod demo;
pub mod error;
pub mod example;
pub mod fetch;
pub mod layout;
pub mod nvrtc;
mod operators;
mod pack;
pub mod pip;
pub mod process;
pub mod reference;
pub mod requirements;
pub mod test;
pub mod venv;
pub mod wheel;
