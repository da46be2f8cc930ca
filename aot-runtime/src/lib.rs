//! Runs models that `cargo aot` compiled.

pub mod program;
