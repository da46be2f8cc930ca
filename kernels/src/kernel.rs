//! What a kernel family gives for a group.

use crate::group::OperandId;
use aot_ir::Dim;
use aot_ir::dim::Cond;

/// One argument of a kernel.
///
/// A kernel takes one structure by value: first the address of its sizes if it has any, then that of progress, then the
/// pointers in order, the launch's number, the 64-bit integers and the 32-bit ones, each naturally aligned. All of it
/// stays from run to run, as long as buffers stay where they are, except [`Arg::Early`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Arg {
    /// Address of [`Kernel::sizes`], a multiple of 16.
    Sizes,
    /// Address of 64 bits where the kernel stores [`Arg::Number`] once the launch before is done, unless no block has
    /// anything to do.
    Progress,
    /// Address of an operand's first element.
    Pointer(OperandId),
    /// Address of a zeroed scratch area of this many bytes that the kernel leaves zeroed
    /// (counters, split sums).
    Scratch(Dim),
    /// A number of 64 bits that tells this launch from others.
    Number,
    /// A 64-bit integer.
    I64(i64),
    /// A 32-bit integer.
    I32(i32),
    /// As [`Size::Early`]; of kernels that read nothing from memory.
    Early,
}

/// One size that a kernel reads from memory: first come the 64-bit ones, then the 32-bit ones, and what fills up a
/// multiple of 16 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Size {
    /// A 64-bit integer.
    I64(Dim),
    /// A 32-bit integer.
    I32(Dim),
    /// A 32-bit integer: 1 where the launch begins [early](Kernel::early), and 2 more where the launch after it does.
    Early,
}

/// A kernel's source and how to launch it.
///
/// The source is a function of the group's structure and the schedule only: sizes, strides and
/// offsets that are not baked in are arguments.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Complete CUDA C++ text, needing no header.
    pub source: String,
    /// Name of the `extern "C"` function.
    pub entry: String,
    /// Compiler options beyond the architecture.
    pub options: Vec<String>,
    /// The schedule, for people: `mma 128x128x32 stages 4`.
    pub schedule: String,
    /// Sizes at which this kernel is the choice (and is right).
    pub when: Cond,
    /// Blocks that have something to do. If this is not constant, any more may be launched: they leave at once.
    pub blocks: Dim,
    /// Whether it should begin before the launch before it is done, where the GPU can: its blocks wait for that, and
    /// are then not spread evenly over the GPU, which matters little where they are short.
    pub early: bool,
    /// Threads per block.
    pub threads: u32,
    /// Bytes of dynamic shared memory per block.
    pub shared: u32,
    /// What it takes by value.
    pub args: Vec<Arg>,
    /// What it reads from memory.
    pub sizes: Vec<Size>,
}

/// Why no kernel could be made for a group.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// The group asks for something that no schedule can do.
    #[error("no kernel for `{group}`: {reason}")]
    Unsupported {
        /// The group's label.
        group: String,
        /// What can't be done.
        reason: String,
    },
}
