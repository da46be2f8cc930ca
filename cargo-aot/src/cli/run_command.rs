//! From the process's arguments to a command and an exit code.

use std::process::ExitCode;

use clap::Parser;

use super::args::{Aot, Cargo, Command};
use super::error::CliError;
use super::exit::Exit;
use super::project::{Project, Selection};
use super::shell::Shell;
use super::{
    build, cache, check, clean, completions, doctor, init, inspect, run, toolchain, verify,
};
use crate::manifest::ManifestError;
use crate::pipeline::ModelError;

/// Runs the command that the process was started for.
pub fn main() -> ExitCode {
    // A shell may call `cargo-aot build` without cargo in between.
    let mut arguments: Vec<_> = std::env::args_os().collect();
    if arguments.get(1).is_none_or(|first| first != "aot") {
        arguments.insert(1.min(arguments.len()), "aot".into());
    }
    let Cargo::Aot(aot) = match Cargo::try_parse_from(arguments) {
        Ok(cargo) => cargo,
        Err(error) => {
            let _ = error.print();
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Success };
            return exit.into();
        }
    };
    let shell = Shell::new(&aot.global);
    match dispatch(&aot, &shell) {
        Ok(exit) => exit.into(),
        Err(error) => {
            report(&shell, &error);
            error.exit().into()
        }
    }
}

fn dispatch(aot: &Aot, shell: &Shell) -> Result<Exit, CliError> {
    let cwd = std::env::current_dir()
        .map_err(CliError::io("find the current folder", std::path::Path::new(".")))?;
    let selection = Selection::from(&aot.global);
    match &aot.command {
        Command::Init(args) => init::run(args, &Project::find_for_init(&selection, &cwd)?, shell)?,
        Command::Clean(args) => clean::run(args, &Project::find(&selection, &cwd)?, shell)?,
        Command::Build(args) => {
            build::run(args, &Project::find(&selection, &cwd)?, &aot.global, shell)?;
        }
        Command::Run(args) => run::run(args, &Project::find(&selection, &cwd)?, shell)?,
        Command::Check(args) => {
            check::run(args, &Project::find(&selection, &cwd)?, &aot.global, shell)?;
        }
        Command::Inspect(args) => {
            inspect::run(args, &Project::find(&selection, &cwd)?, &aot.global, shell)?;
        }
        Command::Verify(args) => {
            return verify::run(args, &Project::find(&selection, &cwd)?, shell);
        }
        Command::Toolchain(args) => {
            let project = Project::find(&selection, &cwd).ok();
            toolchain::run(args, project.as_ref(), &aot.global, shell)?;
        }
        Command::Doctor => return doctor::run(&selection, &cwd, shell),
        Command::Cache(args) => cache::run(args, shell)?,
        Command::Completions(args) => completions::run(args, shell),
    }
    Ok(Exit::Success)
}

fn report(shell: &Shell, error: &CliError) {
    match error {
        CliError::Manifest(ManifestError::Invalid { file, diagnostics }) => {
            shell.diagnostics(file, diagnostics);
        }
        CliError::Models { file, failed } => {
            for (model, error) in failed {
                match error {
                    ModelError::Manifest(problems) => shell.diagnostics(file, &problems.0),
                    other => shell.error_in(&format!("model `{model}`"), other),
                }
            }
        }
        _ => {}
    }
    shell.error(error);
}
