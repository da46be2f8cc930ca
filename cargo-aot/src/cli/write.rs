//! Files that cargo watches.

use std::path::Path;

use super::error::CliError;

/// Writes `text` to `path`, and its folders, unless the file has these bytes already: cargo goes
/// by times of change, and would rebuild.
pub(super) fn write_if_changed(path: &Path, text: &str) -> Result<(), CliError> {
    if std::fs::read(path).is_ok_and(|old| old == text.as_bytes()) {
        return Ok(());
    }
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir).map_err(CliError::io("create", dir))?;
    }
    std::fs::write(path, text).map_err(CliError::io("write", path))
}
