//! The command line.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::catalogue::Use;
use crate::error::Result;
use crate::layout::Layout;
use crate::pack::{BenchArguments, GpuPackArguments, bench, gpu_pack};
use crate::{conformance, demo, fetch, nvrtc, operators, reference, test};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "The project's own chores")]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Fetch models, fonts and the Python environment that reference outputs are made with
    Fetch {
        /// Also the models that no test uses yet
        #[arg(long)]
        all: bool,
    },
    /// Make assets/reference: what onnxruntime answers for each model
    Reference,
    /// Fetch a compiler and a model, build its kernels, and ask examples/embed a question
    Demo,
    /// Fetch what the tests need and run them all; no GPU is needed
    Test,
    /// Compile one CUDA file and print registers, spills and messages
    Nvrtc(nvrtc::Arguments),
    /// Write a folder that tests and times kernels on a machine with nothing but a GPU driver
    GpuPack(GpuPackArguments),
    /// Time models on this machine's GPU: JSON lines as the benches of a GPU pack print them
    Bench(BenchArguments),
    /// Run ONNX's own backend tests
    Conformance(conformance::Arguments),
    /// Write docs/operators.md: every operator with its opsets, devices and tests
    Operators,
}

/// Runs the chore that the arguments name. A failed chore says why on standard error and returns 1.
pub fn main() -> ExitCode {
    match Layout::find().and_then(|layout| dispatch(&layout, Cli::parse().chore)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(layout: &Layout, chore: Chore) -> Result<()> {
    match chore {
        Chore::Demo => demo::demo(layout),
        Chore::Reference => reference::make(layout),
        Chore::Test => test::test(layout),
        Chore::Nvrtc(arguments) => nvrtc::nvrtc(&arguments),
        Chore::Conformance(arguments) => conformance::conformance(layout, &arguments),
        Chore::Operators => operators::write(layout),
        Chore::GpuPack(arguments) => gpu_pack(layout, &arguments),
        Chore::Bench(arguments) => bench(layout, &arguments),
        Chore::Fetch { all } => fetch::fetch(layout, if all { Use::Extra } else { Use::Test }),
    }
}
