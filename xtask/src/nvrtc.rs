//! Compiles one CUDA file as a build would and prints what the compiler says about it.

use std::fs;
use std::path::{Path, PathBuf};

use aot_kernels::{Arch, ParseArchError};
use cargo_aot::build::nvrtc::{Nvrtc, Request, Target};
use cargo_aot::build::ptx;
use cargo_aot::build::report::Report;
use cargo_aot::build::toolchain::{self, CudaMajor, Search};

use crate::error::{Error, Result};

/// What to compile, and for what.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The CUDA C++ file
    file: PathBuf,
    /// Architectures, such as sm_90a
    #[arg(long, value_delimiter = ',', default_value = "sm_80", value_parser = arch)]
    arch: Vec<Arch>,
    /// Make PTX that the oldest supported driver reads, instead of a cubin
    #[arg(long)]
    ptx: bool,
    /// Write the image here; with several architectures, the last one's
    #[arg(long)]
    out: Option<PathBuf>,
    /// More options for the compiler
    #[arg(last = true)]
    options: Vec<String>,
}

fn arch(text: &str) -> Result<Arch, ParseArchError> {
    text.parse()
}

/// Runs the chore.
pub fn nvrtc(arguments: &Arguments) -> Result<()> {
    let other = |error: &dyn std::error::Error| Error::Other(error.to_string());
    let cuda = CudaMajor::Cuda13;
    let search = Search::from_env(cuda, None);
    let toolchain = toolchain::ensure(&search, false, &|text| eprintln!("{text}"))
        .map_err(|error| other(&error))?;
    let nvrtc = Nvrtc::load(&toolchain).map_err(|error| other(&error))?;
    let source = fs::read_to_string(&arguments.file).map_err(Error::io("read", &arguments.file))?;
    let mut options = vec!["--std=c++17".to_owned(), "--ptxas-options=-v".to_owned()];
    options.extend(arguments.options.iter().cloned());
    let mut failed = 0;
    for &arch in &arguments.arch {
        let target = if arguments.ptx { Target::Ptx(arch) } else { Target::Cubin(arch) };
        let name = arguments.file.to_string_lossy();
        let request = Request { source: &source, name: &name, options: &options, target };
        let started = std::time::Instant::now();
        match nvrtc.compile(&request) {
            Ok(output) => {
                let millis = started.elapsed().as_millis();
                println!("{target}: {} bytes in {millis} ms", output.image.len());
                print_report(&Report::parse(&output.log));
                let mut image = output.image;
                if arguments.ptx {
                    image = ptx::lower_version(&image, cuda.ptx_version())
                        .map_err(|error| other(&error))?;
                }
                write(arguments.out.as_deref(), &image)?;
            }
            Err(error) => {
                failed += 1;
                println!("{target}: {error}\n{}", error.log);
            }
        }
    }
    if failed > 0 {
        return Err(Error::Other(format!("{failed} of {} did not compile", arguments.arch.len())));
    }
    Ok(())
}

fn print_report(report: &Report) {
    for entry in &report.entries {
        println!(
            "  {}: {} registers, {}+{} bytes spilled, {} bytes of stack, {} bytes of static shared \
             memory",
            entry.entry,
            entry.registers,
            entry.spill_stores,
            entry.spill_loads,
            entry.stack,
            entry.shared
        );
    }
    for message in &report.coded {
        println!("  {message}");
    }
    for warning in &report.warnings {
        println!("  {warning}");
    }
}

fn write(out: Option<&Path>, image: &[u8]) -> Result<()> {
    out.map_or(Ok(()), |out| fs::write(out, image).map_err(Error::io("write", out)))
}
