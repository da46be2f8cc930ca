//! Networks of a pack against the reference executor, or against what was recorded.

use aot_ir::exec::{Executor, Tensor};
use aot_ir::{Bytes, Graph};
use aot_runtime::artifact::{ModelFile, map, read_weights};
use aot_runtime::loaded::{Loaded, Parts, WeightsSource};
use aot_runtime::{Device, DriverCounts, driver_counts};
use aot_tests::compare::{distance, first_difference, row_distance};
use aot_tests::manifest::{Entry, Recorded, Value};
use aot_tests::sessions::{compare_session, given_inputs};
use std::path::Path;
use std::time::{Duration, Instant};

use super::Images;
use super::runs::{on_gpu, on_host, poisoned};

/// How often all sizes take turns: a model's first run is launched piece by piece, the later ones as
/// graphs, which are changed where sizes differ.
const ROUNDS: usize = 3;

/// How much is tried of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// All that a network can be asked for, at all sizes again and again.
    Whole,
    /// A run at each of its sizes.
    Once,
}

/// The arenas of contexts are as long as one of them is at most, each.
fn within_bounds(loaded: &Loaded) -> Result<(), String> {
    let memory = loaded.memory();
    let fits = memory.idle.arena <= memory.contexts as u64 * memory.context.arena;
    fits.then_some(()).ok_or_else(|| format!("it holds more than it says: {memory:?}"))
}

/// A network, its inputs and what it must give.
pub(super) struct Trials {
    pub(super) model: Bytes,
    pub(super) weights: Bytes,
    pub(super) graph: Graph,
    /// Inputs and expected outputs by the entry's sizes.
    pub(super) data: Vec<(Vec<Tensor>, Vec<Tensor>)>,
}

impl Trials {
    pub(super) fn of(root: &Path, entry: &Entry) -> Result<Self, String> {
        let text = |e: &dyn std::error::Error| e.to_string();
        let model = map(&root.join(&entry.model)).map_err(|e| text(&e))?;
        let weights = map(&root.join(&entry.weights)).map_err(|e| text(&e))?;
        let file = ModelFile::open(&model).map_err(|e| text(&e))?;
        let known = read_weights(&weights, &file.info().weights, "the weights");
        let graph = file.graph_with(&known.map_err(|e| text(&e))?).map_err(|e| text(&e))?;
        let mut data = Vec::new();
        if let Some(file) = &entry.recorded {
            let bytes = std::fs::read(root.join(file)).map_err(|e| format!("{file}: {e}"))?;
            let recorded: Recorded = postcard::from_bytes(&bytes).map_err(|e| text(&e))?;
            let tensors = |values: &[Value]| values.iter().map(Value::tensor).collect();
            let inputs: Result<Vec<Tensor>, _> = tensors(&recorded.inputs);
            let outputs: Result<Vec<Tensor>, _> = tensors(&recorded.outputs);
            data.push((inputs.map_err(|e| text(&e))?, outputs.map_err(|e| text(&e))?));
            return Ok(Self { model, weights, graph, data });
        }
        let reference = Executor::wide(&graph).map_err(|e| text(&e))?;
        for (trial, sizes) in entry.sizes.iter().enumerate() {
            let seed = trial as u64;
            let inputs = entry.inputs(&graph, sizes, seed);
            let expected = reference.run(&inputs).map_err(|e| text(&e))?;
            data.push((inputs, expected));
        }
        Ok(Self { model, weights, graph, data })
    }
}

/// The greatest distance over all trials and outputs.
pub(super) fn check(
    device: &Device,
    images: &Images,
    entry: &Entry,
    trials: &Trials,
    extent: Extent,
) -> Result<f64, String> {
    let rounds = if extent == Extent::Once { 1 } else { ROUNDS };
    let weights = WeightsSource::Bytes(&trials.weights);
    let images: &[&[u8]] = &[&images.bytes];
    let parts = Parts { model: &trials.model, images, weights, lines: &[] };
    let loaded = Loaded::load(device, &parts).map_err(|e| e.to_string())?;
    if entry.recorded.is_some() {
        return trials.data.iter().cycle().take(trials.data.len() * rounds).try_fold(
            0.0,
            |_, (inputs, expected)| {
                let found = poisoned(device, &loaded, inputs)?;
                same(&found, expected, &trials.graph)
            },
        );
    }
    let mut worst = 0.0f64;
    let all = entry.sizes.iter().zip(&trials.data);
    for (sizes, (inputs, expected)) in all.cycle().take(trials.data.len() * rounds) {
        let found = on_gpu(&loaded, inputs)?;
        for ((found, expected), (name, _)) in found.iter().zip(expected).zip(&trials.graph.outputs)
        {
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
    if extent == Extent::Once {
        return Ok(worst);
    }
    within_bounds(&loaded)?;
    if !trials.graph.state.is_empty() {
        let distance = session(&loaded, entry, &trials.graph)?;
        // Errors of the state are handed on, too.
        if distance.is_nan() || distance > entry.tolerance * 4.0 {
            return Err(format!("a session is off by {distance:.2e}"));
        }
        worst = worst.max(distance);
    }
    profile_is_whole(&loaded, trials)?;
    // Models that append to their state take memory for what they are given, and tasks can't be given it.
    if let Some((inputs, _)) = trials.data.first().filter(|_| trials.graph.state.is_empty()) {
        warm_runs_ask_for_nothing(&loaded, entry, trials)?;
        tasks_give_the_same(&loaded, inputs)?;
    }
    Ok(worst)
}

/// Networks of this family decide everything on the GPU.
const DECIDED: &str = "decided/";

/// After a warm-up, runs with inputs and outputs on the host need no memory and no graph, whatever their sizes; nor do
/// they wait on the way where the GPU can decide.
fn warm_runs_ask_for_nothing(
    loaded: &Loaded,
    entry: &Entry,
    trials: &Trials,
) -> Result<(), String> {
    loaded.warmup().map_err(|e| e.to_string())?;
    let before = driver_counts();
    for (inputs, _) in &trials.data {
        on_gpu(loaded, inputs)?;
    }
    let after = driver_counts();
    let may_wait = !entry.name.starts_with(DECIDED) || std::env::var_os("AOT_FORCE_HOST").is_some();
    let waits = if may_wait { before.waits } else { after.waits };
    let same = DriverCounts { waits, ..after } == before;
    same.then_some(()).ok_or_else(|| format!("warm runs made {before:?} into {after:?}"))
}

/// A profile has a piece with a time for all that was launched, and a name.
fn profile_is_whole(loaded: &Loaded, trials: &Trials) -> Result<(), String> {
    for (inputs, _) in &trials.data {
        let bytes: Vec<Vec<u8>> = inputs.iter().map(Tensor::to_bytes).collect();
        let inputs = on_host(inputs, &bytes)?;
        let begun = Instant::now();
        let profile = loaded.profile(&inputs).map_err(|e| e.to_string())?;
        let passed = begun.elapsed();
        let kernels = profile.spans.iter().filter(|span| span.what != "copy");
        let mut end = Duration::ZERO;
        for span in &profile.spans {
            if span.what.is_empty() || span.start < end {
                return Err(format!("{span:?} of a profile begins before {end:?}"));
            }
            end = span.start;
        }
        let busy: Duration = kernels.clone().map(|span| span.time).sum();
        if kernels.clone().any(|span| span.nodes.is_empty()) {
            return Err(format!("a kernel of a profile has no node: {profile}"));
        }
        if kernels.count() > 0 && (busy.is_zero() || busy > passed) {
            return Err(format!("kernels of a profile that took {passed:?} took {busy:?}"));
        }
        serde_json::from_str::<serde_json::Value>(&profile.trace()).map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// Runs that one thread begins together: more than there are contexts.
const TASKS: usize = 12;

/// Tasks get what a call gets, bit by bit.
fn tasks_give_the_same(loaded: &Loaded, inputs: &[Tensor]) -> Result<(), String> {
    let text = |e: aot_runtime::Error| e.to_string();
    let expected = on_gpu(loaded, inputs)?;
    let bytes: Vec<Vec<u8>> = inputs.iter().map(Tensor::to_bytes).collect();
    let refs = on_host(inputs, &bytes)?;
    let sizes = loaded.bind(&refs).map_err(text)?;
    let task = async |_| {
        let outputs = loaded.run_async(&sizes, &refs).await.map_err(text)?;
        for (n, (expected, port)) in expected.iter().zip(&loaded.signature().outputs).enumerate() {
            let (shape, found) = outputs.bytes(n).map_err(text)?;
            if shape != expected.shape() || found != expected.to_bytes() {
                return Err(format!("`{}` of a task differs from that of a call", port.name));
            }
        }
        Ok(())
    };
    let all = futures::future::join_all((0..TASKS).map(task));
    futures::executor::block_on(all).into_iter().collect()
}

/// Some runs of a session at the entry's first sizes.
fn session(loaded: &Loaded, entry: &Entry, graph: &Graph) -> Result<f64, String> {
    let runs: Vec<Vec<Tensor>> = (0..4)
        .map(|seed| {
            let all = entry.inputs(graph, &entry.sizes[0], 70 + seed);
            given_inputs(graph).into_iter().map(|i| all[i].clone()).collect()
        })
        .collect();
    compare_session(loaded, graph, &runs)
}

/// 0 where the outputs are those that were recorded.
fn same(found: &[Tensor], expected: &[Tensor], graph: &Graph) -> Result<f64, String> {
    for ((found, expected), (name, _)) in found.iter().zip(expected).zip(&graph.outputs) {
        if (found.dtype(), found.shape()) != (expected.dtype(), expected.shape()) {
            return Err(format!(
                "`{name}` is {} {:?}, expected {} {:?}",
                found.dtype(),
                found.shape(),
                expected.dtype(),
                expected.shape()
            ));
        }
        if let Some(at) = first_difference(found, expected) {
            let (a, b) = (found.to_f64()[at], expected.to_f64()[at]);
            return Err(format!("element {at} of `{name}` is {a}, expected {b}"));
        }
    }
    Ok(0.0)
}
