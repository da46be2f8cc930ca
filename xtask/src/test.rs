//! `cargo xtask test`: everything that can be tested without a GPU.

use std::env;
use std::process::Command;

use crate::error::Result;
use crate::example::{self, EXAMPLES};
use crate::layout::Layout;
use crate::{process, reference};

/// Fetches what the tests need and runs them all: those of the workspace, then those of each
/// example, whatever became of the ones before.
pub fn test(layout: &Layout) -> Result<()> {
    reference::make(layout)?;
    let mut result =
        process::run(cargo(layout).args(["test", "--workspace", "--no-fail-fast"]), "");
    for name in EXAMPLES {
        let tested =
            example::build_kernels(layout, name).and_then(|()| example::test(layout, name));
        result = result.and(tested);
    }
    result
}

/// The cargo that runs this chore, in the root of the checkout.
pub fn cargo(layout: &Layout) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(layout.root());
    command
}
