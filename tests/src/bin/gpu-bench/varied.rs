//! Sizes that differ from call to call, as a service has them: inputs and outputs are on the host.

use super::placed::Call;
use super::{Failure, Opened, fresh, quantiles, stages};
use aot_runtime::loaded::Loaded;
use aot_runtime::{Device, driver_counts};
use aot_tests::manifest::{Entry, Varied};
use aot_tests::net::Random;
use std::time::Instant;

/// Different sizes, and how often all of them are gone through after the first time.
const SIZES: usize = 200;
const ROUNDS: usize = 5;
/// Callers at once, and calls of each.
const THREADS: usize = 8;
const CALLS: usize = 400;

/// Prints what calls of random sizes take, the first of each size apart, and what the driver was asked for; then what
/// several callers at once get done. Which size is slowest is told by the device's own clock.
pub(super) fn bench(
    device: &Device,
    opened: &Opened,
    entry: &Entry,
    varied: &Varied,
) -> Result<(), Failure> {
    let loaded = &opened.loaded;
    let mut random = Random::new(11);
    let span = (varied.most - varied.least + 1) as u64;
    let drawn = (0..SIZES).map(|_| varied.least + (random.below(span) as i64));
    let calls: Vec<Call> = drawn.map(|size| Call::new(opened, entry, varied, size)).collect();
    let mut sinks = vec![Vec::new(); loaded.signature().outputs.len()];
    // The greatest size once for memory, and once more for the graph.
    let greatest = Call::new(opened, entry, varied, varied.most);
    for _ in 0..3 {
        greatest.run(loaded, &mut sinks)?;
    }
    let before = driver_counts();
    let first =
        calls.iter().map(|call| call.run(loaded, &mut sinks)).collect::<Result<Vec<_>, _>>()?;
    let mut steady = vec![Vec::new(); SIZES];
    for _ in 0..ROUNDS {
        for (call, times) in calls.iter().zip(&mut steady) {
            times.push(call.run(loaded, &mut sinks)?);
        }
    }
    let after = driver_counts();
    let all: Vec<f64> = steady.iter().flatten().copied().collect();
    let ratios =
        first.iter().zip(&steady).map(|(first, times)| first / quantiles(times.clone())[0]);
    let worst_first = ratios.fold(0.0, f64::max);
    let stages = stages::measure(device, loaded, &calls)?;
    let slowest = stages.iter().max_by(|a, b| a.device.total_cmp(&b.device)).ok_or("no sizes")?;
    let most = stages::measure(device, loaded, std::slice::from_ref(&greatest))?;
    let greatest_us = most.first().ok_or("no sizes")?.device;
    let ([p50_us, p99_us], [first_p50_us, first_p99_us]) = (quantiles(all), quantiles(first));
    println!(
        "{}",
        serde_json::json!({
            "name": entry.name, "precision": entry.precision, "varied": varied, "sizes": SIZES,
            "p50_us": p50_us, "p99_us": p99_us, "first_p50_us": first_p50_us,
            "first_p99_us": first_p99_us, "first_over_p50": worst_first,
            "slowest": slowest.size, "slowest_over_greatest": slowest.device / greatest_us,
            "greatest_device_us": greatest_us, "stages_us": stages::json(&stages),
            "fresh_us": fresh::measure(loaded, &calls)?,
            "graphs": after.graphs - before.graphs,
            "allocations": after.allocations - before.allocations,
        })
    );
    let [one, many] = [1, THREADS].map(|threads| throughput(loaded, &calls, threads));
    println!(
        "{}",
        serde_json::json!({
            "name": entry.name, "precision": entry.precision, "varied": varied, "threads": THREADS,
            "calls_per_s": many?, "calls_per_s_of_one": one?,
        })
    );
    Ok(())
}

/// Calls per second of so many threads that share a model, after a tenth of the calls.
fn throughput(loaded: &Loaded, calls: &[Call], threads: usize) -> Result<f64, Failure> {
    let run = |thread: usize, count: usize| -> aot_runtime::Result<()> {
        let mut sinks = vec![Vec::new(); loaded.signature().outputs.len()];
        for n in 0..count {
            calls[(n + thread * 25) % calls.len()].run(loaded, &mut sinks)?;
        }
        Ok(())
    };
    let all = |count: usize| -> Result<f64, Failure> {
        let start = Instant::now();
        let results: Vec<_> = std::thread::scope(|scope| {
            let handles: Vec<_> =
                (0..threads).map(|thread| scope.spawn(move || run(thread, count))).collect();
            handles.into_iter().map(|handle| handle.join()).collect()
        });
        for result in results {
            result.map_err(|_| "a caller panicked")??;
        }
        Ok((threads * count) as f64 / start.elapsed().as_secs_f64())
    };
    all(CALLS / 10)?;
    all(CALLS)
}
