//! The `cargo-aot` executable.

use std::process::ExitCode;

fn main() -> ExitCode {
    cargo_aot::cli::main()
}
