//! Integration tests of cargo-aot, one binary for all.

mod commands;
mod lowering;
mod manifest_errors;
