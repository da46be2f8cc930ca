//! The grammar of the command line.

use std::path::PathBuf;

use aot_runtime::Device;
use clap::builder::styling::{AnsiColor, Effects, Styles};
use clap::{Args, Parser, Subcommand, ValueHint};

use super::shell::{ColorChoice, MessageFormat};
use crate::build::toolchain::CudaMajor;

/// Cargo's colours.
const STYLES: Styles = Styles::styled()
    .header(AnsiColor::BrightGreen.on_default().effects(Effects::BOLD))
    .usage(AnsiColor::BrightGreen.on_default().effects(Effects::BOLD))
    .literal(AnsiColor::BrightCyan.on_default().effects(Effects::BOLD))
    .placeholder(AnsiColor::Cyan.on_default());

/// Cargo calls `cargo-aot aot …`.
#[derive(Debug, Parser)]
#[command(name = "cargo", bin_name = "cargo", styles = STYLES, disable_help_subcommand = true)]
pub enum Cargo {
    /// Compile neural networks ahead of time into CUDA kernels behind a typed Rust crate
    Aot(Aot),
}

/// `cargo aot`
#[derive(Debug, Args)]
#[command(version, propagate_version = true, arg_required_else_help = true)]
pub struct Aot {
    /// Flags of every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of every command.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Path to Cargo.toml, or to the Aot.toml beside it
    #[arg(long, global = true, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub manifest_path: Option<PathBuf>,
    /// Package of the workspace whose Aot.toml is meant
    #[arg(short, long, global = true, value_name = "NAME")]
    pub package: Option<String>,
    /// Folder for artifacts and the cache [default: cargo's target folder]
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub target_dir: Option<PathBuf>,
    /// Refuse to change Aot.lock
    #[arg(long, global = true)]
    pub locked: bool,
    /// Use no network
    #[arg(long, global = true)]
    pub offline: bool,
    /// Both --locked and --offline
    #[arg(long, global = true)]
    pub frozen: bool,
    /// Number of parallel jobs [default: number of CPUs]
    #[arg(short, long, global = true, value_name = "N", value_parser = parse_jobs)]
    pub jobs: Option<usize>,
    /// Say more
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Say nothing but warnings and errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Coloring
    #[arg(long, global = true, value_enum, value_name = "WHEN")]
    pub color: Option<ColorChoice>,
    /// How to report: text on stderr, or also JSON lines on stdout
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value = "human")]
    pub message_format: MessageFormat,
}

impl Global {
    /// Whether Aot.lock may not change.
    pub fn locked(&self) -> bool {
        self.locked || self.frozen
    }

    /// Whether the network may not be used.
    pub fn offline(&self) -> bool {
        self.offline || self.frozen
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write a commented Aot.toml and the generated crate's stub, and depend on it in Cargo.toml
    Init(InitArgs),
    /// Compile models and write the generated crate
    Build(BuildArgs),
    /// Import and plan models without compiling kernels
    Check(CheckArgs),
    /// Show inputs, outputs, dims, kernels, launches and memory of models
    Inspect(InspectArgs),
    /// Run a model that was built, once
    Run(RunArgs),
    /// Compare what was compiled with the imported model, run by the reference executor
    Verify(VerifyArgs),
    /// Install the CUDA compiler, or say which one is used
    Toolchain(ToolchainArgs),
    /// Remove artifacts
    Clean(CleanArgs),
    /// Say what this machine has of what building and running need
    Doctor,
    /// Show or clear the cache that all projects share
    Cache(CacheArgs),
    /// Print a script that completes `cargo-aot` commands in a shell
    Completions(CompletionsArgs),
}

/// `cargo aot init`
#[derive(Debug, Args)]
pub struct InitArgs {
    /// Model files to declare in the manifest
    #[arg(value_name = "MODEL", value_hint = ValueHint::FilePath)]
    pub models: Vec<PathBuf>,
    /// Name of the generated crate
    #[arg(long, value_name = "NAME", default_value = "models")]
    pub name: String,
    /// GPUs to compile for [default: those of this machine, else a choice of common ones]
    #[arg(long = "gpu", value_name = "GPU")]
    pub gpus: Vec<String>,
}

/// `cargo aot clean`
#[derive(Debug, Args)]
pub struct CleanArgs {
    /// Also put the stub back in place of the generated crate
    #[arg(long)]
    pub stub: bool,
    /// Only say what would be removed
    #[arg(long)]
    pub dry_run: bool,
}

/// `cargo aot build`
#[derive(Debug, Args)]
pub struct BuildArgs {
    /// Compile the kernels of good models even if other models fail
    #[arg(long)]
    pub keep_going: bool,
    /// Say why each part is built anew
    #[arg(long)]
    pub explain: bool,
}

/// `cargo aot check`
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Models of the manifest [default: all]
    #[arg(value_name = "MODEL")]
    pub models: Vec<String>,
}

/// `cargo aot inspect`
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// Models of the manifest [default: all]
    #[arg(value_name = "MODEL")]
    pub models: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Print the CUDA source of the kernels of this name or key
    #[arg(long, value_name = "NAME", conflicts_with = "json")]
    pub kernel: Option<String>,
}

/// `cargo aot run`
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Model of the manifest
    #[arg(value_name = "MODEL")]
    pub model: String,
    /// Arrays by the names of the model's inputs
    #[arg(long, value_name = "NPZ", value_hint = ValueHint::FilePath)]
    pub input: PathBuf,
    /// Where to save outputs
    #[arg(long, value_name = "NPZ", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Time the kernels: print a table, and save a trace for Chrome's and Perfetto's viewers
    #[arg(long, value_name = "JSON", value_hint = ValueHint::FilePath)]
    pub profile: Option<PathBuf>,
    /// Where to run
    #[arg(long, value_enum, value_name = "DEVICE", default_value = "best")]
    pub device: DeviceChoice,
}

/// `--device`
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum DeviceChoice {
    /// The first GPU, else the CPU
    Best,
    /// The first GPU
    Cuda,
    /// The CPU
    Cpu,
}

impl DeviceChoice {
    /// The device.
    pub(super) fn open(self) -> aot_runtime::Result<Device> {
        match self {
            Self::Best => Device::best(),
            Self::Cuda => Device::cuda(0),
            Self::Cpu => Device::cpu(),
        }
    }
}

/// `cargo aot verify`
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Models of the manifest [default: all]
    #[arg(value_name = "MODEL")]
    pub models: Vec<String>,
    /// Arrays by the names of the model's inputs, instead of random ones
    #[arg(long, value_name = "NPZ", value_hint = ValueHint::FilePath)]
    pub input: Option<PathBuf>,
    /// Arrays by the names of outputs, instead of what the reference gives
    #[arg(long, value_name = "NPZ", value_hint = ValueHint::FilePath, requires = "input")]
    pub expect: Option<PathBuf>,
    /// Sizes to try, such as `batch=2,sequence=17`; may be given several times
    /// [default: the least sizes, some in between, and the greatest that the reference can afford]
    #[arg(long, value_name = "NAME=SIZE,…", value_parser = parse_sizes, conflicts_with = "input")]
    pub dims: Vec<Sizes>,
    /// Where to run
    #[arg(long, value_enum, value_name = "DEVICE", default_value = "best")]
    pub device: DeviceChoice,
    /// Greatest error of an output, ‖Δ‖ / ‖reference‖ [default: by device and precision]
    #[arg(long, value_name = "ERROR", value_parser = parse_tolerance)]
    pub tolerance: Option<f64>,
    /// How many of the worst values within the model to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub layers: usize,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Sizes of dims by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes(pub Vec<(String, i64)>);

/// `cargo aot toolchain`
#[derive(Debug, Args)]
pub struct ToolchainArgs {
    /// Major version of CUDA [default: that of Aot.toml, else 13]
    #[arg(long, global = true, value_name = "VERSION")]
    pub cuda: Option<CudaMajor>,
    /// What to do with it.
    #[command(subcommand)]
    pub command: ToolchainCommand,
}

/// What to do with the toolchain.
#[derive(Debug, Subcommand)]
pub enum ToolchainCommand {
    /// Install the CUDA compiler that builds use, through pip or uv
    Install {
        /// Install these wheel files instead: one of the compiler, one of its headers
        #[arg(long, value_name = "WHEEL", value_hint = ValueHint::FilePath)]
        from: Vec<PathBuf>,
    },
    /// Say which CUDA compiler builds use, and where else one was looked for
    Show,
}

/// `cargo aot cache`
#[derive(Debug, Args)]
pub struct CacheArgs {
    /// What to do with it [default: show]
    #[command(subcommand)]
    pub command: Option<CacheCommand>,
}

/// What to do with the cache.
#[derive(Debug, Subcommand)]
pub enum CacheCommand {
    /// Say where it is and how much is in it
    Show,
    /// Remove all that is in it
    Clear,
}

/// `cargo aot completions`
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell to write for
    pub shell: clap_complete::Shell,
}

fn parse_jobs(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("at least one job is needed".to_owned()),
        Ok(jobs) => Ok(jobs),
        Err(_) => Err("expected a number".to_owned()),
    }
}

fn parse_sizes(text: &str) -> Result<Sizes, String> {
    let pair = |part: &str| {
        let (name, size) = part.split_once('=').ok_or("expected NAME=SIZE")?;
        let size = size.trim().parse().map_err(|_| format!("`{size}` is no size"))?;
        Ok((name.trim().to_owned(), size))
    };
    text.split(',').map(pair).collect::<Result<_, String>>().map(Sizes)
}

fn parse_tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(error) if error >= 0.0 && error.is_finite() => Ok(error),
        _ => Err("expected a number that is not negative".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_grammar_is_consistent() {
        Cargo::command().debug_assert();
    }

    #[test]
    fn sizes_by_name() {
        let sizes = parse_sizes("batch=2, sequence = 17").unwrap();
        assert_eq!(sizes.0, [("batch".to_owned(), 2), ("sequence".to_owned(), 17)]);
        assert!(parse_sizes("batch").is_err() && parse_sizes("batch=two").is_err());
    }

    #[test]
    fn flags_may_follow_the_command() {
        let Cargo::Aot(aot) =
            Cargo::try_parse_from(["cargo-aot", "aot", "clean", "--frozen", "-j", "3"]).unwrap();
        assert!(aot.global.locked() && aot.global.offline());
        assert_eq!(aot.global.jobs, Some(3));
        assert!(Cargo::try_parse_from(["cargo-aot", "aot", "clean", "-j", "0"]).is_err());
    }
}
