//! The exit codes of `cargo aot`, which are part of its interface.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// All went well.
    Success = 0,
    /// Something outside failed: a file, a folder, the network.
    Failure = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// Aot.toml or Cargo.toml is missing or wrong.
    Manifest = 3,
    /// A model can't be read, has operators that are not supported, or can't be planned.
    Model = 4,
    /// A kernel doesn't compile.
    Kernel = 5,
    /// There is no kernel compiler, or it can't be installed.
    Toolchain = 6,
    /// `--locked` was given and Aot.lock is not up to date.
    Locked = 7,
    /// `verify` found results that differ.
    Different = 8,
    /// There is no GPU for what was asked, or it failed.
    Device = 9,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}
