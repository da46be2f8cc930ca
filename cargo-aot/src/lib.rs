//! The `cargo aot` subcommand: from Aot.toml to a generated crate.

pub mod build;
pub mod cli;
pub mod emit;
pub mod import;
pub mod lower;
pub mod manifest;
pub mod npy;
pub mod passes;
pub mod pipeline;
pub mod verify;
