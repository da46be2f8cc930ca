//! The machine's Python and pip.

use std::env;
use std::process::Command;

/// Shown when pip fails.
pub const HINT: &str = "pip is needed (on Debian and Ubuntu: apt-get install python3-pip) and fetches over the network; \
     without one, put the wheels in a folder and set PIP_NO_INDEX=1 and PIP_FIND_LINKS=<that folder>";

/// The Python to use: what the variable PYTHON names, else `python3`.
pub fn python() -> String {
    env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

/// pip of [`python`], quiet, with nothing said about newer versions of itself.
pub fn pip() -> Command {
    let mut command = Command::new(python());
    command.args(["-m", "pip", "--quiet", "--disable-pip-version-check"]);
    command
}
