//! One size again and again: the device's time, and the host's.

use super::{Failure, Opened, microseconds, quantiles};
use aot_runtime::{Device, EmptyGraph, Stream};
use aot_tests::device::on_device;
use aot_tests::manifest::Entry;
use std::time::Instant;

const WARM_UP: usize = 20;
const RUNS: std::ops::RangeInclusive<usize> = 30..=200;
/// Calls whose time on the host is taken, and how many of the model whose calls are studied.
const CALLS: usize = 500;
const MANY_CALLS: usize = 100_000;
/// What a size's runs should take at most, in milliseconds.
const SPAN: f64 = 1500.0;

/// Microseconds that the host takes for launches of an empty graph, waiting after each.
fn empty(device: &Device, stream: &Stream, count: usize) -> Result<Vec<f64>, Failure> {
    let graph = EmptyGraph::new(device)?;
    let mut times = Vec::with_capacity(count);
    for n in 0..WARM_UP + count {
        let start = Instant::now();
        graph.launch(stream)?;
        let time = microseconds(start);
        stream.synchronize()?;
        if n >= WARM_UP {
            times.push(time);
        }
    }
    Ok(times)
}

/// Prints a line per size. Inputs and outputs are on the device. What calls take on the host is told with and without
/// the median of launching an empty graph.
pub(super) fn bench(device: &Device, opened: &Opened, entry: &Entry) -> Result<(), Failure> {
    let Opened { loaded, graph, load_ms } = opened;
    for (n, sizes) in entry.sizes.iter().enumerate() {
        let inputs = entry.inputs(graph, sizes, 5);
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
        let times = (0..runs).map(|_| once()).collect::<Result<Vec<f64>, _>>()?;
        let start = Instant::now();
        for _ in 0..runs {
            once()?;
        }
        let wall_ms = start.elapsed().as_secs_f64() * 1e3 / runs as f64;
        let calls = if n == 0 && entry.varied.is_some() { MANY_CALLS } else { CALLS };
        let [empty_us, empty_p99_us] = quantiles(empty(device, &stream, calls)?);
        let mut hosts = Vec::with_capacity(calls);
        for _ in 0..calls {
            let mut outputs: Vec<_> = results.iter_mut().map(|t| t.output()).collect();
            let start = Instant::now();
            loaded.run(&bound, Some(&stream), &refs, &mut outputs)?;
            hosts.push(microseconds(start));
            stream.synchronize()?;
        }
        let ([median_ms, p99_ms], [call_us, call_p99_us]) = (quantiles(times), quantiles(hosts));
        println!(
            "{}",
            serde_json::json!({
                "name": entry.name, "precision": entry.precision, "sizes": sizes,
                "load_ms": load_ms, "first_ms": first_ms, "runs": runs, "median_ms": median_ms,
                "p99_ms": p99_ms, "wall_ms": wall_ms, "calls": calls, "call_us": call_us,
                "call_p99_us": call_p99_us, "empty_us": empty_us, "empty_p99_us": empty_p99_us,
                "call_less_empty_us": call_us - empty_us,
                "call_p99_less_empty_us": call_p99_us - empty_us,
            })
        );
    }
    Ok(())
}
