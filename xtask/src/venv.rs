//! The Python environment that reference outputs are made with.

use std::env;
use std::fs;
use std::process::Command;

use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::process;

const VENV_HINT: &str =
    "Python's venv module is needed; on Debian and Ubuntu: apt-get install python3-venv";

/// Shown when pip fails: the usual cause is the network.
pub const PIP_HINT: &str = "packages come over the network; without one, put the wheels in a folder and set \
     PIP_NO_INDEX=1 and PIP_FIND_LINKS=<that folder>";

/// Makes `.venv` with the pinned packages of `xtask/requirements/python.txt`, unless it is there and
/// was made from the same pins by the same interpreter.
pub fn ensure(layout: &Layout) -> Result<()> {
    let requirements = layout.requirements("python");
    let pins = fs::read_to_string(&requirements).map_err(Error::io("read", &requirements))?;
    let stamp_path = layout.venv().join("made-from.txt");
    if layout.python().is_file() && fs::read_to_string(&stamp_path).is_ok_and(|made| made == pins) {
        return Ok(());
    }

    let program = env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let found = process::capture(
        Command::new(&program).args(["-c", "import sys; print('%d.%d' % sys.version_info[:2])"]),
        "Python 3.11 to 3.14 is needed for models and reference outputs",
    )?;
    if !["3.11", "3.12", "3.13", "3.14"].contains(&found.as_str()) {
        return Err(Error::PythonVersion { program, found });
    }
    eprintln!("     Making .venv (Python {found})");
    let venv = layout.venv();
    process::run(Command::new(&program).args(["-m", "venv", "--clear"]).arg(&venv), VENV_HINT)?;
    process::run(
        pip(layout)
            .args(["install", "--no-deps", "--require-hashes", "--only-binary", ":all:", "-r"])
            .arg(&requirements),
        PIP_HINT,
    )?;
    // Last, so that an environment left half made is made anew.
    fs::write(&stamp_path, pins).map_err(Error::io("write", &stamp_path))
}

/// pip of the environment, quiet, with nothing said about newer versions of itself.
pub fn pip(layout: &Layout) -> Command {
    let mut command = Command::new(layout.python());
    command.args(["-m", "pip", "--quiet", "--disable-pip-version-check"]);
    command
}
