//! Plan → program: kernels chosen for every architecture, memory planned, everything numbered.

use super::LowerError;
use super::arena::plan_arena;
use super::plan::{Appended, BufferKind, Plan, Repetition};
use super::work::work;
use aot_ir::{Arch, DType, Dim, Scope, State, Symbols};
use aot_kernels::group::{Anchor, Group, OperandId};
use aot_kernels::{Arg, Kernel, KernelError, Size, loop_control};
use aot_runtime::artifact::WeightsLayout;
use aot_runtime::program::{
    AppendedState, Buffer, BufferId, HostStep, InPlace, KernelRef, Launch, LaunchArg, LaunchSize,
    Loop, MemoryPlan, Place, Port, Program, StatePort, Step, Target, Weight,
};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// Chooses the kernels of a group: variants in order, the last one for all sizes.
pub type Choose<'a> = &'a dyn Fn(&Group, &Symbols, Arch) -> Result<Vec<Kernel>, KernelError>;

/// A kernel to compile.
#[derive(Clone, Debug)]
pub struct KernelUnit {
    /// Identity of its text and options; [`KernelRef::key`].
    pub key: [u8; 32],
    /// The architecture that it was chosen for.
    pub arch: Arch,
    /// Compile it to PTX.
    pub ptx: bool,
    /// Text, options, launch.
    pub kernel: Kernel,
    /// Label of the first group that uses it.
    pub group: String,
    /// Names of the source model's nodes that it computes, over all groups.
    pub nodes: Vec<String>,
}

/// A program and the kernels that it needs.
#[derive(Clone, Debug)]
pub struct Assembled {
    /// The program.
    pub program: Program,
    /// Which buffers of the program are those of the plan; unused ones are none.
    pub buffers: HashMap<u32, BufferId>,
    /// Its distinct kernels per target.
    pub kernels: Vec<KernelUnit>,
}

/// Makes the program of a plan.
///
/// `targets` are architectures, each for cubins or (`true`) for PTX. `bounds` are the greatest atoms per symbol that
/// memory plans are made for, in the order in which they are tried; a plan for all sizes is added.
///
/// # Errors
/// When a kernel family refuses a group.
pub fn assemble(
    plan: &Plan<'_>,
    model: &str,
    targets: &[(Arch, bool)],
    bounds: &[Vec<i64>],
    choose: Choose<'_>,
) -> Result<Assembled, LowerError> {
    let graph = plan.graph;
    let (weights, weight_of) = weights(plan);
    let in_runs = run_buffers(plan);
    let places = plan.buffers.iter().enumerate().map(|(i, b)| match b.kind {
        BufferKind::Input(i) => Place::Input(i),
        BufferKind::Output(i) => Place::Output(i),
        BufferKind::State(n) => Place::Input(plan.appended[n as usize].state.input),
        BufferKind::Constant(c) => weight_of.get(&c).map_or(Place::Prepared, |w| Place::Weight(*w)),
        BufferKind::Prepared if in_runs.contains(&(i as u32)) => Place::Prepared,
        BufferKind::Prepared => Place::PrepareScratch,
        BufferKind::Arena => Place::Arena,
    });
    let used = used_buffers(plan);
    let mut numbers = HashMap::new();
    let mut buffers = Vec::new();
    for (i, place) in places.enumerate() {
        if used.contains(&(i as u32)) {
            numbers.insert(i as u32, BufferId(buffers.len() as u32));
            let b = &plan.buffers[i];
            buffers.push(Buffer { dtype: b.dtype, elements: b.elements.clone(), place });
        }
    }
    let groups: Vec<&Group> = launched(plan).collect();
    let mut assembly = Assembly {
        symbols: &graph.symbols,
        numbers,
        buffers,
        scratch: HashMap::new(),
        kernels: Vec::new(),
    };
    let mut out = Vec::new();
    for &(arch, ptx) in targets {
        let mut target = assembly.target(&groups, arch, ptx, choose)?;
        let sure = plan.readings.iter().any(|reading| reading.sure);
        if sure || plan.loops.iter().any(is_decided_by_data) {
            assembly.add_loop_control(&mut target);
        }
        out.push(target);
    }
    let all: Vec<i64> = graph.symbols.iter().map(|(_, s)| s.hi).collect();
    let plans = bounds.iter().chain([&all]).map(|bounds| {
        let arena = plan_arena(plan, bounds);
        let offsets = arena.offsets.iter().map(|(b, offset)| (assembly.numbers[b], *offset));
        MemoryPlan { bounds: arena.bounds.clone(), offsets: offsets.collect(), total: arena.total }
    });
    let plans = plans.collect();
    let numbered = |(to, from): (&u32, &u32)| InPlace {
        to: assembly.numbers[to],
        from: assembly.numbers[from],
    };
    let in_place = plan.in_place.iter().map(numbered).collect();
    let launch = |i: usize| Step::Launch(i as u32);
    let mut steps = stretch(plan, &assembly.numbers, 0..plan.steps.len(), 0);
    steps.extend(readings(plan, &assembly.numbers, plan.steps.len()));
    let port = |name: &str, v: aot_ir::ValueId| Port {
        name: name.to_owned(),
        dtype: graph[v].dtype,
        shape: graph[v].shape.clone(),
    };
    let program = Program {
        model: model.to_owned(),
        symbols: graph.symbols.clone(),
        guards: graph.guards.clone(),
        inputs: graph.inputs.iter().map(|v| port(&graph[*v].name, *v)).collect(),
        outputs: graph.outputs.iter().map(|(n, v)| port(n, *v)).collect(),
        state: graph.state.iter().map(|state| state_port(plan, *state)).collect(),
        weights,
        buffers: assembly.buffers,
        plans,
        in_place,
        prepare: (0..plan.prepare.len()).map(launch).collect(),
        steps,
        targets: out,
        origins: groups.iter().map(|g| g.origin.clone()).collect(),
        work: groups.iter().map(|g| work(g, &graph.symbols)).collect(),
    };
    Ok(Assembled { program, buffers: assembly.numbers, kernels: assembly.kernels })
}

/// What is said of a state, and whether runs append to it.
fn state_port(plan: &Plan<'_>, state: State) -> StatePort {
    let n = plan.appended.iter().position(|appended| appended.state == state);
    let appended = n.and_then(|n| {
        let Appended { axis, capacity, .. } = plan.appended[n];
        let buffer = plan.buffers.iter().find(|b| b.kind == BufferKind::State(n as u32))?;
        Some(AppendedState { axis: axis as u32, capacity: capacity as u64, dtype: buffer.dtype })
    });
    StatePort { input: state.input, output: state.output, appended }
}

/// The groups that are launches, in order.
pub fn launched<'p>(plan: &'p Plan<'_>) -> impl Iterator<Item = &'p Group> {
    plan.prepare.iter().chain(&plan.steps).filter(|group| !group.is_on_host())
}

/// The step of a group of the run.
fn step(plan: &Plan<'_>, numbers: &HashMap<u32, BufferId>, at: usize) -> Step {
    let group = &plan.steps[at];
    let buffer = |id: &OperandId| numbers[&group.operands[id.index()].buffer];
    match &group.anchor {
        Anchor::Host(on_host) => Step::Host(Box::new(HostStep {
            op: on_host.op.clone(),
            node: group.label.clone(),
            operands: on_host.operands.iter().map(buffer).collect(),
            result: buffer(&on_host.result),
        })),
        _ => {
            let before = plan.steps[..at].iter().filter(|group| !group.is_on_host());
            Step::Launch((plan.prepare.len() + before.count()) as u32)
        }
    }
}

/// The steps of a stretch of groups, within the loops before number `entered`. Sizes that are read before its first
/// group are not among them, where that is the first one of a loop that was entered.
fn stretch(
    plan: &Plan<'_>,
    numbers: &HashMap<u32, BufferId>,
    groups: Range<usize>,
    entered: usize,
) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut at = groups.start;
    while at < groups.end {
        if entered == 0 || at > groups.start {
            steps.extend(readings(plan, numbers, at));
        }
        let mut loops = plan.loops.iter().enumerate().skip(entered);
        let Some((n, each)) = loops.find(|(_, each)| each.steps.start == at) else {
            steps.push(step(plan, numbers, at));
            at += 1;
            continue;
        };
        steps.push(Step::Loop(Box::new(Loop {
            iteration: each.iteration,
            count: each.count.clone(),
            condition: each.condition.map(|buffer| numbers[&buffer]),
            turns: each.turns,
            guards: each.guards.clone(),
            body: stretch(plan, numbers, each.steps.clone(), n + 1),
        })));
        at = each.steps.end;
    }
    steps
}

/// The sizes that are read before a group.
fn readings(plan: &Plan<'_>, numbers: &HashMap<u32, BufferId>, before: usize) -> Vec<Step> {
    let here = plan.readings.iter().filter(|reading| reading.before == before);
    here.map(|reading| Step::ReadBack {
        symbol: reading.symbol,
        buffer: numbers[&reading.buffer],
        sure: reading.sure,
    })
    .collect()
}

/// Buffers that preparing or runs touch.
fn used_buffers(plan: &Plan<'_>) -> BTreeSet<u32> {
    &buffers_of(&plan.prepare) | &run_buffers(plan)
}

/// Buffers that runs touch. What is prepared and not among them lives while the model is prepared.
fn run_buffers(plan: &Plan<'_>) -> BTreeSet<u32> {
    let read_back = plan.readings.iter().map(|r| r.buffer);
    buffers_of(&plan.steps).into_iter().chain(read_back).collect()
}

/// Buffers that groups read or write.
fn buffers_of(groups: &[Group]) -> BTreeSet<u32> {
    groups.iter().flat_map(|g| &g.operands).map(|o| o.buffer).collect()
}

/// Constants that groups read, with their places in the weights file, and their numbers by constant.
fn weights(plan: &Plan<'_>) -> (Vec<Weight>, HashMap<u32, u32>) {
    let layout = WeightsLayout::new(plan.graph);
    let mut out = Vec::new();
    let mut numbers = HashMap::new();
    for buffer in used_buffers(plan) {
        let BufferKind::Constant(c) = plan.buffers[buffer as usize].kind else { continue };
        let id = aot_ir::ConstId(c);
        let constant = &plan.graph[id];
        numbers.insert(c, out.len() as u32);
        out.push(Weight {
            name: constant.name.clone(),
            dtype: constant.dtype,
            shape: constant.shape.iter().map(|d| *d as u64).collect(),
            offset: layout.offset(id).unwrap_or(0),
        });
    }
    (out, numbers)
}

/// Whether a loop ends when data says so, and what has to be checked is the same for every iteration.
fn is_decided_by_data(each: &Repetition) -> bool {
    let mut sides = each.guards.iter().flat_map(|guard| [&guard.lhs, &guard.rhs]);
    each.condition.is_some() && !sides.any(|dim| dim.mentions(each.iteration))
}

struct Assembly<'a> {
    symbols: &'a Symbols,
    numbers: HashMap<u32, BufferId>,
    buffers: Vec<Buffer>,
    /// Zeroed scratch by its size; launches are in one order, so one buffer serves all of a size.
    scratch: HashMap<Dim, BufferId>,
    kernels: Vec<KernelUnit>,
}

impl Assembly<'_> {
    fn target(
        &mut self,
        groups: &[&Group],
        arch: Arch,
        ptx: bool,
        choose: Choose<'_>,
    ) -> Result<Target, LowerError> {
        let mut kernels: Vec<KernelRef> = Vec::new();
        let mut units: HashMap<[u8; 32], usize> = HashMap::new();
        let mut launches = Vec::with_capacity(groups.len());
        for group in groups {
            let mut variants = Vec::new();
            for kernel in choose(group, self.symbols, arch)? {
                let key = identity(&kernel);
                let launch = self.launch(group, &kernel)?;
                let found = kernels.iter().position(|k| {
                    k.key == key && k.threads == kernel.threads && k.shared == kernel.shared
                });
                let index = found.unwrap_or_else(|| {
                    let (threads, shared) = (kernel.threads, kernel.shared);
                    kernels.push(KernelRef { entry: kernel.entry.clone(), key, threads, shared });
                    kernels.len() - 1
                });
                variants.push(Launch { kernel: index as u32, ..launch });
                let unit = *units.entry(key).or_insert_with(|| {
                    self.kernels.push(KernelUnit {
                        key,
                        arch,
                        ptx,
                        kernel,
                        group: group.label.clone(),
                        nodes: Vec::new(),
                    });
                    self.kernels.len() - 1
                });
                let nodes = &mut self.kernels[unit].nodes;
                nodes.extend(
                    group.origin.iter().filter(|n| !nodes.contains(n)).cloned().collect::<Vec<_>>(),
                );
            }
            launches.push(variants);
        }
        Ok(Target { arch, ptx, kernels, launches, loop_control: None })
    }

    /// Gives a target the kernel that decides whether loops go on.
    fn add_loop_control(&mut self, target: &mut Target) {
        let kernel = loop_control();
        let (key, arch, ptx) = (identity(&kernel), target.arch, target.ptx);
        target.loop_control = Some(target.kernels.len() as u32);
        let (threads, shared) = (kernel.threads, kernel.shared);
        target.kernels.push(KernelRef { entry: kernel.entry.clone(), key, threads, shared });
        let (group, nodes) = ("loops".to_owned(), Vec::new());
        self.kernels.push(KernelUnit { key, arch, ptx, kernel, group, nodes });
    }

    fn launch(&mut self, group: &Group, kernel: &Kernel) -> Result<Launch, LowerError> {
        let args = kernel.args.iter().map(|arg| {
            Ok(match arg {
                Arg::Pointer(operand) => {
                    let buffer = group.operands[operand.index()].buffer;
                    LaunchArg::Buffer(self.numbers[&buffer])
                }
                Arg::Scratch(bytes) => LaunchArg::Buffer(self.scratch(bytes)),
                Arg::Sizes => LaunchArg::Sizes,
                Arg::Progress => LaunchArg::Progress,
                Arg::Number => LaunchArg::Number,
                Arg::I64(number) => LaunchArg::I64(*number),
                Arg::I32(number) => LaunchArg::I32(*number),
                Arg::Early => LaunchArg::Early,
                other => {
                    let reason = format!("kernel argument {other:?} is unknown");
                    return Err(LowerError::internal(&group.label, &reason));
                }
            })
        });
        let args = args.collect::<Result<_, _>>()?;
        let sizes = kernel.sizes.iter().map(|size| {
            Ok(match size {
                Size::I64(dim) => LaunchSize::I64(dim.clone()),
                Size::I32(dim) => LaunchSize::I32(dim.clone()),
                Size::Early => LaunchSize::Early,
                other => {
                    let reason = format!("the kernel's size {other:?} is unknown");
                    return Err(LowerError::internal(&group.label, &reason));
                }
            })
        });
        let sizes = sizes.collect::<Result<_, _>>()?;
        let (when, blocks, early) = (kernel.when.clone(), kernel.blocks.clone(), kernel.early);
        Ok(Launch { when, kernel: 0, blocks, early, args, sizes })
    }

    fn scratch(&mut self, bytes: &Dim) -> BufferId {
        if let Some(&id) = self.scratch.get(bytes) {
            return id;
        }
        let most = Scope::new(self.symbols).interval(bytes).hi;
        let id = BufferId(self.buffers.len() as u32);
        let elements = Dim::from(most);
        self.buffers.push(Buffer { dtype: DType::U8, elements, place: Place::ZeroedScratch });
        self.scratch.insert(bytes.clone(), id);
        id
    }
}

fn identity(kernel: &Kernel) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(kernel.source.as_bytes());
    for option in &kernel.options {
        hasher.update(&[0]);
        hasher.update(option.as_bytes());
    }
    *hasher.finalize().as_bytes()
}
