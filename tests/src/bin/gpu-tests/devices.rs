//! Two GPUs in one process.

use aot_ir::exec::Tensor;
use aot_runtime::loaded::{Loaded, Parts, WeightsSource};
use aot_runtime::{Device, Error, InputRef, OutputRef, Stream};
use aot_tests::device::{OnDevice, on_device};
use aot_tests::manifest::{Entry, Pack};
use std::path::Path;

use super::Images;
use super::runs::{on_gpu, on_host};
use super::trials::Trials;

/// Networks that are tried, from all over the pack.
const NETWORKS: usize = 24;
const THREADS: usize = 4;
const ROUNDS: usize = 5;

type Outcome<T> = Result<T, String>;

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// A network on both GPUs, and what it gives for each of its inputs.
struct Both {
    name: String,
    on: [Loaded; 2],
    data: Vec<(Vec<Tensor>, Vec<Tensor>)>,
}

/// What came of it; none if there is one GPU, or another one.
pub(super) fn all(root: &Path, pack: &Pack, images: &[Images]) -> Option<(String, Outcome<()>)> {
    let devices = Device::cuda(0).and_then(|first| Ok([first, Device::cuda(1)?]));
    let devices = match devices {
        Ok(devices) if devices[0].capability() == devices[1].capability() => devices,
        Ok(_) => {
            println!("left out: two devices, which are not alike here");
            return None;
        }
        Err(error) => {
            println!("left out: two devices ({error})");
            return None;
        }
    };
    let images = images.first()?;
    let entries: Vec<&Entry> = pack.entries.iter().filter(|e| e.recorded.is_none()).collect();
    let chosen = entries.iter().step_by(entries.len().div_ceil(NETWORKS).max(1));
    let trial = || -> Outcome<usize> {
        let opened = chosen.map(|entry| Both::new(root, entry, images, &devices));
        let opened = opened.collect::<Outcome<Vec<Both>>>()?;
        together(&opened)?;
        let wrong = opened.iter().find(|both| !both.data[0].0.is_empty());
        refused(wrong.ok_or("no network here has an input")?, &devices)?;
        // What was refused has left nothing behind.
        together(&opened)?;
        Ok(opened.len())
    };
    let outcome = trial();
    let count = outcome.as_ref().copied().unwrap_or(0);
    Some((format!("two devices, {count} networks at once"), outcome.map(|_| ())))
}

impl Both {
    fn new(root: &Path, entry: &Entry, images: &Images, devices: &[Device; 2]) -> Outcome<Self> {
        let name = format!("{} in {}", entry.name, entry.precision);
        let named = |e: String| format!("{name}: {e}");
        let trials = Trials::of(root, entry).map_err(named)?;
        let load = |device: &Device| {
            let weights = WeightsSource::Bytes(&trials.weights);
            let images: &[&[u8]] = &[&images.bytes];
            let parts = Parts { model: &trials.model, images, weights, lines: &[] };
            Loaded::load(device, &parts).map_err(|e| named(e.to_string()))
        };
        let on = [load(&devices[0])?, load(&devices[1])?];
        let given = trials.data.into_iter().map(|(inputs, _)| {
            let outputs = on_gpu(&on[0], &inputs).map_err(named)?;
            Ok((inputs, outputs))
        });
        let data = given.collect::<Outcome<Vec<_>>>()?;
        Ok(Self { name, on, data })
    }

    /// Whether a device gives what the first one gave alone, bit by bit.
    fn same(&self, device: usize) -> Outcome<()> {
        for (inputs, expected) in &self.data {
            let found =
                on_gpu(&self.on[device], inputs).map_err(|e| format!("{}: {e}", self.name))?;
            let bytes = |all: &[Tensor]| all.iter().map(Tensor::to_bytes).collect::<Vec<_>>();
            if bytes(&found) != bytes(expected) {
                return Err(format!("{} differs on device {device}", self.name));
            }
        }
        Ok(())
    }
}

/// Threads that go from device to device with each network.
fn together(all: &[Both]) -> Outcome<()> {
    let walk = |thread: usize| -> Outcome<()> {
        for round in 0..ROUNDS {
            for (n, both) in all.iter().enumerate() {
                both.same((n + round + thread) % 2)?;
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..THREADS).map(|thread| scope.spawn(move || walk(thread))).collect();
        let ended = threads.into_iter().map(|t| t.join().map_err(|_| "a panic".to_owned())?);
        ended.collect()
    })
}

/// Inputs, outputs and streams of the second device are refused by a model on the first one.
fn refused(both: &Both, devices: &[Device; 2]) -> Outcome<()> {
    if devices[0] == devices[1] {
        return Err("the devices are said to be one".to_owned());
    }
    let (loaded, inputs) = (&both.on[0], &both.data[0].0);
    let signature = loaded.signature();
    let upload = |t: &Tensor| on_device(&devices[1], t.dtype(), t.shape(), &t.to_bytes());
    let input = upload(&inputs[0]).map_err(text)?;
    other_device(call(loaded, inputs, Some(&*input), None, None)?, &signature.inputs[0].name)?;
    let output = &both.data[0].1[0];
    let mut output = upload(output).map_err(text)?;
    let outcome = call(loaded, inputs, None, Some(&mut *output), None)?;
    other_device(outcome, &signature.outputs[0].name)?;
    let stream = devices[1].stream().map_err(text)?;
    other_device(call(loaded, inputs, None, None, Some(&stream))?, "the stream")
}

/// A run of which the first input, the first output or the stream is given.
pub(super) fn call(
    loaded: &Loaded,
    tensors: &[Tensor],
    input: Option<&dyn OnDevice>,
    output: Option<&mut dyn OnDevice>,
    stream: Option<&Stream>,
) -> Outcome<aot_runtime::Result<()>> {
    let bytes: Vec<Vec<u8>> = tensors.iter().map(Tensor::to_bytes).collect();
    let mut inputs: Vec<InputRef<'_>> = on_host(tensors, &bytes)?;
    if let Some(input) = input {
        inputs[0] = input.input();
    }
    let sizes = loaded.bind(&inputs).map_err(text)?;
    let ports = &loaded.signature().outputs;
    let mut sinks = vec![Vec::new(); ports.len()];
    let outputs = ports.iter().zip(sizes.outputs()).zip(&mut sinks);
    let outputs = outputs.map(|((port, shape), sink)| OutputRef::bytes(port.dtype, shape, sink));
    let mut outputs: Vec<OutputRef<'_>> = outputs.collect();
    if let Some(output) = output {
        outputs[0] = output.output();
    }
    Ok(loaded.run(&sizes, stream, &inputs, &mut outputs))
}

/// Whether a call was refused because of what has this name.
pub(super) fn other_device(outcome: aot_runtime::Result<()>, expected: &str) -> Outcome<()> {
    match outcome {
        Err(Error::OtherDevice { name, .. }) if name == expected => Ok(()),
        Err(error) => Err(format!("`{expected}` of another device: {error}")),
        Ok(()) => Err(format!("`{expected}` of another device is taken")),
    }
}
