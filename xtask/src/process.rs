//! Running other programs.

use std::process::{Command, ExitStatus, Output, Stdio};

use crate::error::{Error, Result};

/// Runs `command` with the terminal as its output; fails unless it succeeds. `hint` is shown with
/// the failure.
pub fn run(command: &mut Command, hint: &'static str) -> Result<()> {
    let status = command.status().map_err(|source| Error::Start {
        program: command.get_program().to_string_lossy().into_owned(),
        source,
        hint,
    })?;
    check(command, status, hint)
}

/// Runs `command` and returns its standard output as text; standard error goes to the terminal.
pub fn capture(command: &mut Command, hint: &'static str) -> Result<String> {
    let Output { status, stdout, .. } =
        command.stderr(Stdio::inherit()).output().map_err(|source| Error::Start {
            program: command.get_program().to_string_lossy().into_owned(),
            source,
            hint,
        })?;
    check(command, status, hint)?;
    Ok(String::from_utf8_lossy(&stdout).trim().to_owned())
}

fn check(command: &Command, status: ExitStatus, hint: &'static str) -> Result<()> {
    if status.success() {
        return Ok(());
    }
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let mut line = String::new();
    for word in words {
        let word = word.to_string_lossy();
        if line.len() + word.len() > 200 {
            line.push_str(" …");
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&word);
    }
    Err(Error::Failed { command: line, status: status.to_string(), hint })
}
