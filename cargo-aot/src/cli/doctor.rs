//! `cargo aot doctor`

use std::fmt::Display;
use std::path::Path;

use super::clean::human_bytes;
use super::error::CliError;
use super::exit::Exit;
use super::project::{Project, Selection};
use super::runtime_dependency::RuntimeDependency;
use super::shell::Shell;
use super::{stub, toolchain};
use crate::build::toolchain::find;
use crate::build::{cache, doctor, places};
use crate::manifest::Manifest;

/// How it stands with one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Good,
    Odd,
    Bad,
}

/// Looks at everything, prints a line on each, and fails if a build can't work.
pub(super) fn run(selection: &Selection, cwd: &Path, shell: &Shell) -> Result<Exit, CliError> {
    let mut all_good = true;
    let mut say = |state: State, what: &str, text: &dyn Display| {
        let mark = match state {
            State::Good => shell.paint("1;32", "ok"),
            State::Odd => shell.paint("1;33", "--"),
            State::Bad => shell.paint("1;31", "!!"),
        };
        all_good &= state != State::Bad;
        shell.print(&format!("{mark} {what}: {text}\n"));
    };

    say(State::Good, "cargo-aot", &env!("CARGO_PKG_VERSION"));
    match RuntimeDependency::find() {
        RuntimeDependency::Path(path) => say(State::Good, "aot-runtime", &path.display()),
        RuntimeDependency::Version(version) => say(State::Good, "aot-runtime", &version),
    }
    let manifest = project(selection, cwd, &mut say);
    let search = toolchain::search(manifest.as_ref());
    let found = find(&search);
    match &found.toolchain {
        Some(toolchain) if toolchain.is_current(search.cuda) => {
            say(State::Good, "compiler", &toolchain::describe(toolchain));
        }
        Some(old) => say(
            State::Odd,
            "compiler",
            &format_args!("{}, old; builds fetch a newer one", toolchain::describe(old)),
        ),
        None if search.manifest.is_some() => {
            let reason = found.rejected.first().map(|rejected| rejected.reason.to_string());
            say(State::Bad, "compiler", &reason.unwrap_or_else(|| "none".to_owned()));
        }
        None => say(State::Odd, "compiler", &"none yet; `cargo aot build` fetches it"),
    }
    match places::user_artifacts() {
        Some(root) => {
            let usage = cache::usage(&root).unwrap_or_default();
            let size = human_bytes(usage.bytes);
            let text = format!("{}, {} artifacts, {size}", root.display(), usage.entries);
            say(State::Good, "shared cache", &text);
            let disk = doctor::disk(&root);
            let free = disk
                .free
                .map_or("size unknown".to_owned(), |free| format!("{} free", human_bytes(free)));
            match disk.writable {
                true => say(State::Good, "disk", &free),
                false => say(State::Bad, "disk", &format_args!("read-only, {free}")),
            }
        }
        None => say(State::Odd, "shared cache", &"none; projects share no kernels"),
    }
    let driver = doctor::driver(search.cuda);
    match (&driver.version, driver.recent_enough) {
        (Some(version), Some(false)) => {
            let needed = search.cuda.oldest_driver();
            say(
                State::Odd,
                "GPU driver",
                &format_args!("{version}; models need R{needed} or later"),
            );
        }
        (Some(version), _) => say(State::Good, "GPU driver", version),
        (None, _) => say(State::Odd, "GPU driver", &"none here; builds need none"),
    }
    Ok(if all_good { Exit::Success } else { Exit::Failure })
}

fn project(
    selection: &Selection,
    cwd: &Path,
    say: &mut dyn FnMut(State, &str, &dyn Display),
) -> Option<Manifest> {
    let project = match Project::find(selection, cwd) {
        Ok(project) => project,
        Err(error) => {
            say(State::Odd, "project", &error);
            return None;
        }
    };
    say(State::Good, "project", &project.dir.display());
    say(State::Good, "artifacts", &project.artifacts().display());
    match project.manifest() {
        Ok(manifest) => {
            let models: Vec<_> =
                manifest.models.iter().map(|model| model.name.get_ref().as_str()).collect();
            say(State::Good, "models", &models.join(", "));
            let dir = manifest.crate_dir();
            match stub::is_ours(&dir) {
                true => say(State::Good, "generated crate", &dir.display()),
                false => say(
                    State::Bad,
                    "generated crate",
                    &format_args!("{} holds files of something else", dir.display()),
                ),
            }
            Some(manifest)
        }
        Err(error) => {
            say(State::Bad, "manifest", &format_args!("{error}; see `cargo aot check`"));
            None
        }
    }
}
