//! Times what a GPU pack marks for it: medians of the device's own clock, inputs and outputs on the device.
//!
//! usage: `gpu-bench PACK [FILTER]`
//! Prints a line of JSON per network and size.

use aot_ir::{Bytes, DType};
use aot_runtime::artifact::{ModelFile, map, read_weights};
use aot_runtime::loaded::{Loaded, Parts, WeightsSource};
use aot_runtime::{Device, DeviceTensor, Element, InputRef, OutputRef, TensorView, f16};
use aot_tests::manifest::{Entry, FILE, Pack};
use std::path::{Path, PathBuf};
use std::time::Instant;

const WARM_UP: usize = 20;
const RUNS: usize = 200;

fn main() -> Result<(), Failure> {
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

type Failure = Box<dyn std::error::Error>;

/// A tensor on the device whose type is known at run time only.
trait OnDevice {
    fn input(&self) -> InputRef<'_>;
    fn output(&mut self) -> OutputRef<'_>;
}

impl<T: Element, const R: usize> OnDevice for DeviceTensor<T, R> {
    fn input(&self) -> InputRef<'_> {
        self.erase_input()
    }

    fn output(&mut self) -> OutputRef<'_> {
        self.erase()
    }
}

/// A tensor on the device of elements that lie in `bytes` (at least as many as the shape has).
fn on_device<T: Element>(
    device: &Device,
    shape: &[usize],
    bytes: &[u8],
) -> Result<Box<dyn OnDevice>, Failure> {
    let mut elements = vec![T::default(); shape.iter().product()];
    T::copy_from_bytes(&mut elements, bytes);
    fn of<T: Element, const R: usize>(
        device: &Device,
        elements: &[T],
        shape: [usize; R],
    ) -> Result<Box<dyn OnDevice>, Failure> {
        Ok(Box::new(DeviceTensor::upload(device, TensorView::new(elements, shape)?)?))
    }
    match *shape {
        [a] => of(device, &elements, [a]),
        [a, b] => of(device, &elements, [a, b]),
        [a, b, c] => of(device, &elements, [a, b, c]),
        [a, b, c, d] => of(device, &elements, [a, b, c, d]),
        _ => Err(format!("no bench for shape {shape:?}").into()),
    }
}

/// [`on_device`] of an element type that benches have.
fn on_device_as(
    device: &Device,
    dtype: DType,
    shape: &[usize],
    bytes: &[u8],
) -> Result<Box<dyn OnDevice>, Failure> {
    match dtype {
        DType::I64 => on_device::<i64>(device, shape, bytes),
        DType::F32 => on_device::<f32>(device, shape, bytes),
        DType::F16 => on_device::<f16>(device, shape, bytes),
        _ => Err(format!("no bench for {dtype}").into()),
    }
}

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
        let on_device: Vec<_> = inputs
            .iter()
            .map(|t| on_device_as(device, t.dtype(), t.shape(), &t.to_bytes()))
            .collect::<Result<_, _>>()?;
        let refs: Vec<_> = on_device.iter().map(|t| t.input()).collect();
        let bound = loaded.bind(&refs)?;
        let outputs = loaded.signature().outputs.iter().zip(bound.outputs());
        let mut results = outputs
            .map(|(port, shape)| on_device_as(device, port.dtype, shape, &[]))
            .collect::<Result<Vec<_>, _>>()?;
        let stream = device.stream()?;
        let mut once = || -> aot_runtime::Result<f64> {
            let mut outputs: Vec<_> = results.iter_mut().map(|t| t.output()).collect();
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
