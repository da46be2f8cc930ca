//! What a kernel family gives for a group.

use crate::group::OperandId;
use aot_ir::Dim;
use aot_ir::dim::Cond;

/// One argument of a kernel.
///
/// A kernel takes one structure by value, `Args`: first the pointers in order, then the 64-bit
/// integers, then the 32-bit ones, each naturally aligned.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Arg {
    /// Address of an operand's first element.
    Pointer(OperandId),
    /// Address of a zeroed scratch area of this many bytes that the kernel leaves zeroed
    /// (counters, split sums).
    Scratch(Dim),
    /// A 64-bit integer.
    I64(Dim),
    /// A 32-bit integer.
    I32(Dim),
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
    /// Blocks per grid axis.
    pub grid: [Dim; 3],
    /// Threads per block.
    pub threads: u32,
    /// Bytes of dynamic shared memory per block.
    pub shared: u32,
    /// Arguments in the order of `Args`.
    pub args: Vec<Arg>,
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
