//! Integration tests of cargo-aot, one binary for all.

mod commands;
mod manifest_errors;
mod nvrtc;
