//! Times what a GPU pack marks for it.
//!
//! usage: `gpu-bench PACK [FILTER [profile]]`
//! Prints a line of JSON per network and size, and some for the upload of weights where the filter is part of `weights`;
//! with `profile`, where the time of networks goes.

mod decode;
mod first_load;
mod fresh;
mod link;
mod placed;
mod profile;
mod stages;
mod steady;
mod varied;
mod weights;

use aot_ir::{Bytes, Graph};
use aot_runtime::Device;
use aot_runtime::artifact::{ModelFile, map, read_weights};
use aot_runtime::loaded::{Loaded, Parts, WeightsSource};
use aot_tests::manifest::{Entry, FILE, Made, Pack};
use aot_tests::packed;
use std::path::{Path, PathBuf};
use std::time::Instant;

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    if let Some(asked) = first_load::asked() {
        return first_load::show(&asked?);
    }
    let root = PathBuf::from(args.next().unwrap_or_else(|| ".".to_owned()));
    let filter = args.next().unwrap_or_default();
    let profiles = args.next().is_some_and(|what| what == "profile");
    let pack: Pack = serde_json::from_str(&std::fs::read_to_string(root.join(FILE))?)?;
    let start = Instant::now();
    let device = Device::cuda(0)?;
    let opened = start.elapsed().as_secs_f64() * 1e3;
    println!("{}", serde_json::json!({ "device": device.name(), "open_ms": opened }));
    if !profiles && "weights".contains(&filter) {
        weights::bench(&device)?;
    }
    let images = pack.images.iter().map(|name| packed::read(&root.join(name)));
    let images = images.collect::<Result<Vec<Bytes>, _>>()?;
    for entry in pack.entries.iter().filter(|e| e.bench && e.name.contains(&filter)) {
        let opened = Opened::new(&root, &device, &images, entry)?;
        if profiles {
            profile::show(&opened, entry)?;
            continue;
        }
        if let Some(steps) = entry.steps {
            decode::bench(&device, &opened, entry, steps)?;
            continue;
        }
        steady::bench(&device, &opened, entry)?;
        if let Some(varied) = &entry.varied {
            varied::bench(&device, &opened, entry, varied)?;
        }
    }
    Ok(())
}

type Failure = Box<dyn std::error::Error>;

/// A network on the device.
struct Opened {
    loaded: Loaded,
    graph: Graph,
    load_ms: f64,
}

impl Opened {
    fn new(root: &Path, device: &Device, images: &[Bytes], entry: &Entry) -> Result<Self, Failure> {
        let made = entry.made.map(Made::weights);
        let start = Instant::now();
        let model = map(&root.join(&entry.model))?;
        let weights = made.map_or_else(|| map(&root.join(&entry.weights)), Ok)?;
        let slices: Vec<&[u8]> = images.iter().map(|b| &**b).collect();
        let source = WeightsSource::Bytes(&weights);
        let parts = Parts { model: &model, images: &slices, weights: source, lines: &[] };
        let loaded = Loaded::load(device, &parts)?;
        let load_ms = start.elapsed().as_secs_f64() * 1e3;
        let file = ModelFile::open(&model)?;
        let data = read_weights(&weights, &file.info().weights, "the weights")?;
        let graph = file.graph_with(&data)?;
        Ok(Self { loaded, graph, load_ms })
    }
}

/// Microseconds since then.
fn microseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}

/// The median and the 99th percentile of at least one number.
fn quantiles(mut numbers: Vec<f64>) -> [f64; 2] {
    numbers.sort_by(f64::total_cmp);
    [numbers[numbers.len() / 2], numbers[numbers.len() * 99 / 100]]
}
