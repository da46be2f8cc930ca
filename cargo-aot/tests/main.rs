//! Integration tests of cargo-aot, one binary for all.

mod commands;
mod e2e;
mod manifest_errors;
mod nvrtc;
