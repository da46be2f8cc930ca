//! What can be said of a planned model, for `inspect` and `check`.

use std::collections::BTreeMap;

use aot_ir::{BoundBy, Dim, Scope, SymId, Symbols};
use aot_runtime::program::{Buffer, Place, Port, Program, StatePort, Step, Target};
use serde::Serialize;

use super::plan::Planned;
use super::work::Work;
use crate::lower::arena::{Peak, peak_of};
use crate::lower::plan::Plan;
use crate::lower::work;
use crate::manifest::{DimKind, Manifest, Model};

/// A model, planned. Sizes in bytes are those at the greatest sizes of all dims.
#[derive(Clone, Debug, Serialize)]
pub struct ModelSummary {
    /// The name in the manifest.
    pub name: String,
    /// The model file.
    pub source: String,
    /// What matrix units compute in.
    pub precision: &'static str,
    /// Inputs in order.
    pub inputs: Vec<PortSummary>,
    /// Outputs in order.
    pub outputs: Vec<PortSummary>,
    /// Outputs that are inputs of the next run.
    pub state: Vec<StateSummary>,
    /// Sizes chosen at run time.
    pub dims: Vec<DimSummary>,
    /// Nodes of the imported graph.
    pub nodes: usize,
    /// Launches of a run.
    pub launches: usize,
    /// Launches when the model is loaded.
    pub prepare_launches: usize,
    /// By architecture.
    pub targets: Vec<TargetSummary>,
    /// What launches read and write.
    pub buffers: Vec<BufferSummary>,
    /// Memory on the device.
    pub memory: MemorySummary,
    /// A run at the greatest sizes.
    pub work: Work,
    /// What is odd about the model.
    pub warnings: Vec<String>,
}

/// An input or output.
#[derive(Clone, Debug, Serialize)]
pub struct PortSummary {
    /// The name in the model.
    pub name: String,
    /// Element type.
    pub dtype: String,
    /// Extents as text.
    pub shape: Vec<String>,
}

/// An output that is an input of the next run.
#[derive(Clone, Debug, Serialize)]
pub struct StateSummary {
    /// The input.
    pub input: String,
    /// The output.
    pub output: String,
    /// Bytes that a session keeps of it at the greatest sizes.
    pub bytes: u64,
    /// Whether runs append to it in place.
    pub appended: bool,
}

/// A size chosen at run time.
#[derive(Clone, Debug, Serialize)]
pub struct DimSummary {
    /// Its name.
    pub name: String,
    /// Least size.
    pub min: i64,
    /// Greatest size.
    pub max: i64,
    /// Distance of sizes.
    pub step: i64,
    /// Bounds that memory is planned for.
    pub buckets: Vec<u64>,
    /// Where the manifest gives the range.
    pub line: Option<usize>,
    /// Whether the run computes it from data; else shapes of inputs give it.
    pub from_data: bool,
}

/// What runs on an architecture.
#[derive(Clone, Debug, Serialize)]
pub struct TargetSummary {
    /// `sm_90a`
    pub arch: String,
    /// Whether images are PTX.
    pub ptx: bool,
    /// Distinct kernels of a run, by the text they are compiled from.
    pub distinct_kernels: usize,
    /// The kernels, those of `prepare` included.
    pub kernels: Vec<KernelSummary>,
    /// Launches of a run in order.
    pub launches: Vec<LaunchSummary>,
}

/// A kernel.
#[derive(Clone, Debug, Serialize)]
pub struct KernelSummary {
    /// Its function; `inspect --kernel` shows the text by this name or the key.
    pub name: String,
    /// Identity of its text, in hexadecimal.
    pub key: String,
    /// The schedule.
    pub schedule: String,
    /// Threads per block.
    pub threads: u32,
    /// Bytes of dynamic shared memory per block.
    pub shared: u32,
    /// Registers per thread. This and the next three are of machine code that was built.
    pub registers: Option<u32>,
    /// Bytes of stack per thread: local arrays and spilled registers.
    pub stack: Option<u32>,
    /// Bytes of static shared memory per block.
    pub static_shared: Option<u32>,
    /// Bytes of machine code.
    pub code: Option<u32>,
    /// How many launches of a run use it.
    pub launches: usize,
    /// The first group it was made for.
    pub group: String,
    /// Nodes of the model that it computes.
    pub nodes: Vec<String>,
}

/// A launch.
#[derive(Clone, Debug, Serialize)]
pub struct LaunchSummary {
    /// What it computes.
    pub group: String,
    /// Its kernels: the first for the greatest sizes is the one that counts there.
    pub kernels: Vec<String>,
    /// Work at the greatest sizes.
    pub work: Work,
}

/// Memory that launches read or write.
#[derive(Clone, Debug, Serialize)]
pub struct BufferSummary {
    /// `input`, `output`, `weight`, `prepared`, `arena` or `scratch`.
    pub place: &'static str,
    /// Element type.
    pub dtype: String,
    /// Number of elements as text.
    pub elements: String,
    /// Bytes at the greatest sizes.
    pub bytes: u64,
}

/// Bytes on the device at the greatest sizes.
#[derive(Clone, Debug, Default, Serialize)]
pub struct MemorySummary {
    /// Weights as in the file.
    pub weights: u64,
    /// Weights in the form that kernels take them.
    pub prepared: u64,
    /// What a run needs besides inputs and outputs.
    pub arena: u64,
    /// Scratch of kernels.
    pub scratch: u64,
    /// What makes the arena as long as it is.
    pub peak: Option<PeakSummary>,
}

/// What is alive where the most bytes of the arena are.
#[derive(Clone, Debug, Serialize)]
pub struct PeakSummary {
    /// Bytes that are alive: no arena can be shorter.
    pub bytes: u64,
    /// The group that is computed then.
    pub group: String,
    /// The tensors that are alive, the greatest first.
    pub tensors: Vec<TensorSummary>,
}

/// A tensor in memory.
#[derive(Clone, Debug, Serialize)]
pub struct TensorSummary {
    /// The value of the model that it was made for.
    pub name: String,
    /// Element type.
    pub dtype: String,
    /// Number of elements as text.
    pub elements: String,
    /// Bytes at the greatest sizes.
    pub bytes: u64,
}

impl MemorySummary {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.weights + self.prepared + self.arena + self.scratch
    }
}

impl ModelSummary {
    /// What can be said of `planned`.
    pub fn new(
        manifest: &Manifest,
        model: &Model,
        planned: &Planned<'_>,
        warnings: Vec<String>,
    ) -> Self {
        let program = &planned.assembled.program;
        let symbols = &program.symbols;
        let largest: Vec<i64> = symbols.iter().map(|(_, symbol)| symbol.hi).collect();
        let groups: Vec<_> = planned.plan.prepare.iter().chain(&planned.plan.steps).collect();
        let works = groups.iter().map(|group| Work::of(&work(group, symbols), &largest));
        let works: Vec<Work> = works.collect();
        let prepare = planned.plan.prepare.len();
        let mut work = Work::default();
        for (step, each) in works[prepare..].iter().enumerate() {
            work += each.times(planned.plan.times(step, &largest));
        }
        let buffers: Vec<_> =
            program.buffers.iter().map(|buffer| buffer_summary(buffer, symbols)).collect();
        let sum = |place: &str| {
            buffers.iter().filter(|buffer| buffer.place == place).map(|buffer| buffer.bytes).sum()
        };
        let launched = groups.iter().zip(&works).filter(|(group, _)| !group.is_on_host());
        let (labels, works): (Vec<&str>, Vec<Work>) =
            launched.map(|(group, work)| (group.label.as_str(), *work)).unzip();
        Self {
            name: model.name.get_ref().clone(),
            source: model.source.get_ref().display().to_string(),
            precision: model.precision.name(),
            inputs: ports(&program.inputs, symbols),
            outputs: ports(&program.outputs, symbols),
            state: program.state.iter().map(|state| state_summary(*state, program)).collect(),
            dims: dims(manifest, model, program),
            nodes: planned.plan.graph.nodes().len(),
            launches: program.steps.iter().map(|step| step.launches().len()).sum(),
            prepare_launches: prepare,
            targets: program
                .targets
                .iter()
                .map(|target| target_summary(target, planned, &labels, &works))
                .collect(),
            memory: MemorySummary {
                weights: sum("weight"),
                prepared: sum("prepared"),
                arena: program.plans.last().map_or(0, |plan| plan.total),
                scratch: sum("scratch"),
                peak: peak_of(&planned.plan, &largest)
                    .map(|peak| peak_summary(&peak, &planned.plan)),
            },
            buffers,
            work,
            warnings,
        }
    }
}

fn ports(ports: &[Port], symbols: &Symbols) -> Vec<PortSummary> {
    let port = |port: &Port| PortSummary {
        name: port.name.clone(),
        dtype: port.dtype.to_string(),
        shape: port.shape.iter().map(|dim| symbols.show(dim)).collect(),
    };
    ports.iter().map(port).collect()
}

fn state_summary(state: StatePort, program: &Program) -> StateSummary {
    let (input, output) =
        (&program.inputs[state.input as usize], &program.outputs[state.output as usize]);
    let mut shape = output.shape.clone();
    let mut dtype = output.dtype;
    if let Some(appended) = state.appended {
        shape[appended.axis as usize] = (appended.capacity as i64).into();
        dtype = appended.dtype;
    }
    let elements = largest(&shape.iter().product(), &program.symbols);
    StateSummary {
        input: input.name.clone(),
        output: output.name.clone(),
        bytes: dtype.bytes_for(elements).unwrap_or(u64::MAX),
        appended: state.appended.is_some(),
    }
}

fn dims(manifest: &Manifest, model: &Model, program: &Program) -> Vec<DimSummary> {
    let counters: Vec<SymId> = program.steps.iter().flat_map(Step::counters).collect();
    let symbols = &program.symbols;
    symbols
        .iter()
        .filter(|(id, _)| !counters.contains(id))
        .map(|(_, symbol)| {
            let spec = model.dim(&symbol.name);
            let buckets = match spec.map(|spec| &spec.kind) {
                Some(DimKind::Range { buckets, .. }) => buckets.clone(),
                _ => Vec::new(),
            };
            DimSummary {
                name: symbol.name.clone(),
                min: symbol.min_size(),
                max: symbol.max_size(),
                step: symbol.scale,
                buckets,
                line: spec.map(|spec| manifest.line_of(&spec.span)),
                from_data: symbol.bound_by == BoundBy::Run,
            }
        })
        .collect()
}

fn largest(dim: &Dim, symbols: &Symbols) -> u64 {
    u64::try_from(Scope::new(symbols).interval(dim).hi).unwrap_or(0)
}

fn buffer_summary(buffer: &Buffer, symbols: &Symbols) -> BufferSummary {
    let place = match buffer.place {
        Place::Input(_) => "input",
        Place::Output(_) => "output",
        Place::Weight(_) => "weight",
        Place::Prepared => "prepared",
        Place::Arena => "arena",
        Place::PrepareScratch | Place::ZeroedScratch => "scratch",
        _ => "other",
    };
    let elements = largest(&buffer.elements, symbols);
    BufferSummary {
        place,
        dtype: buffer.dtype.to_string(),
        elements: symbols.show(&buffer.elements),
        bytes: buffer.dtype.bytes_for(elements).unwrap_or(u64::MAX),
    }
}

fn peak_summary(peak: &Peak, plan: &Plan<'_>) -> PeakSummary {
    let tensor = |(buffer, bytes): &(u32, u64)| {
        let buffer = &plan.buffers[*buffer as usize];
        TensorSummary {
            name: buffer.name.clone(),
            dtype: buffer.dtype.to_string(),
            elements: plan.graph.symbols.show(&buffer.elements),
            bytes: *bytes,
        }
    };
    PeakSummary {
        bytes: peak.bytes,
        group: plan.steps.get(peak.step).map(|group| group.label.clone()).unwrap_or_default(),
        tensors: peak.buffers.iter().map(tensor).collect(),
    }
}

fn target_summary(
    target: &Target,
    planned: &Planned<'_>,
    labels: &[&str],
    works: &[Work],
) -> TargetSummary {
    let program: &Program = &planned.assembled.program;
    let mut uses: BTreeMap<u32, usize> = BTreeMap::new();
    let mut launches = Vec::new();
    for index in program.steps.iter().flat_map(Step::launches) {
        let index = index as usize;
        let Some(variants) = target.launches.get(index) else { continue };
        let mut names = Vec::new();
        for (i, variant) in variants.iter().enumerate() {
            // Variants may differ in their grids alone.
            if variants[..i].iter().all(|before| before.kernel != variant.kernel) {
                *uses.entry(variant.kernel).or_default() += 1;
                names.extend(target.kernels.get(variant.kernel as usize).map(|k| k.entry.clone()));
            }
        }
        let work = works.get(index).copied().unwrap_or_default();
        let group = labels.get(index).copied().unwrap_or_default().to_owned();
        launches.push(LaunchSummary { group, kernels: names, work });
    }
    let mut keys: Vec<_> = uses
        .keys()
        .filter_map(|kernel| target.kernels.get(*kernel as usize))
        .map(|k| k.key)
        .collect();
    keys.sort_unstable();
    keys.dedup();
    let kernels = target.kernels.iter().enumerate().map(|(index, kernel)| {
        let units = &planned.assembled.kernels;
        let unit = units.iter().find(|unit| {
            unit.key == kernel.key && unit.arch == target.arch && unit.ptx == target.ptx
        });
        KernelSummary {
            name: kernel.entry.clone(),
            key: hex(&kernel.key),
            schedule: unit.map(|unit| unit.kernel.schedule.clone()).unwrap_or_default(),
            threads: kernel.threads,
            shared: kernel.shared,
            registers: None,
            stack: None,
            static_shared: None,
            code: None,
            launches: uses.get(&(index as u32)).copied().unwrap_or(0),
            group: unit.map(|unit| unit.group.clone()).unwrap_or_default(),
            nodes: unit.map(|unit| unit.nodes.clone()).unwrap_or_default(),
        }
    });
    TargetSummary {
        arch: target.arch.to_string(),
        ptx: target.ptx,
        distinct_kernels: keys.len(),
        kernels: kernels.collect(),
        launches,
    }
}

/// The first bytes of a key, enough to tell kernels apart.
pub(super) fn hex(key: &[u8; 32]) -> String {
    key[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}
