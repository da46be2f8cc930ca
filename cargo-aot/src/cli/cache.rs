//! `cargo aot cache`

use std::path::PathBuf;

use super::args::{CacheArgs, CacheCommand};
use super::clean::human_bytes;
use super::error::CliError;
use super::shell::{MessageFormat, Shell};
use crate::build::{cache, places};

/// Shows or clears the cache that all projects of the user share.
pub(super) fn run(args: &CacheArgs, shell: &Shell) -> Result<(), CliError> {
    let root: PathBuf = places::user_artifacts().ok_or(CliError::NoCache)?;
    let usage = match cache::usage(&root) {
        Ok(usage) => usage,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => cache::Usage::default(),
        Err(source) => return Err(CliError::io("read", &root)(source)),
    };
    match &args.command {
        Some(CacheCommand::Clear) => {
            match cache::clear(&root) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(CliError::io("clear", &root)(error));
                }
                _ => {}
            }
            let size = human_bytes(usage.bytes);
            shell.status("Removed", format_args!("{} artifacts, {size}", usage.entries));
        }
        Some(CacheCommand::Show) | None => {
            if shell.format() == MessageFormat::Json {
                shell.message(&serde_json::json!({
                    "reason": "cache",
                    "path": root,
                    "artifacts": usage.entries,
                    "bytes": usage.bytes,
                }));
            } else {
                let size = human_bytes(usage.bytes);
                shell.print(&format!("{}\n{} artifacts, {size}\n", root.display(), usage.entries));
            }
        }
    }
    Ok(())
}
