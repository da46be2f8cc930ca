//! `cargo aot toolchain`

use super::args::{Global, ToolchainArgs, ToolchainCommand};
use super::error::CliError;
use super::project::Project;
use super::shell::{MessageFormat, Shell};
use crate::build::places;
use crate::build::toolchain::{
    CudaMajor, Found, InstallError, Search, Toolchain, ensure, find, install, install_from_wheels,
};
use crate::manifest::Manifest;

/// Installs or shows the toolchain that `project` uses, or that one without a manifest would.
pub(super) fn run(
    args: &ToolchainArgs,
    project: Option<&Project>,
    global: &Global,
    shell: &Shell,
) -> Result<(), CliError> {
    let manifest = project.and_then(|project| project.manifest().ok());
    let mut search = search(manifest.as_ref());
    if let Some(cuda) = args.cuda {
        search.cuda = cuda;
    }
    match &args.command {
        ToolchainCommand::Install { from } => {
            let root = places::toolchains().ok_or(InstallError::NoFolder)?;
            let say = |text: &str| shell.status("Toolchain", text);
            let toolchain = if !from.is_empty() {
                install_from_wheels(search.cuda, from, &root, &say)?
            } else if global.offline() {
                ensure(&search, true, &say)?
            } else {
                install(search.cuda, &root, &say)?
            };
            shell.status("Installed", describe(&toolchain));
        }
        ToolchainCommand::Show => show(search.cuda, &find(&search), shell),
    }
    Ok(())
}

/// The search that a manifest asks for; the usual one without a manifest.
pub(super) fn search(manifest: Option<&Manifest>) -> Search {
    let asked = manifest.map(|manifest| &manifest.toolchain);
    let path = asked.and_then(|asked| asked.path.as_ref()).map(|path| path.get_ref().clone());
    Search::from_env(asked.map(|asked| asked.cuda).unwrap_or_default(), path)
}

/// `CUDA 13.5 (managed) in /…`
pub(super) fn describe(toolchain: &Toolchain) -> String {
    let (major, minor) = toolchain.version;
    format!("CUDA {major}.{minor} ({}), {}", toolchain.origin, toolchain.library.display())
}

fn show(cuda: CudaMajor, found: &Found, shell: &Shell) {
    if shell.format() == MessageFormat::Json {
        let rejected: Vec<_> = found
            .rejected
            .iter()
            .map(
                |each| serde_json::json!({ "origin": each.origin, "why": each.reason.to_string() }),
            )
            .collect();
        shell.message(&serde_json::json!({
            "reason": "toolchain",
            "cuda": cuda,
            "toolchain": found.toolchain,
            "rejected": rejected,
        }));
        return;
    }
    match &found.toolchain {
        Some(toolchain) => {
            shell.print(&format!("{}\n", describe(toolchain)));
            shell.print(&format!("headers in {}\n", toolchain.include.display()));
            if !toolchain.is_current(cuda) {
                shell.warn("a newer compiler is to be preferred: `cargo aot toolchain install`");
            }
        }
        None => shell.print(&format!(
            "no compiler of CUDA {cuda} is installed; `cargo aot build` or \
             `cargo aot toolchain install` fetches it\n"
        )),
    }
    if shell.verbose() || found.toolchain.is_none() {
        for rejected in &found.rejected {
            shell.print(&format!("not usable ({}): {}\n", rejected.origin, rejected.reason));
        }
    }
}
