//! `cargo xtask test`: everything that can be tested without a GPU.

use std::env;
use std::process::Command;

use crate::error::Result;
use crate::layout::Layout;
use crate::{process, reference};

/// Fetches what the tests need and runs them all.
pub fn test(layout: &Layout) -> Result<()> {
    reference::make(layout)?;
    process::run(cargo(layout).args(["test", "--workspace", "--no-fail-fast"]), "")
}

/// The cargo that runs this chore, in the root of the checkout.
pub fn cargo(layout: &Layout) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(layout.root());
    command
}
