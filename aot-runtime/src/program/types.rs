//! The program's data.

use aot_ir::dim::Cond;
use aot_ir::op::HostOp;
use aot_ir::{Arch, DType, Dim, Guard, SymId, Symbols};
use serde::{Deserialize, Serialize};

/// A compiled model, without its weights and kernel images. The default one does nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Program {
    /// The model's name in the manifest.
    pub model: String,
    /// Run-time sizes, bound from the shapes of inputs or by [`Step::ReadBack`].
    pub symbols: Symbols,
    /// Equalities to check as soon as the symbols that they mention are bound.
    pub guards: Vec<Guard>,
    /// Inputs in order.
    pub inputs: Vec<Port>,
    /// Outputs in order.
    pub outputs: Vec<Port>,
    /// Outputs that are inputs of the next run, in order of the inputs.
    pub state: Vec<StatePort>,
    /// Tensors of the weights file that are uploaded, in order.
    pub weights: Vec<Weight>,
    /// Everything that launches read and write.
    pub buffers: Vec<Buffer>,
    /// Where arena buffers lie. The first plan whose bounds hold the sizes is used; the last one
    /// holds all sizes in range.
    pub plans: Vec<MemoryPlan>,
    /// Arena buffers that plans may put where another one was.
    pub in_place: Vec<InPlace>,
    /// Done once, after the weights are uploaded.
    pub prepare: Vec<Step>,
    /// Done at every run.
    pub steps: Vec<Step>,
    /// Kernels and launches by architecture.
    pub targets: Vec<Target>,
    /// For every launch, names of the source model's nodes that it computes.
    pub origins: Vec<Vec<String>>,
    /// For every launch, what it has to do.
    pub work: Vec<LaunchWork>,
}

/// What a launch has to do at least.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchWork {
    /// Floating-point operations: two for each multiply-add of products, one for each element that is mapped, reduced
    /// or scanned.
    pub flop: Dim,
    /// Bytes that are read or written: each buffer once, and of one that is only sampled no more than is loaded.
    pub bytes: Dim,
    /// What computes it.
    pub unit: Unit,
}

/// What computes, where peaks differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Unit {
    /// No matrix unit.
    Plain,
    /// Matrix units on TF32.
    Tf32,
    /// Matrix units on 16 bits.
    Half,
}

/// A typed, named tensor that goes in or out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Port {
    /// The source model's name.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Extents, outermost first.
    pub shape: Vec<Dim>,
}

/// An output that is an input of the next run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatePort {
    /// Index into [`Program::inputs`].
    pub input: u32,
    /// Index into [`Program::outputs`].
    pub output: u32,
    /// Whether runs append to it.
    pub appended: Option<AppendedState>,
}

/// State that runs append to. No buffer is the output's: it lies where the input does, which begins with it. That place
/// is row-major, with an extent of `capacity` along `axis`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppendedState {
    /// The axis.
    pub axis: u32,
    /// The extent there.
    pub capacity: u64,
    /// The type of elements there.
    pub dtype: DType,
}

/// A tensor in the weights file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Weight {
    /// The source model's name.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Extents, outermost first.
    pub shape: Vec<u64>,
    /// Bytes from the beginning of the weights file's data; a multiple of [`WEIGHT_ALIGNMENT`](crate::artifact::WEIGHT_ALIGNMENT).
    pub offset: u64,
}

/// Memory that launches read or write.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Buffer {
    /// Element type.
    pub dtype: DType,
    /// How many elements it holds.
    pub elements: Dim,
    /// Where it lies.
    pub place: Place,
}

/// Where a buffer lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Place {
    /// The caller's n-th input, row-major.
    Input(u32),
    /// The caller's n-th output, row-major.
    Output(u32),
    /// The n-th uploaded weight.
    Weight(u32),
    /// Made by `prepare`, lives as long as the model. A constant extent.
    Prepared,
    /// Lives during a run, at the offset that the memory plan gives.
    Arena,
    /// Lives during `prepare` only. A constant extent.
    PrepareScratch,
    /// Zeroed when the model is loaded; each kernel that uses it leaves it zeroed.
    ZeroedScratch,
}

/// Index into [`Program::buffers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BufferId(pub u32);

/// Offsets of the arena's buffers for sizes up to a bound.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MemoryPlan {
    /// Greatest atom per symbol that this plan holds; of symbols that the run binds the greatest there is.
    pub bounds: Vec<i64>,
    /// Bytes from the arena's beginning, a multiple of 256, for every arena buffer.
    pub offsets: Vec<(BufferId, u64)>,
    /// Bytes of the arena.
    pub total: u64,
}

/// A buffer that may take the place of another one of the same type and length.
///
/// The first launch that touches the one is the last that touches the other, and reads every element before it writes
/// what lies there from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InPlace {
    /// The buffer that is made.
    pub to: BufferId,
    /// The one that is read.
    pub from: BufferId,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Step {
    /// Launch the n-th kernel launch of the target.
    Launch(u32),
    /// Copy a whole buffer to another of the same size.
    Copy {
        /// Source.
        from: BufferId,
        /// Destination.
        to: BufferId,
    },
    /// Wait for the steps before, and bind a symbol to the size that they computed. What mentions the symbol comes
    /// later. A size outside the symbol's range ends the run.
    ReadBack {
        /// The symbol, which is [bound by the run](aot_ir::BoundBy::Run).
        symbol: SymId,
        /// The size: one `I64`.
        buffer: BufferId,
        /// Whether it is in the symbol's range whatever the steps before compute.
        sure: bool,
    },
    /// Do steps again and again.
    Loop(Box<Loop>),
    /// Wait for the steps before, and let the host compute a buffer from others.
    Host(Box<HostStep>),
}

/// What [`Step::Host`] computes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStep {
    /// What it does.
    pub op: HostOp,
    /// Name of the source model's node.
    pub node: String,
    /// Operands, row-major.
    pub operands: Vec<BufferId>,
    /// The result, row-major.
    pub result: BufferId,
}

/// What [`Step::Loop`] repeats, and how often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loop {
    /// Counts iterations from 0; has a size within the steps only.
    pub iteration: SymId,
    /// The number of iterations; with a condition, the greatest.
    pub count: Dim,
    /// One `Bool`, for which every iteration waits: whether it is made.
    pub condition: Option<BufferId>,
    /// Gets the number of iterations that were made.
    pub turns: Option<SymId>,
    /// Equalities to check before every iteration.
    pub guards: Vec<Guard>,
    /// One iteration.
    #[serde(deserialize_with = "aot_ir::dim::nested_graph")]
    pub body: Vec<Step>,
}

impl Step {
    /// The symbols that count the iterations of loops in this step.
    pub fn counters(&self) -> Vec<SymId> {
        match self {
            Self::Loop(repeated) => {
                let inner = repeated.body.iter().flat_map(Self::counters);
                std::iter::once(repeated.iteration).chain(inner).collect()
            }
            Self::Launch(_) | Self::Copy { .. } | Self::ReadBack { .. } | Self::Host(_) => {
                Vec::new()
            }
        }
    }

    /// The launches of this step, those in loops once each.
    pub fn launches(&self) -> Vec<u32> {
        match self {
            Self::Launch(n) => vec![*n],
            Self::Loop(repeated) => repeated.body.iter().flat_map(Self::launches).collect(),
            Self::Copy { .. } | Self::ReadBack { .. } | Self::Host(_) => Vec::new(),
        }
    }

    /// What the host does in this step, in loops once each.
    pub fn on_host(&self) -> Vec<&HostOp> {
        match self {
            Self::Host(step) => vec![&step.op],
            Self::Loop(repeated) => repeated.body.iter().flat_map(Self::on_host).collect(),
            Self::Launch(_) | Self::Copy { .. } | Self::ReadBack { .. } => Vec::new(),
        }
    }

    /// Whether what it does follows from the sizes before it alone: nothing is read back.
    pub fn is_foreseen(&self) -> bool {
        match self {
            Self::Launch(_) | Self::Copy { .. } => true,
            Self::ReadBack { .. } | Self::Host(_) => false,
            Self::Loop(repeated) => {
                repeated.condition.is_none()
                    && repeated.turns.is_none()
                    && repeated.guards.is_empty()
                    && repeated.body.iter().all(Self::is_foreseen)
            }
        }
    }
}

/// Kernels and launches for one architecture.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Target {
    /// The architecture that the choice of kernels was made for.
    pub arch: Arch,
    /// The images are PTX, which the driver compiles for this architecture's GPUs or later ones.
    pub ptx: bool,
    /// Kernels.
    pub kernels: Vec<KernelRef>,
    /// What each launch step does: the first variant whose condition holds; the last one's always
    /// does. Indexed by [`Step::Launch`].
    pub launches: Vec<Vec<Launch>>,
    /// The last of the kernels, which launches do not name: it decides within a CUDA graph whether loops go on, and which
    /// sizes kernels have, where the program has loops with [conditions](Loop::condition) or [sure](Step::ReadBack)
    /// sizes. It can be loaded from CUDA 12.4 on.
    pub loop_control: Option<u32>,
}

/// A function in a kernel image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelRef {
    /// Name of the function.
    pub entry: String,
    /// blake3 of what the image was made from; images are found by it.
    pub key: [u8; 32],
    /// Threads per block.
    pub threads: u32,
    /// Bytes of dynamic shared memory.
    pub shared: u32,
}

/// A kernel launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// Sizes at which this is the choice.
    pub when: Cond,
    /// Index into [`Target::kernels`].
    pub kernel: u32,
    /// Blocks that have something to do. If this is not constant, any more may be launched: they leave at once.
    pub blocks: Dim,
    /// Whether it should begin before the launch before it is done, which that one lets it, and for which kernels of
    /// `sm_90` and later wait.
    pub early: bool,
    /// What the kernel takes by value: packed into one structure in this order, each naturally aligned.
    pub args: Vec<LaunchArg>,
    /// What the kernel reads from memory: packed alike, to a multiple of 16 bytes.
    pub sizes: Vec<LaunchSize>,
}

/// An argument of a launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum LaunchArg {
    /// The address of the launch's sizes, a multiple of 16.
    Sizes,
    /// A buffer's address.
    Buffer(BufferId),
    /// A 64-bit integer.
    I64(i64),
    /// A 32-bit integer.
    I32(i32),
    /// As [`LaunchSize::Early`].
    Early,
    /// The address of 64 bits of the host, where the kernel stores [`LaunchArg::Number`] once the launch before is done.
    Progress,
    /// 64 bits that tell the launch from others, not 0.
    Number,
}

/// A size that a kernel reads from memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum LaunchSize {
    /// A 64-bit integer.
    I64(Dim),
    /// A 32-bit integer.
    I32(Dim),
    /// A 32-bit integer: 1 where the launch begins [early](Launch::early), and 2 more where the launch after it does.
    Early,
}
