//! What becomes of a GPU on which a kernel does what it must not do.
//!
//! Every trial is a process of its own: this executable, which runs a network whose last launch is given addresses that
//! are nobody's, at its second sizes alone.

use aot_ir::Dim;
use aot_ir::dim::{Cmp, Cond};
use aot_runtime::artifact::{ModelFile, WeightsLayout, write_model};
use aot_runtime::loaded::{Loaded, Parts, WeightsSource};
use aot_runtime::program::{Launch, LaunchArg, Program, Step};
use aot_runtime::{Device, DeviceTensor, Error, Fault, InputRef, OutputRef};
use aot_tests::device::{OnDevice, on_device};
use aot_tests::manifest::{Entry, Pack};
use std::cmp::Reverse;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Images;
use super::devices::{call, other_device};
use super::trials::Trials;

/// The first argument after the pack that makes this executable such a process; a mode and an entry's number follow.
pub(super) const ARGUMENT: &str = "--fault";
/// In which run the fault is, and who finds it.
const MODES: [&str; 5] = ["first", "graph", "task", "later", "blocking"];
/// How long a trial may take, and how long calls that a lost device refuses.
const PATIENCE: Duration = Duration::from_secs(60);
const AT_ONCE: Duration = Duration::from_millis(100);
/// An address that is never mapped.
const NOWHERE: i64 = 64;
/// Bytes of a tensor whose memory must come back, and how much less may do so of all.
const LARGE: usize = 1 << 30;
const SLACK: u64 = 256 << 20;
/// Launches of an execution context that are named, at most: the one that began last, and the one after it.
const SUSPECTS: usize = 2;
/// The name of the network that is damaged.
const DAMAGED: &str = "damaged";

type Outcome<T> = Result<T, String>;

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// What came of each trial, by name; none if the pack has no network for it.
pub(super) fn all(root: &Path, pack: &Pack) -> Vec<(String, Outcome<()>)> {
    let small = pack.entries.iter().enumerate().filter(|(_, entry)| !entry.bench);
    let launches = small.map(|(n, entry)| (launches(root, entry).unwrap_or(0), n, entry));
    let Some((_, number, entry)) = launches.filter(|l| l.0 > 1).max_by_key(|l| (l.0, Reverse(l.1)))
    else {
        println!("left out: faults, for no network here has two sizes and launches alone");
        return Vec::new();
    };
    let trial = |mode: &&str| {
        let name = format!("fault/{mode} with {} in {}", entry.name, entry.precision);
        (name, in_a_process(root, mode, number))
    };
    MODES.iter().map(trial).collect()
}

/// How many launches an entry is; 0 if it has not what [`child`] needs.
fn launches(root: &Path, entry: &Entry) -> Outcome<usize> {
    if entry.recorded.is_some() || differing(entry).is_none() {
        return Ok(0);
    }
    let model = std::fs::read(root.join(&entry.model)).map_err(text)?;
    let program = ModelFile::open(&model).and_then(|file| file.program()).map_err(text)?;
    let fits = program.steps.iter().all(|step| matches!(step, Step::Launch(_)));
    Ok(if fits && program.state.is_empty() { program.steps.len() } else { 0 })
}

/// The dim by which the entry's second sizes are told from its first, and its size there.
fn differing(entry: &Entry) -> Option<(&str, i64)> {
    let [first, second, ..] = entry.sizes.as_slice() else { return None };
    let some = second.iter().all(|(_, size)| *size > 0);
    let differs = |(a, b): &(&(String, i64), &(String, i64))| a.0 == b.0 && a.1 != b.1;
    let found = first.iter().zip(second).find(differs).filter(|_| some);
    found.map(|(_, (name, size))| (name.as_str(), *size))
}

fn in_a_process(root: &Path, mode: &str, entry: usize) -> Outcome<()> {
    let mut command = Command::new(std::env::current_exe().map_err(text)?);
    command.arg(root).args([ARGUMENT, mode, &entry.to_string()]);
    command.env("AOT_LAUNCH_BLOCKING", if mode == "blocking" { "1" } else { "0" });
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(text)?;
    let start = Instant::now();
    let ended = loop {
        match child.try_wait().map_err(text)? {
            Some(status) => break Some(status),
            None if start.elapsed() > PATIENCE => {
                child.kill().map_err(text)?;
                child.wait().map_err(text)?;
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let (mut said, mut errors) = (String::new(), String::new());
    child.stdout.take().map(|mut out| out.read_to_string(&mut said));
    child.stderr.take().map(|mut out| out.read_to_string(&mut errors));
    said.lines().for_each(|line| println!("  fault/{mode}: {line}"));
    match ended {
        None => Err(format!("it hangs: {errors}")),
        Some(status) if !status.success() || !errors.is_empty() => {
            Err(format!("{status}: {}", errors.trim()))
        }
        Some(_) => Ok(()),
    }
}

/// A network as the pack has it or damaged, and what it takes and gives.
struct Network<'a> {
    trials: &'a Trials,
    images: &'a [u8],
}

impl Network<'_> {
    fn load(&self, device: &Device, model: &[u8]) -> aot_runtime::Result<Loaded> {
        let weights = WeightsSource::Bytes(&self.trials.weights);
        Loaded::load(device, &Parts { model, images: &[self.images], weights, lines: &[] })
    }

    fn whole(&self, device: &Device) -> aot_runtime::Result<Loaded> {
        self.load(device, &self.trials.model)
    }

    /// Outputs of a run with the inputs of the n-th sizes; a task's where that is asked for.
    fn run(&self, loaded: &Loaded, n: usize, task: bool) -> aot_runtime::Result<Vec<Vec<u8>>> {
        let tensors = &self.trials.data[n].0;
        let bytes: Vec<Vec<u8>> = tensors.iter().map(|t| t.to_bytes()).collect();
        let inputs = tensors.iter().zip(&bytes);
        let inputs = inputs.map(|(t, bytes)| InputRef::host(t.dtype(), t.shape(), bytes));
        let inputs = inputs.collect::<aot_runtime::Result<Vec<_>>>()?;
        let sizes = loaded.bind(&inputs)?;
        let ports = &loaded.signature().outputs;
        if task {
            let outputs = futures::executor::block_on(loaded.run_async(&sizes, &inputs))?;
            return (0..ports.len()).map(|n| Ok(outputs.bytes(n)?.1.to_vec())).collect();
        }
        let mut sinks = vec![Vec::new(); ports.len()];
        let outputs = ports.iter().zip(sizes.outputs()).zip(&mut sinks);
        let outputs =
            outputs.map(|((port, shape), sink)| OutputRef::bytes(port.dtype, shape, sink));
        loaded.run(&sizes, None, &inputs, &mut outputs.collect::<Vec<_>>())?;
        Ok(sinks)
    }

    /// A run that nobody waits for; its inputs and outputs are given back.
    fn launch(&self, device: &Device, loaded: &Loaded, n: usize) -> aot_runtime::Result<Tensors> {
        let upload =
            |t: &aot_ir::exec::Tensor| on_device(device, t.dtype(), t.shape(), &t.to_bytes());
        let tensors = self.trials.data[n].0.iter().map(upload);
        let mut tensors = tensors.collect::<aot_runtime::Result<Tensors>>()?;
        let refs: Vec<InputRef<'_>> = tensors.iter().map(|t| t.input()).collect();
        let sizes = loaded.bind(&refs)?;
        let ports = loaded.signature().outputs.iter().zip(sizes.outputs());
        let outputs = ports.map(|(port, shape)| on_device(device, port.dtype, shape, &[]));
        let mut outputs = outputs.collect::<aot_runtime::Result<Tensors>>()?;
        let mut sinks: Vec<OutputRef<'_>> = outputs.iter_mut().map(|t| t.output()).collect();
        loaded.run(&sizes, None, &refs, &mut sinks)?;
        drop((sinks, refs));
        tensors.append(&mut outputs);
        Ok(tensors)
    }
}

type Tensors = Vec<Box<dyn OnDevice>>;

/// The network whose last launch faults at the entry's second sizes, and nodes of that launch.
fn damaged(trials: &Trials, entry: &Entry) -> Outcome<(Vec<u8>, Vec<String>)> {
    let file = ModelFile::open(&trials.model).map_err(text)?;
    let mut program: Program = file.program().map_err(text)?;
    DAMAGED.clone_into(&mut program.model);
    let (dim, size) = differing(entry).ok_or("one size")?;
    let symbol = program.symbols.find(dim).ok_or("no such dim")?;
    let there = Cond::Cmp(Cmp::Eq, program.symbols.dim(symbol), Dim::from(size));
    let Some(Step::Launch(last)) = program.steps.last() else { return Err("no launch".to_owned()) };
    let last = *last as usize;
    for target in &mut program.targets {
        let whole = std::mem::take(&mut target.launches[last]);
        let wrong = whole.iter().cloned().map(|launch| {
            let when = launch.when.and(there.clone());
            let args = launch.args.into_iter().map(|arg| match arg {
                LaunchArg::Buffer(_) => LaunchArg::I64(NOWHERE),
                arg => arg,
            });
            Launch { when, args: args.collect(), ..launch }
        });
        target.launches[last] = wrong.chain(whole.clone()).collect();
    }
    program.check()?;
    let layout = WeightsLayout::new(&trials.graph);
    let model = write_model(&program, &trials.graph, &layout, &file.info().weights);
    Ok((model.map_err(text)?, program.origins[last].clone()))
}

/// Bytes that are free on a device.
fn free(device: &Device) -> Outcome<u64> {
    match DeviceTensor::<u8, 1>::uninit(device, [1 << 44]) {
        Err(Error::OutOfMemory { free, .. }) => Ok(free),
        Err(error) => Err(text(error)),
        Ok(_) => Err("there is no end of memory".to_owned()),
    }
}

/// The fault that a call must find.
fn found<T>(call: aot_runtime::Result<T>, what: &str) -> Outcome<Arc<Fault>> {
    match call {
        Err(Error::Fault(fault)) => Ok(fault),
        Err(error) => Err(format!("{what} says {error}")),
        Ok(_) => Err(format!("{what} knows of no fault")),
    }
}

fn equal(found: &[Vec<u8>], expected: &[Vec<u8>], what: &str) -> Outcome<()> {
    (found == expected).then_some(()).ok_or_else(|| format!("{what} gives something else"))
}

/// One trial.
pub(super) fn child(root: &Path, pack: &Pack, images: &Images, args: &[String]) -> Outcome<()> {
    let [mode, number] = args else { return Err("a mode and a number".to_owned()) };
    let entry = number.parse().ok().and_then(|n: usize| pack.entries.get(n)).ok_or("no entry")?;
    let trials = Trials::of(root, entry)?;
    let network = Network { trials: &trials, images: &images.bytes };
    let (model, nodes) = damaged(&trials, entry)?;

    let device = Device::cuda(0).map_err(text)?;
    let whole = network.whole(&device).map_err(text)?;
    let expected = [0, 1].map(|n| network.run(&whole, n, false).map_err(text));
    let [first, second] = expected;
    let (first, second) = (first?, second?);
    let before = free(&device)?;
    let large = DeviceTensor::<u8, 1>::uninit(&device, [LARGE]).map_err(text)?;
    let stream = device.stream().map_err(text)?;
    let wrong = network.load(&device, &model).map_err(text)?;
    let tensor = trials.data[0].0.first().ok_or("no input")?;
    let (dtype, shape, bytes) = (tensor.dtype(), tensor.shape(), tensor.to_bytes());
    let tensor = on_device(&device, dtype, shape, &bytes).map_err(text)?;

    let mut tensors = Tensors::new();
    let fault = match mode.as_str() {
        "first" | "blocking" => found(network.run(&wrong, 1, false), "the run")?,
        "graph" => {
            for _ in 0..3 {
                equal(&network.run(&wrong, 0, false).map_err(text)?, &first, "a run before")?;
            }
            found(network.run(&wrong, 1, false), "the run")?
        }
        "task" => found(network.run(&wrong, 1, true), "the task")?,
        "later" => match network.launch(&device, &wrong, 1) {
            Ok(some) => {
                tensors = some;
                found(network.run(&whole, 0, false), "another model's run")?
            }
            failed => found(failed, "the launch")?,
        },
        _ => return Err(format!("mode {mode}")),
    };
    println!("{fault}");
    let at_fault = |l: &&aot_runtime::Launched| l.model == DAMAGED && l.nodes == nodes;
    if fault.launches.iter().find(at_fault).is_none() {
        return Err(format!("the launch at fault is not among {:?}", fault.launches));
    }
    if mode == "blocking" && fault.launches.len() != 1 {
        return Err("it is not told which launch is at fault".to_owned());
    }
    for (damaged, what) in [(true, "the damaged network"), (false, "the other one")] {
        let of = |l: &&aot_runtime::Launched| (l.model == DAMAGED) == damaged;
        match fault.launches.iter().filter(of).count() {
            ..=SUSPECTS => {}
            n => return Err(format!("{n} launches of {what} are suspected")),
        }
    }
    if mode != "later" && fault.launches.iter().any(|l| l.model != DAMAGED) {
        return Err("a model is suspected that was not running".to_owned());
    }

    let start = Instant::now();
    let refusals = [
        (found(network.run(&wrong, 0, false), "the model"), "the model"),
        (found(network.run(&whole, 0, false), "another model"), "another model"),
        (found(network.run(&whole, 0, true), "a task"), "a task"),
        (found(network.whole(&device), "loading"), "loading"),
        (found(device.synchronize(), "the device"), "the device"),
        (found(device.stream(), "a new stream"), "a new stream"),
        (found(stream.synchronize(), "a stream"), "a stream"),
        (found(tensor.bytes(), "a tensor"), "a tensor"),
        (found(on_device(&device, dtype, shape, &bytes), "a new tensor"), "a new tensor"),
    ];
    let took = start.elapsed();
    for (refusal, what) in refusals {
        if *refusal? != *fault {
            return Err(format!("{what} tells of another fault"));
        }
    }
    if took > AT_ONCE {
        return Err(format!("to refuse calls takes {took:?}"));
    }

    match Device::cuda(0) {
        Err(error) => println!("beside the lost device: {error}"),
        Ok(fresh) => {
            let loaded = network.whole(&fresh).map_err(|e| format!("beside: {e}"))?;
            equal(&network.run(&loaded, 0, false).map_err(text)?, &first, "a device beside")?;
            let tensors = &trials.data[0].0;
            let refused = call(&loaded, tensors, Some(&*tensor), None, None)?;
            other_device(refused, &loaded.signature().inputs[0].name)?;
            println!("beside the lost device, a fresh one gives the same");
        }
    }
    drop((wrong, whole, tensor, tensors, stream, large, device));

    let fresh = match Device::cuda(0) {
        // The driver itself refuses: to it, the process is lost.
        Err(Error::Driver { call: "cuCtxCreate", name, .. }) if name == fault.reason => {
            println!("the driver gives this process no other context");
            return Ok(());
        }
        fresh => fresh.map_err(|e| format!("there is no fresh device: {e}"))?,
    };
    let loaded = network.whole(&fresh).map_err(|e| format!("the fresh device: {e}"))?;
    for (n, expected) in [&first, &second, &first].into_iter().enumerate() {
        let found = network.run(&loaded, n % 2, false).map_err(text)?;
        equal(&found, expected, "the fresh device")?;
    }
    let after = free(&fresh)?;
    println!("{} MiB were free before, {} are free now", before >> 20, after >> 20);
    match before.saturating_sub(after) > SLACK {
        true => Err(format!("{} MiB stay lost", (before - after) >> 20)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aot_ir::Arch;
    use aot_kernels::kernels_for;
    use cargo_aot::lower::program::assemble;
    use cargo_aot::lower::{LowerOptions, Precision, lower};

    #[test]
    fn a_damaged_network_is_whole_at_its_first_sizes() {
        let all = aot_tests::cases::all();
        let case = all.iter().find(|c| c.name == "an_encoder_layer_is_seven_groups/0");
        let case = case.expect("the network");
        let options = LowerOptions { precision: Precision::F32, precision_for: Vec::new() };
        let plan = lower(&case.graph, &options).unwrap();
        let targets = [(Arch::of_capability(90), false)];
        let whole = assemble(&plan, &case.name, &targets, &[], &kernels_for).unwrap().program;
        let layout = WeightsLayout::new(&case.graph);
        let (weights, id) = layout.write(&case.graph);
        let model = write_model(&whole, &case.graph, &layout, &id).unwrap();
        let (graph, weights) = (case.graph.clone(), weights.into());
        let trials = Trials { model: model.into(), weights, graph, data: Vec::new() };
        let entry = Entry {
            name: case.name.clone(),
            precision: "f32".to_owned(),
            sizes: case.sizes.clone(),
            ..Entry::default()
        };
        assert_eq!(differing(&entry), Some(("batch", 2)));
        let (model, nodes) = damaged(&trials, &entry).unwrap();
        let program = ModelFile::open(&model).and_then(|file| file.program()).unwrap();
        assert_eq!((program.model.as_str(), &nodes), (DAMAGED, whole.origins.last().unwrap()));
        let chosen = |program: &Program, batch: i64| {
            let mut atoms: Vec<i64> = program.symbols.iter().map(|(_, s)| s.lo).collect();
            atoms[program.symbols.find("batch").unwrap().0 as usize] = batch;
            let launches = program.targets[0].launches.last().unwrap();
            launches.iter().find(|launch| launch.when.eval(&atoms[..]).unwrap()).cloned().unwrap()
        };
        assert_eq!(chosen(&program, 1), chosen(&whole, 1));
        let (wrong, right) = (chosen(&program, 2), chosen(&whole, 2));
        assert_eq!((wrong.kernel, &wrong.sizes), (right.kernel, &right.sizes));
        let buffers = |launch: &Launch| {
            launch.args.iter().filter(|arg| matches!(arg, LaunchArg::Buffer(_))).count()
        };
        assert!(buffers(&right) > 0 && buffers(&wrong) == 0);
        assert_eq!(wrong.args.len(), right.args.len());
    }
}
