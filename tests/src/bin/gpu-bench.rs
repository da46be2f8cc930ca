//! Times what a GPU pack marks for it: medians of the device's own clock, inputs and outputs on the device.
//!
//! usage: `gpu-bench PACK [FILTER]`
//! Prints a line of JSON per network and size.

use aot_ir::Bytes;
use aot_runtime::artifact::{ModelFile, map, read_weights};
use aot_runtime::loaded::{Loaded, Parts, WeightsSource};
use aot_runtime::{Device, DeviceTensor, TensorView, f16};
use aot_tests::manifest::{Entry, FILE, Pack};
use aot_tests::net::bounded_inputs;
use std::path::{Path, PathBuf};
use std::time::Instant;

const WARM_UP: usize = 20;
const RUNS: usize = 200;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let root = PathBuf::from(args.next().unwrap_or_else(|| ".".to_owned()));
    let filter = args.next().unwrap_or_default();
    let pack: Pack = serde_json::from_str(&std::fs::read_to_string(root.join(FILE))?)?;
    let start = Instant::now();
    let device = Device::cuda(0)?;
    let opened = start.elapsed().as_secs_f64() * 1e3;
    println!("{}", serde_json::json!({ "device": device.name(), "open_ms": opened }));
    let images: Vec<Bytes> =
        pack.images.iter().map(|name| map(&root.join(name))).collect::<Result<_, _>>()?;
    for entry in pack.entries.iter().filter(|e| e.bench && e.name.contains(&filter)) {
        bench(&root, &device, &images, entry)?;
    }
    Ok(())
}

/// A tensor on the device, of the types and ranks that benches have.
enum OnDevice {
    I64(DeviceTensor<i64, 2>),
    F32(DeviceTensor<f32, 2>),
    F32x3(DeviceTensor<f32, 3>),
    F16(DeviceTensor<f16, 2>),
}

fn bench(
    root: &Path,
    device: &Device,
    images: &[Bytes],
    entry: &Entry,
) -> Result<(), Box<dyn std::error::Error>> {
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
        let inputs = bounded_inputs(&graph, sizes, 5, &entry.bounds, &entry.precision);
        let mut on_device = Vec::new();
        for tensor in &inputs {
            let bytes = tensor.to_bytes();
            on_device.push(match (tensor.dtype(), tensor.shape()) {
                (aot_ir::DType::I64, &[a, b]) => {
                    let v: Vec<i64> = tensor.to_i64();
                    OnDevice::I64(DeviceTensor::upload(device, TensorView::new(&v, [a, b])?)?)
                }
                (aot_ir::DType::F32, &[a, b]) => {
                    let v: Vec<f32> = tensor.to_vec()?;
                    OnDevice::F32(DeviceTensor::upload(device, TensorView::new(&v, [a, b])?)?)
                }
                (aot_ir::DType::F16, &[a, b]) => {
                    let pairs = bytes.chunks_exact(2);
                    let v: Vec<f16> =
                        pairs.map(|p| f16::from_bits(u16::from_le_bytes([p[0], p[1]]))).collect();
                    OnDevice::F16(DeviceTensor::upload(device, TensorView::new(&v, [a, b])?)?)
                }
                (dtype, shape) => return Err(format!("no bench for {dtype} {shape:?}").into()),
            });
        }
        let refs: Vec<_> = on_device
            .iter()
            .map(|t| match t {
                OnDevice::I64(t) => t.erase_input(),
                OnDevice::F32(t) => t.erase_input(),
                OnDevice::F32x3(t) => t.erase_input(),
                OnDevice::F16(t) => t.erase_input(),
            })
            .collect();
        let bound = loaded.bind(&refs)?;
        let mut results = Vec::new();
        for (port, shape) in loaded.signature().outputs.iter().zip(bound.outputs()) {
            results.push(match (port.dtype, shape.as_slice()) {
                (aot_ir::DType::F32, &[a, b]) => {
                    OnDevice::F32(DeviceTensor::uninit(device, [a, b])?)
                }
                (aot_ir::DType::F32, &[a, b, c]) => {
                    OnDevice::F32x3(DeviceTensor::uninit(device, [a, b, c])?)
                }
                (aot_ir::DType::F16, &[a, b]) => {
                    OnDevice::F16(DeviceTensor::uninit(device, [a, b])?)
                }
                (dtype, shape) => return Err(format!("no bench for {dtype} {shape:?}").into()),
            });
        }
        let stream = device.stream()?;
        let mut once = || -> aot_runtime::Result<f64> {
            let mut outputs: Vec<_> = results
                .iter_mut()
                .map(|t| match t {
                    OnDevice::I64(t) => t.erase(),
                    OnDevice::F32(t) => t.erase(),
                    OnDevice::F32x3(t) => t.erase(),
                    OnDevice::F16(t) => t.erase(),
                })
                .collect();
            stream.elapsed(|s| loaded.run(&bound, Some(s), &refs, &mut outputs))
        };
        let start = Instant::now();
        once()?;
        let first_ms = start.elapsed().as_secs_f64() * 1e3;
        for _ in 0..WARM_UP {
            once()?;
        }
        let mut times = (0..RUNS).map(|_| once()).collect::<Result<Vec<f64>, _>>()?;
        times.sort_by(f64::total_cmp);
        let start = Instant::now();
        for _ in 0..RUNS {
            once()?;
        }
        let wall_ms = start.elapsed().as_secs_f64() * 1e3 / RUNS as f64;
        println!(
            "{}",
            serde_json::json!({
                "name": entry.name, "precision": entry.precision, "sizes": sizes,
                "load_ms": load_ms, "first_ms": first_ms, "median_ms": times[RUNS / 2],
                "p99_ms": times[RUNS * 99 / 100], "wall_ms": wall_ms,
            })
        );
    }
    Ok(())
}
