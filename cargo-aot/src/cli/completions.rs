//! `cargo aot completions`

use clap::{Args as _, Command};

use super::args::{Aot, CompletionsArgs};
use super::shell::Shell;

/// Writes the script for `args.shell` to stdout.
pub(super) fn run(args: &CompletionsArgs, shell: &Shell) {
    let mut command = Aot::augment_args(Command::new("cargo-aot"));
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "cargo-aot", &mut script);
    shell.print(&String::from_utf8_lossy(&script));
}
