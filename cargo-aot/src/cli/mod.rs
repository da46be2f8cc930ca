//! The command line: one file a command.

mod args;
mod build;
mod cache;
mod cargo_config;
mod check;
mod clean;
mod completions;
mod doctor;
mod error;
mod exit;
mod init;
mod inspect;
mod models;
mod project;
mod run;
mod run_command;
mod runtime_dependency;
mod shell;
mod stub;
mod toolchain;
mod verify;
mod workspace;
mod write;

pub use args::{Aot, Cargo, Command, Global};
pub use clean::human_bytes;
pub use error::CliError;
pub use exit::Exit;
pub use project::{Project, Selection};
pub use run_command::main;
pub use runtime_dependency::RuntimeDependency;
pub use shell::{ColorChoice, MessageFormat, Shell};
