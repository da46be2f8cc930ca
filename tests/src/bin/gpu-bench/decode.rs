//! A decoder that makes one token a step, its keys and values in a session.

use super::{Failure, Opened, microseconds, quantiles};
use aot_ir::DType;
use aot_ir::exec::Tensor;
use aot_runtime::loaded::Loaded;
use aot_runtime::{Device, InputRef, OutputRef, Stream, driver_counts};
use aot_tests::compare::distance;
use aot_tests::device::{OnDevice, on_device};
use aot_tests::manifest::Entry;
use aot_tests::net::Random;
use std::time::Instant;

/// Steps of a session before the one that is timed.
const WARM_UP: usize = 4;
/// Steps at the beginning and at the end whose times are told apart.
const EDGE: usize = 100;
/// Tokens that are decoded at once, too, and must give what steps gave.
const PROMPT: usize = 100;

/// The shape of a step's tokens.
const ONE: [usize; 2] = [1, 1];

/// Prints what steps take whose past grows from 0 to `steps`: from a token on the host to its logits on the host; and with
/// both on the device, what the device takes and what the host does. What the first step of a session takes is told apart, as it makes the state.
pub(super) fn bench(
    device: &Device,
    opened: &Opened,
    entry: &Entry,
    steps: usize,
) -> Result<(), Failure> {
    let loaded = &opened.loaded;
    let mut random = Random::new(3);
    let vocabulary =
        loaded.signature().outputs.first().and_then(|port| port.shape.last()?.as_const());
    let vocabulary = vocabulary.ok_or("no logits")? as u64;
    let tokens: Vec<i64> = (0..=steps).map(|_| random.below(vocabulary) as i64).collect();
    let mut logits = Vec::new();
    loaded.warmup()?;
    let session = loaded.session()?;
    for token in tokens.iter().take(WARM_UP) {
        decode(&session, &[*token], &mut logits)?;
    }
    drop(session);

    let session = loaded.session()?;
    let start = driver_counts();
    let first_us = decode(&session, &tokens[..1], &mut logits)?;
    let before = driver_counts();
    let mut times = Vec::with_capacity(steps);
    let mut expected = Vec::new();
    for (n, token) in tokens.iter().enumerate().skip(1) {
        times.push(decode(&session, &[*token], &mut logits)?);
        if n + 1 == PROMPT {
            expected.clone_from(&logits);
        }
    }
    let after = driver_counts();
    let state_bytes = session.state_bytes()?;
    drop(session);

    let off = prompt(loaded, &tokens, &expected)?;
    if off.is_nan() || off > entry.tolerance {
        let name = &entry.name;
        return Err(format!("{name}: {PROMPT} tokens at once are off by {off:.2e}").into());
    }
    let resident = Resident::new(device, loaded, steps)?;
    let weight_bytes = loaded.memory().weights;
    let edge = EDGE.min(steps);
    let [first_steps_us, _] = quantiles(times[..edge].to_vec());
    let [last_steps_us, _] = quantiles(times[steps - edge..].to_vec());
    let [p50_us, p99_us] = quantiles(times);
    let gigabytes = |microseconds: f64| weight_bytes as f64 / microseconds / 1e3;
    println!(
        "{}",
        serde_json::json!({
            "name": entry.name, "precision": entry.precision, "load_ms": opened.load_ms,
            "steps": steps, "p50_us": p50_us, "p99_us": p99_us,
            "first_steps_us": first_steps_us, "last_steps_us": last_steps_us,
            "weight_bytes": weight_bytes, "weights_gb_per_s": gigabytes(p50_us),
            "state_bytes": state_bytes, "graphs": after.graphs - before.graphs,
            "allocations": after.allocations - before.allocations,
            "session_first_us": first_us, "session_graphs": before.graphs - start.graphs,
            "session_allocations": before.allocations - start.allocations,
            "device_first_steps_us": resident.first, "device_last_steps_us": resident.last,
            "device_us": resident.mean, "device_weights_gb_per_s": gigabytes(resident.mean),
            "call_us": resident.call[0], "call_p99_us": resident.call[1],
            "prompt_off_by": off,
        })
    );
    Ok(())
}

/// A run of tokens on the host, which goes on from where the session is; microseconds.
fn decode(session: &Loaded, tokens: &[i64], logits: &mut Vec<u8>) -> aot_runtime::Result<f64> {
    let start = Instant::now();
    let bytes: Vec<u8> = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
    let shape = [1, tokens.len()];
    let ids = [InputRef::host(DType::I64, &shape, &bytes)?];
    let sizes = session.bind(&ids)?;
    let port = &session.signature().outputs[0];
    let output = OutputRef::bytes(port.dtype, &sizes.outputs()[0], logits);
    session.run(&sizes, None, &ids, &mut [output])?;
    Ok(microseconds(start))
}

/// How far the last logits of a prompt are from those of as many steps.
fn prompt(loaded: &Loaded, tokens: &[i64], expected: &[u8]) -> Result<f64, Failure> {
    let tokens = tokens.get(..PROMPT).ok_or("too few steps")?;
    let mut logits = Vec::new();
    decode(&loaded.session()?, tokens, &mut logits)?;
    let last = logits.len().checked_sub(expected.len()).ok_or("too few logits")?;
    let dtype = loaded.signature().outputs[0].dtype;
    let numbers = |bytes: &[u8]| {
        let shape = vec![bytes.len() / dtype.bytes_for(1).unwrap_or(1) as usize];
        Tensor::from_bytes(dtype, shape, bytes).map(|tensor| tensor.to_f64())
    };
    Ok(distance(&numbers(&logits[last..])?, &numbers(expected)?))
}

/// Microseconds of steps whose tokens and logits are on the device.
struct Resident {
    /// Of the device a step, steps queued one behind the other: the first and the last ones, and all.
    first: f64,
    last: f64,
    mean: f64,
    /// The median and the 99th percentile until a call returns that finds the device idle.
    call: [f64; 2],
}

impl Resident {
    fn new(device: &Device, loaded: &Loaded, steps: usize) -> Result<Self, Failure> {
        let stream = device.stream()?;
        let ids = on_device(device, DType::I64, &ONE, &0i64.to_le_bytes())?;
        let bound = loaded.session()?.bind(&[ids.input()])?;
        let port = &loaded.signature().outputs[0];
        let mut logits = on_device(device, port.dtype, &bound.outputs()[0], &[])?;
        let session = loaded.session()?;
        queue(&session, &stream, &*ids, &mut *logits)?;
        let mut edges = Vec::new();
        for _ in 0..steps / EDGE {
            let milliseconds = stream.elapsed(|stream| {
                (0..EDGE).try_for_each(|_| queue(&session, stream, &*ids, &mut *logits).map(|_| ()))
            })?;
            edges.push(milliseconds * 1e3 / EDGE as f64);
        }
        let session = loaded.session()?;
        let mut calls = Vec::with_capacity(steps);
        for n in 0..=steps {
            let call = queue(&session, &stream, &*ids, &mut *logits)?;
            stream.synchronize()?;
            if n > 0 {
                calls.push(call);
            }
        }
        let (Some(&first), Some(&last)) = (edges.first(), edges.last()) else {
            return Err("too few steps".into());
        };
        let mean = edges.iter().sum::<f64>() / edges.len() as f64;
        Ok(Self { first, last, mean, call: quantiles(calls) })
    }
}

/// A step that is not waited for; microseconds until the call returned.
fn queue(
    session: &Loaded,
    stream: &Stream,
    ids: &dyn OnDevice,
    logits: &mut dyn OnDevice,
) -> aot_runtime::Result<f64> {
    let start = Instant::now();
    let inputs = [ids.input()];
    let sizes = session.bind(&inputs)?;
    session.run(&sizes, Some(stream), &inputs, &mut [logits.output()])?;
    Ok(microseconds(start))
}
