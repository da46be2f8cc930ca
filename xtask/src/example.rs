//! The applications under `examples/`: building their kernels, running and testing them.

use std::process::Command;

use crate::error::Result;
use crate::layout::Layout;
use crate::process;
use crate::test::cargo;

/// Every example, by folder.
pub const EXAMPLES: &[&str] = &["embed", "ocr"];

/// Runs `cargo aot build` of this checkout for an example; without a CUDA compiler on the machine,
/// that fetches one.
pub fn build_kernels(layout: &Layout, name: &str) -> Result<()> {
    eprintln!("    Building kernels of examples/{name}");
    process::run(
        cargo(layout)
            .args(["run", "--package", "cargo-aot", "--bin", "cargo-aot", "--"])
            .args(["aot", "build", "--manifest-path"])
            .arg(layout.example(name).join("Cargo.toml")),
        "",
    )
}

/// Runs an example as its README section does.
pub fn run(layout: &Layout, name: &str, arguments: &[&str]) -> Result<()> {
    process::run(in_example(layout, name).args(["run", "--release", "--"]).args(arguments), "")
}

/// Runs an example's tests.
pub fn test(layout: &Layout, name: &str) -> Result<()> {
    process::run(in_example(layout, name).args(["test", "--release", "--no-fail-fast"]), "")
}

fn in_example(layout: &Layout, name: &str) -> Command {
    let mut command = cargo(layout);
    command.current_dir(layout.example(name));
    command
}
