//! Times what a GPU pack marks for it: medians of the device's own clock, inputs and outputs on the device.
//!
//! usage: `gpu-bench PACK [FILTER]`
//! Prints a line of JSON per network and size.

use aot_ir::Bytes;
use aot_runtime::Device;
use aot_runtime::artifact::{ModelFile, map, read_weights};
use aot_runtime::loaded::{Loaded, Parts, WeightsSource};
use aot_tests::device::on_device;
use aot_tests::manifest::{Entry, FILE, Pack};
use aot_tests::packed;
use std::path::{Path, PathBuf};
use std::time::Instant;

const WARM_UP: usize = 20;
const RUNS: std::ops::RangeInclusive<usize> = 30..=200;
/// Calls whose time on the host is taken.
const CALLS: usize = 500;
/// What a size's runs should take at most, in milliseconds.
const SPAN: f64 = 1500.0;

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let root = PathBuf::from(args.next().unwrap_or_else(|| ".".to_owned()));
    let filter = args.next().unwrap_or_default();
    let pack: Pack = serde_json::from_str(&std::fs::read_to_string(root.join(FILE))?)?;
    let start = Instant::now();
    let device = Device::cuda(0)?;
    let opened = start.elapsed().as_secs_f64() * 1e3;
    println!("{}", serde_json::json!({ "device": device.name(), "open_ms": opened }));
    let images = pack.images.iter().map(|name| packed::read(&root.join(name)));
    let images = images.collect::<Result<Vec<Bytes>, _>>()?;
    for entry in pack.entries.iter().filter(|e| e.bench && e.name.contains(&filter)) {
        bench(&root, &device, &images, entry)?;
    }
    Ok(())
}

type Failure = Box<dyn std::error::Error>;

fn bench(root: &Path, device: &Device, images: &[Bytes], entry: &Entry) -> Result<(), Failure> {
    let start = Instant::now();
    let model = map(&root.join(&entry.model))?;
    let weights = map(&root.join(&entry.weights))?;
    let slices: Vec<&[u8]> = images.iter().map(|b| &**b).collect();
    let source = WeightsSource::Bytes(&weights);
    let parts = Parts { model: &model, images: &slices, weights: source, lines: &[] };
    let loaded = Loaded::load(device, &parts)?;
    let load_ms = start.elapsed().as_secs_f64() * 1e3;
    let file = ModelFile::open(&model)?;
    let data = read_weights(&weights, &file.info().weights, "the weights")?;
    let graph = file.graph_with(&data)?;
    for sizes in &entry.sizes {
        let inputs = entry.inputs(&graph, sizes, 5);
        let inputs: Vec<_> = inputs
            .iter()
            .map(|t| on_device(device, t.dtype(), t.shape(), &t.to_bytes()))
            .collect::<Result<_, _>>()?;
        let refs: Vec<_> = inputs.iter().map(|t| t.input()).collect();
        let bound = loaded.bind(&refs)?;
        let outputs = loaded.signature().outputs.iter().zip(bound.outputs());
        let mut results = outputs
            .map(|(port, shape)| on_device(device, port.dtype, shape, &[]))
            .collect::<Result<Vec<_>, _>>()?;
        let stream = device.stream()?;
        let mut once = || -> aot_runtime::Result<f64> {
            let mut outputs: Vec<_> = results.iter_mut().map(|t| t.output()).collect();
            stream.elapsed(|s| loaded.run(&bound, Some(s), &refs, &mut outputs))
        };
        let start = Instant::now();
        once()?;
        let first_ms = start.elapsed().as_secs_f64() * 1e3;
        let runs = ((SPAN / first_ms) as usize).clamp(*RUNS.start(), *RUNS.end());
        for _ in 0..WARM_UP {
            once()?;
        }
        let mut times = (0..runs).map(|_| once()).collect::<Result<Vec<f64>, _>>()?;
        times.sort_by(f64::total_cmp);
        let start = Instant::now();
        for _ in 0..runs {
            once()?;
        }
        let wall_ms = start.elapsed().as_secs_f64() * 1e3 / runs as f64;
        let mut calls = Vec::with_capacity(CALLS);
        for _ in 0..CALLS {
            let mut outputs: Vec<_> = results.iter_mut().map(|t| t.output()).collect();
            let start = Instant::now();
            loaded.run(&bound, Some(&stream), &refs, &mut outputs)?;
            calls.push(start.elapsed().as_secs_f64() * 1e6);
            stream.synchronize()?;
        }
        calls.sort_by(f64::total_cmp);
        println!(
            "{}",
            serde_json::json!({
                "name": entry.name, "precision": entry.precision, "sizes": sizes,
                "load_ms": load_ms, "first_ms": first_ms, "runs": runs, "median_ms": times[runs / 2],
                "p99_ms": times[runs * 99 / 100], "wall_ms": wall_ms,
                "call_us": calls[CALLS / 2], "call_p99_us": calls[CALLS * 99 / 100],
            })
        );
    }
    Ok(())
}
