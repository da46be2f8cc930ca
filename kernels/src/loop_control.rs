//! The kernel that decides on the GPU what data decide.

use crate::kernel::Kernel;
use aot_ir::Dim;
use aot_ir::dim::Cond;

const THREADS: u32 = 128;

/// The kernel that sets the values of conditional nodes of CUDA graphs, for which it calls a function that drivers have
/// from CUDA 12.4 on: others can't load it. It stands before such a node, whose body is that of a loop, and at the end
/// of the body; or where a computed size chooses the sizes of what comes after.
///
/// It takes one structure by value: the node's handle; the addresses of the loop's condition (one byte, or no address),
/// of the greatest number of iterations or the size that chooses (64 bits), of the loop's progress (128 bits, of which
/// the first 64 are the iterations made), of rows of sizes and of the place where kernels read them; then 32-bit
/// integers: a row's length in units of 16 bytes, the number of rows, 0 before a loop, 1 at the end of a body or 2 to
/// choose, and one that says nothing. Iteration `i` gets row `i` modulo their number, and so does the size `i`.
pub fn loop_control() -> Kernel {
    let threads = format!("constexpr int kThreads = {THREADS};\n");
    Kernel {
        source: threads + include_str!("../cuda/loop_control.cuh"),
        entry: "aot_loop_control".to_owned(),
        options: Vec::new(),
        schedule: format!("one block of {THREADS}"),
        when: Cond::always(),
        blocks: Dim::ONE,
        early: false,
        threads: THREADS,
        shared: 0,
        args: Vec::new(),
        sizes: Vec::new(),
    }
}
