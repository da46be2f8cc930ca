//! The Python environment that reference outputs are made with.

use std::fs;
use std::process::Command;

use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::pip;
use crate::process;

/// CPython versions that the pinned packages have wheels for.
const VERSIONS: [&str; 4] = ["3.11", "3.12", "3.13", "3.14"];

/// Makes `.venv` with the pinned packages of `xtask/requirements/python.txt`, unless it is there and
/// was made from the same pins.
pub fn ensure(layout: &Layout) -> Result<()> {
    let requirements = layout.requirements("python");
    let pins = fs::read_to_string(&requirements).map_err(Error::io("read", &requirements))?;
    let stamp = layout.venv().join("made-from.txt");
    if layout.python().is_file() && fs::read_to_string(&stamp).is_ok_and(|made| made == pins) {
        return Ok(());
    }

    let program = pip::python();
    let found = process::capture(
        Command::new(&program).args(["-c", "import sys; print('%d.%d' % sys.version_info[:2])"]),
        "Python 3.11 to 3.14 is needed to make reference outputs",
    )?;
    if !VERSIONS.contains(&found.as_str()) {
        return Err(Error::PythonVersion { program, found });
    }
    eprintln!("      Making .venv (Python {found})");
    // Without a pip of its own, the environment needs nothing that systems package apart from Python.
    process::run(
        Command::new(&program).args(["-m", "venv", "--clear", "--without-pip"]).arg(layout.venv()),
        "",
    )?;
    process::run(
        pip::pip()
            .arg("--python")
            .arg(layout.python())
            .args(["install", "--no-deps", "--require-hashes", "--only-binary", ":all:", "-r"])
            .arg(&requirements),
        pip::HINT,
    )?;
    // Last, so that an environment left half made is made anew.
    fs::write(&stamp, pins).map_err(Error::io("write", &stamp))
}
