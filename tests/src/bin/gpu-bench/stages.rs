//! Where the time of calls goes whose tensors are on the host: calls that differ in where their tensors are.

use super::placed::{Call, Placed, Resident};
use super::{Failure, microseconds, quantiles};
use aot_runtime::loaded::Loaded;
use aot_runtime::{Device, Result};
use std::time::Instant;

/// Calls of each kind, after one that is not counted.
const CALLS: usize = 5;
/// Runs that the device does one behind the other, and how often.
const QUEUED: usize = 8;
const REPEATS: usize = 5;
/// Bytes that are copied from to time stores: more than caches hold, as what a GPU wrote is in none of the host's.
const COLD: usize = 256 << 20;

/// Medians of calls of one size, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stages {
    pub(super) size: i64,
    /// The run on the device, others queued behind it.
    pub(super) device: f64,
    /// A call with all tensors on the host.
    call: f64,
    /// Until a call with all tensors on the device returns: the launch.
    launch: f64,
    /// What that call and waiting for it take beyond the device.
    wait: f64,
    /// What inputs on the host add.
    inputs: f64,
    /// What outputs on the host add.
    outputs: f64,
    /// Of this, the copy from page-locked memory to the caller's.
    store: f64,
    output_bytes: f64,
}

/// What calls of each of these sizes take.
pub(super) fn measure(
    device: &Device,
    loaded: &Loaded,
    calls: &[Call],
) -> Result<Vec<Stages>, Failure> {
    let mut cold = Cold { bytes: vec![1; COLD], at: 0 };
    calls.iter().map(|call| one(Placed::new(device, loaded, call)?, call.size, &mut cold)).collect()
}

fn one(mut placed: Placed<'_>, size: i64, cold: &mut Cold) -> Result<Stages, Failure> {
    let mut timed = |inputs: bool, outputs: bool| {
        placed.run(Resident { inputs, outputs })?;
        let times = (0..CALLS).map(|_| placed.run(Resident { inputs, outputs }));
        let times = times.collect::<Result<Vec<_>>>()?;
        let [returned, _] = quantiles(times.iter().map(|t| t.returned).collect());
        let [done, _] = quantiles(times.iter().map(|t| t.done).collect());
        Ok::<_, Failure>((returned, done))
    };
    let (call, _) = timed(false, false)?;
    let (_, given) = timed(false, true)?;
    let (taken, _) = timed(true, false)?;
    let (launch, done) = timed(true, true)?;
    let times = (0..REPEATS).map(|_| placed.device(QUEUED)).collect::<Result<_>>()?;
    let [device, _] = quantiles(times);
    let bytes = placed.output_bytes();
    let [store, _] = quantiles((0..CALLS).map(|_| cold.store(bytes)).collect());
    let (inputs, outputs, wait) = (given - done, taken - done, done - device);
    let output_bytes = bytes as f64;
    Ok(Stages { size, device, call, launch, wait, inputs, outputs, store, output_bytes })
}

/// Memory that is in no cache.
struct Cold {
    bytes: Vec<u8>,
    at: usize,
}

impl Cold {
    /// Microseconds for a copy of so many bytes into a buffer that was written before.
    fn store(&mut self, bytes: usize) -> f64 {
        let bytes = bytes.min(self.bytes.len());
        if self.at + bytes > self.bytes.len() {
            self.at = 0;
        }
        let from = &self.bytes[self.at..self.at + bytes];
        self.at += bytes;
        let mut sink = vec![1; bytes];
        let start = Instant::now();
        sink.copy_from_slice(from);
        let time = microseconds(start);
        std::hint::black_box(&sink);
        time
    }
}

/// Means over the sizes, as JSON. `device`, `wait`, `inputs` and `outputs` add up to about a `call`; `launch` lies within
/// the first two, `store` within `outputs`.
pub(super) fn json(all: &[Stages]) -> serde_json::Value {
    let mean = |of: fn(&Stages) -> f64| all.iter().map(of).sum::<f64>() / (all.len().max(1) as f64);
    serde_json::json!({
        "call": mean(|s| s.call), "device": mean(|s| s.device), "wait": mean(|s| s.wait),
        "inputs": mean(|s| s.inputs), "outputs": mean(|s| s.outputs),
        "launch": mean(|s| s.launch), "store": mean(|s| s.store),
        "output_bytes": mean(|s| s.output_bytes),
    })
}
