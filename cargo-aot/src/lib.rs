//! The `cargo aot` subcommand: from Aot.toml to a generated crate.

pub mod manifest;
