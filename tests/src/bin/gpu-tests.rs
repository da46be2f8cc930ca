//! Runs what a GPU pack holds on the GPU and compares it with the reference executor in binary64.
//!
//! usage: `gpu-tests PACK [FILTER]`
//! Prints a line per failure and last `N passed, N failed`. AOT_FORCE_ARCH=sm_80 and AOT_FORCE_PTX=1 choose
//! other images than the GPU's own.

use aot_ir::Bytes;
use aot_ir::exec::{Executor, Tensor};
use aot_runtime::artifact::{ModelFile, map, read_weights};
use aot_runtime::loaded::{Loaded, Parts, WeightsSource};
use aot_runtime::{Device, InputRef, OutputRef};
use aot_tests::compare::{distance, row_distance};
use aot_tests::manifest::{Entry, FILE, Pack};
use aot_tests::net::bounded_inputs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let root = PathBuf::from(args.next().unwrap_or_else(|| ".".to_owned()));
    let filter = args.next().unwrap_or_default();
    match run(&root, &filter) {
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

fn run(root: &Path, filter: &str) -> Result<(usize, usize), String> {
    let text = std::fs::read_to_string(root.join(FILE)).map_err(|e| format!("{FILE}: {e}"))?;
    let pack: Pack = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let device = Device::cuda(0).map_err(|e| e.to_string())?;
    println!("on {}", device.name());
    let images: Vec<Bytes> = pack
        .images
        .iter()
        .map(|name| map(&root.join(name)).map_err(|e| e.to_string()))
        .collect::<Result<_, _>>()?;
    let (mut passed, mut failed) = (0, 0);
    for entry in pack.entries.iter().filter(|e| e.name.contains(filter)) {
        match check(root, &device, &images, entry) {
            Ok(worst) => {
                passed += 1;
                if !entry.bounds.is_empty() || entry.name.starts_with("model/") {
                    println!("ok {} in {}: {worst:.2e}", entry.name, entry.precision);
                }
            }
            Err(message) => {
                failed += 1;
                println!("FAILED {} in {}: {message}", entry.name, entry.precision);
            }
        }
    }
    Ok((passed, failed))
}

/// The greatest distance over all trials and outputs.
fn check(root: &Path, device: &Device, images: &[Bytes], entry: &Entry) -> Result<f64, String> {
    let text = |e: &dyn std::error::Error| e.to_string();
    let model = map(&root.join(&entry.model)).map_err(|e| text(&e))?;
    let weights = map(&root.join(&entry.weights)).map_err(|e| text(&e))?;
    let images: Vec<&[u8]> = images.iter().map(|b| &**b).collect();
    let source = WeightsSource::Bytes(&weights);
    let parts = Parts { model: &model, images: &images, weights: source, lines: &[] };
    let loaded = Loaded::load(device, &parts).map_err(|e| text(&e))?;
    let file = ModelFile::open(&model).map_err(|e| text(&e))?;
    let data = read_weights(&weights, &file.info().weights, "the weights").map_err(|e| text(&e))?;
    let graph = file.graph_with(&data).map_err(|e| text(&e))?;
    let reference = Executor::wide(&graph).map_err(|e| text(&e))?;
    let mut worst = 0.0f64;
    for (trial, sizes) in entry.sizes.iter().enumerate() {
        let inputs = bounded_inputs(&graph, sizes, trial as u64, &entry.bounds, &entry.precision);
        let expected = reference.run(&inputs).map_err(|e| text(&e))?;
        let found = on_gpu(&loaded, &inputs)?;
        for ((found, expected), (name, _)) in found.iter().zip(&expected).zip(&graph.outputs) {
            let width = expected.shape().last().copied().unwrap_or(1);
            let (x, y) = (found.to_f64(), expected.to_f64());
            let (all, row) = (distance(&x, &y), row_distance(&x, &y, width));
            worst = worst.max(all);
            if all.is_nan() || all > entry.tolerance {
                return Err(format!("`{name}` is off by {all:.2e} at {sizes:?}"));
            }
            // One row may be several times worse than the whole, not more.
            if row.is_nan() || row > entry.tolerance * 8.0 {
                return Err(format!("a row of `{name}` is off by {row:.2e} at {sizes:?}"));
            }
        }
    }
    Ok(worst)
}

fn on_gpu(loaded: &Loaded, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
    let text = |e: aot_runtime::Error| e.to_string();
    let bytes: Vec<Vec<u8>> = inputs.iter().map(Tensor::to_bytes).collect();
    let refs: Vec<InputRef<'_>> = inputs
        .iter()
        .zip(&bytes)
        .map(|(t, b)| InputRef::host(t.dtype(), t.shape(), b).map_err(text))
        .collect::<Result<_, _>>()?;
    let sizes = loaded.bind(&refs).map_err(text)?;
    let ports = &loaded.signature().outputs;
    let mut sinks: Vec<Vec<u8>> = vec![Vec::new(); ports.len()];
    let mut outputs: Vec<OutputRef<'_>> = ports
        .iter()
        .zip(sizes.outputs())
        .zip(&mut sinks)
        .map(|((port, shape), sink)| OutputRef::bytes(port.dtype, shape, sink))
        .collect();
    loaded.run(&sizes, None, &refs, &mut outputs).map_err(text)?;
    drop(outputs);
    ports
        .iter()
        .zip(sizes.outputs())
        .zip(&sinks)
        .map(|((port, shape), bytes)| {
            Tensor::from_bytes(port.dtype, shape.clone(), bytes).map_err(|e| e.to_string())
        })
        .collect()
}
