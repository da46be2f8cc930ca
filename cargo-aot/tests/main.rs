//! Integration tests of cargo-aot, one binary for all.

mod manifest_errors;
