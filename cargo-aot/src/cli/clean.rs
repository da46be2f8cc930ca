//! `cargo aot clean`

use std::path::Path;

use super::args::CleanArgs;
use super::error::CliError;
use super::project::Project;
use super::runtime_dependency::RuntimeDependency;
use super::shell::Shell;
use super::stub;

/// Removes the artifacts of `project`; with `--stub` also what was generated of the crate.
pub(super) fn run(args: &CleanArgs, project: &Project, shell: &Shell) -> Result<(), CliError> {
    let mut removed = Size::default();
    removed += remove(&project.artifacts(), args.dry_run)?;
    if args.stub {
        let manifest = project.manifest()?;
        let dir = manifest.crate_dir();
        if !stub::is_ours(&dir) {
            return Err(CliError::NotOurs(dir));
        }
        removed += remove(&dir, args.dry_run)?;
        if !args.dry_run {
            let package = &manifest.package.name.get_ref().package;
            stub::write(&dir, package, &RuntimeDependency::find())?;
        }
    }
    let verb = if args.dry_run { "Would remove" } else { "Removed" };
    shell.status(verb, format_args!("{} files, {}", removed.files, human_bytes(removed.bytes)));
    Ok(())
}

/// How much lies in a folder.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    files: u64,
    bytes: u64,
}

impl std::ops::AddAssign for Size {
    fn add_assign(&mut self, other: Self) {
        self.files += other.files;
        self.bytes += other.bytes;
    }
}

fn remove(dir: &Path, dry_run: bool) -> Result<Size, CliError> {
    if !dir.exists() {
        return Ok(Size::default());
    }
    let size = measure(dir);
    if !dry_run {
        std::fs::remove_dir_all(dir).map_err(CliError::io("remove", dir))?;
    }
    Ok(size)
}

/// Links are counted, not followed.
fn measure(dir: &Path) -> Size {
    let mut size = Size::default();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => size += measure(&entry.path()),
            Ok(metadata) => size += Size { files: 1, bytes: metadata.len() },
            Err(_) => {}
        }
    }
    size
}

/// `bytes` with a binary unit: `1.5 MiB`.
pub fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        assert_eq!(human_bytes(0), "0 B");
        assert_eq!(human_bytes(1023), "1023 B");
        assert_eq!(human_bytes(1536), "1.5 KiB");
        assert_eq!(human_bytes((1 << 20) - 1), "1.0 MiB");
        assert_eq!(human_bytes(5 << 40), "5.0 TiB");
    }
}
