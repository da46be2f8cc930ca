//! The first load of a process: what users see.

use super::{Failure, quantiles};
use aot_ir::Bytes;
use aot_runtime::Device;
use aot_runtime::artifact::map;
use aot_runtime::loaded::{Loaded, Parts, WeightsSource};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// With this in the environment, a process shows its first load.
const ASKED: &str = "AOT_BENCH_FIRST_LOAD";
/// Processes.
const PROCESSES: usize = 3;

/// A model in files.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Files {
    pub(super) model: PathBuf,
    pub(super) images: PathBuf,
    pub(super) weights: PathBuf,
    /// Whether the weights are mapped, or else in memory.
    pub(super) mapped: bool,
}

impl Files {
    /// The weights, in a mapping or memory that nobody has used.
    pub(super) fn weights(&self) -> Result<Bytes, Failure> {
        Ok(match self.mapped {
            true => map(&self.weights)?,
            false => std::fs::read(&self.weights)?.into(),
        })
    }
}

/// What the first load of a process took.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct First {
    /// To open the GPU.
    pub(super) open_ms: f64,
    /// All of the load.
    pub(super) load_ms: f64,
    /// The weights' way to the GPU.
    pub(super) gb_per_s: f64,
}

/// Medians over processes.
pub(super) fn measure(files: &Files) -> Result<First, Failure> {
    let mut firsts = Vec::new();
    for _ in 0..PROCESSES {
        let mut command = Command::new(std::env::current_exe()?);
        let output = command.env(ASKED, serde_json::to_string(files)?).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        firsts.push(serde_json::from_slice::<First>(&output.stdout)?);
    }
    let of = |field: fn(&First) -> f64| quantiles(firsts.iter().map(field).collect())[0];
    Ok(First {
        open_ms: of(|first| first.open_ms),
        load_ms: of(|first| first.load_ms),
        gb_per_s: of(|first| first.gb_per_s),
    })
}

/// The model that this process is asked to load.
pub(super) fn asked() -> Option<Result<Files, Failure>> {
    let asked = std::env::var(ASKED).ok()?;
    Some(serde_json::from_str(&asked).map_err(Failure::from))
}

/// Loads it and prints what that took.
pub(super) fn show(files: &Files) -> Result<(), Failure> {
    let read = |path: &Path| std::fs::read(path);
    let (model, images) = (read(&files.model)?, read(&files.images)?);
    let weights = files.weights()?;
    let start = Instant::now();
    let device = Device::cuda(0)?;
    let opened = Instant::now();
    let (images, weights) = ([images.as_slice()], WeightsSource::Bytes(&weights));
    let loaded =
        Loaded::load(&device, &Parts { model: &model, images: &images, weights, lines: &[] })?;
    let (open_ms, load_ms) =
        ((opened - start).as_secs_f64() * 1e3, opened.elapsed().as_secs_f64() * 1e3);
    let uploaded = loaded.uploaded();
    let gb_per_s = uploaded.bytes as f64 / uploaded.time.as_secs_f64() / 1e9;
    println!("{}", serde_json::to_string(&First { open_ms, load_ms, gb_per_s })?);
    Ok(())
}
