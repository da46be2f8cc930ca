//! Runs what a GPU pack holds on the GPU, once with each of its images files that the GPU can run, and
//! compares it with the reference executor in binary64.
//!
//! usage: `gpu-tests PACK [FILTER [once]]`
//! Runs what has the filter in `NAME in PRECISION`. Prints a line per failure and last `N passed, N failed`. Without a
//! filter, or with `memory`, all of the GPU's memory is asked for, too; without one or with `fault`, faults are tried, each in a process of its own; without one or with
//! `devices`, two GPUs. With `once`, networks only run, once at each of their sizes.

mod devices;
mod faults;
mod runs;
mod trials;

use aot_ir::Bytes;
use aot_runtime::artifact::ImagesFile;
use aot_runtime::{Device, DeviceTensor, Error};
use aot_tests::manifest::{FILE, Pack};
use aot_tests::packed;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use trials::{Extent, Trials, check};

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let root = PathBuf::from(args.next().unwrap_or_else(|| ".".to_owned()));
    let filter = args.next().unwrap_or_default();
    if filter == faults::ARGUMENT {
        return match fault(&root, &args.collect::<Vec<_>>()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    let extent = match args.next().as_deref() {
        None => Extent::Whole,
        Some("once") => Extent::Once,
        Some(other) => {
            eprintln!("error: `{other}` is not `once`");
            return ExitCode::from(2);
        }
    };
    match run(&root, &filter, extent) {
        Ok((passed, failed)) => {
            println!("{passed} passed, {failed} failed");
            ExitCode::from(u8::from(failed > 0))
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// One images file of the pack.
struct Images {
    name: String,
    bytes: Bytes,
}

/// The images files that the GPU can run; says which it can't.
fn images(root: &Path, device: &Device, names: &[String]) -> Result<Vec<Images>, String> {
    let text = |e: aot_runtime::Error| e.to_string();
    let (major, minor) = device.capability().ok_or("not a GPU")?;
    let mut out = Vec::new();
    for name in names {
        let bytes = packed::read(&root.join(name)).map_err(|e| format!("{name}: {e}"))?;
        let info = ImagesFile::open(&bytes).map_err(text)?.info();
        let runs = match info.ptx {
            true => info.arch.ptx_runs_on(major, minor),
            false => info.arch.runs_on(major, minor),
        };
        match runs {
            true => out.push(Images { name: name.clone(), bytes }),
            false => println!("left out: {name} is not for {}", device.name()),
        }
    }
    Ok(out)
}

/// The pack, but for what is only timed.
fn open(root: &Path) -> Result<Pack, String> {
    let text = std::fs::read_to_string(root.join(FILE)).map_err(|e| format!("{FILE}: {e}"))?;
    let mut pack: Pack = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    pack.entries.retain(|entry| entry.made.is_none());
    Ok(pack)
}

/// A process with a fault.
fn fault(root: &Path, args: &[String]) -> Result<(), String> {
    let pack = open(root)?;
    let device = Device::cuda(0).map_err(|e| e.to_string())?;
    let images = images(root, &device, &pack.images[..1])?;
    drop(device);
    faults::child(root, &pack, images.first().ok_or("no images")?, args)
}

fn run(root: &Path, filter: &str, extent: Extent) -> Result<(usize, usize), String> {
    let pack = open(root)?;
    let device = Device::cuda(0).map_err(|e| e.to_string())?;
    println!("on {}", device.name());
    let images = images(root, &device, &pack.images)?;
    let mut whole = Vec::new();
    if filter.is_empty() || filter == "memory" {
        whole.push(("memory".to_owned(), memory_runs_out(&device)));
    }
    if filter.is_empty() || filter == "fault" {
        whole.extend(faults::all(root, &pack));
    }
    if filter.is_empty() || filter == "devices" {
        whole.extend(devices::all(root, &pack, &images));
    }
    let mut first = (0, 0);
    for (name, outcome) in &whole {
        match outcome {
            Ok(()) => {
                first.0 += 1;
                println!("ok {name}");
            }
            Err(message) => {
                first.1 += 1;
                println!("FAILED {name}: {message}");
            }
        }
    }
    let mut totals = vec![(0, 0); images.len()];
    for entry in &pack.entries {
        let name = format!("{} in {}", entry.name, entry.precision);
        if !name.contains(filter) {
            continue;
        }
        let trials = Trials::of(root, entry);
        for (images, (passed, failed)) in images.iter().zip(&mut totals) {
            if !entry.everywhere && Some(&images.name) != pack.images.first() {
                continue;
            }
            let checked = trials.as_ref().map_err(Clone::clone);
            let what = format!("{name} with {}", images.name);
            match checked.and_then(|trials| check(&device, images, entry, trials, extent)) {
                Ok(worst) => {
                    *passed += 1;
                    if entry.name.starts_with("model/") {
                        println!("ok {what}: {worst:.2e}");
                    }
                }
                Err(message) => {
                    *failed += 1;
                    println!("FAILED {what}: {message}");
                }
            }
        }
    }
    let failures = pack.failures.iter().filter(|(name, _)| name.contains(filter));
    for (name, reason) in failures {
        totals.iter_mut().for_each(|(_, failed)| *failed += 1);
        println!("FAILED {name}: {reason}");
    }
    for (images, (passed, failed)) in images.iter().zip(&totals) {
        println!("{}: {passed} right, {failed} wrong", images.name);
    }
    Ok(totals.iter().fold(first, |(p, f), (passed, failed)| (p + passed, f + failed)))
}

/// More memory than there is is an error with the numbers, and everything that follows works.
fn memory_runs_out(device: &Device) -> Result<(), String> {
    const ELEMENTS: usize = 1 << 44;
    match DeviceTensor::<u8, 1>::uninit(device, [ELEMENTS]) {
        Err(Error::OutOfMemory { needed, free, total, .. })
            if needed == ELEMENTS as u64 && free <= total && total < needed =>
        {
            DeviceTensor::<u8, 1>::uninit(device, [1 << 20]).map(|_| ()).map_err(|e| e.to_string())
        }
        Err(error) => Err(format!("it is said so: {error}")),
        Ok(_) => Err(format!("{ELEMENTS} bytes were found")),
    }
}
