//! Combining the threads' partial results.

use crate::code::{Accumulator, Emitter, Part, compute_type_name};

/// All of `threads` neighbouring threads, a power of two up to a warp, get the combination of their
/// values.
pub(super) fn within_warp(emitter: &mut Emitter<'_>, sum: &Accumulator, threads: u32) {
    if threads < 2 {
        return;
    }
    emitter.require(Part::Reduce);
    emitter.line("#pragma unroll");
    let mask = emitter.fresh("m");
    emitter.open(format!("for (int {mask} = {}; {mask} > 0; {mask} /= 2)", threads / 2));
    for lane in 0..sum.values.len() {
        let other = emitter.constant(
            compute_type_name(sum.dtype),
            "v",
            &format!("shuffle_xor({}, {mask})", sum.values[lane]),
        );
        if sum.is_arg() {
            let index = format!("shuffle_xor({}, {mask})", sum.indices[lane]);
            let index = emitter.constant("long long", "n", &index);
            emitter.combine_arg(sum, lane, &other, &index);
        } else {
            emitter.combine(sum, lane, &other);
        }
    }
    emitter.close();
}

/// All `threads` threads of a block, a power of two above a warp, get the combination of their values.
pub(super) fn within_block(emitter: &mut Emitter<'_>, sum: &Accumulator, threads: u32) {
    within_warp(emitter, sum, 32);
    let warps = threads / 32;
    // An array of its own for every stage: no stage waits for the readers of another.
    let (values, indices) = (emitter.fresh("s"), emitter.fresh("s"));
    let type_name = compute_type_name(sum.dtype);
    emitter.line(format!("__shared__ {type_name} {values}[{warps}];"));
    if sum.is_arg() {
        emitter.line(format!("__shared__ long long {indices}[{warps}];"));
    }
    emitter.open("if (threadIdx.x % 32 == 0)");
    emitter.line(format!("{values}[threadIdx.x / 32] = {};", sum.values[0]));
    if sum.is_arg() {
        emitter.line(format!("{indices}[threadIdx.x / 32] = {};", sum.indices[0]));
    }
    emitter.close();
    emitter.line("__syncthreads();");
    emitter.line(format!("{} = {values}[threadIdx.x % {warps}];", sum.values[0]));
    if sum.is_arg() {
        emitter.line(format!("{} = {indices}[threadIdx.x % {warps}];", sum.indices[0]));
    }
    within_warp(emitter, sum, warps);
}

/// Threads are `along` wide and `deep` deep, both powers of two, with thread `x + along * y` at (x, y).
/// All threads of one x get the combination of their values, lane by lane.
pub(super) fn across_depth(emitter: &mut Emitter<'_>, sum: &Accumulator, along: u32, deep: u32) {
    if deep < 2 {
        return;
    }
    let lanes = sum.values.len() as u32;
    let (values, indices) = (emitter.fresh("s"), emitter.fresh("s"));
    let size = along * deep;
    let type_name = compute_type_name(sum.dtype);
    emitter.line(format!("__shared__ {type_name} {values}[{lanes}][{size}];"));
    if sum.is_arg() {
        emitter.line(format!("__shared__ long long {indices}[{lanes}][{size}];"));
    }
    let publish = |emitter: &mut Emitter<'_>| {
        for (lane, value) in sum.values.iter().enumerate() {
            emitter.line(format!("{values}[{lane}][threadIdx.x] = {value};"));
            if sum.is_arg() {
                let index = &sum.indices[lane];
                emitter.line(format!("{indices}[{lane}][threadIdx.x] = {index};"));
            }
        }
    };
    publish(emitter);
    let half = emitter.fresh("m");
    emitter.line("#pragma unroll");
    emitter.open(format!("for (int {half} = {}; {half} > 0; {half} /= 2)", deep / 2));
    emitter.line("__syncthreads();");
    emitter.open(format!("if ((int)threadIdx.x < {along} * {half})"));
    for lane in 0..sum.values.len() {
        let other = format!("{values}[{lane}][threadIdx.x + {along} * {half}]");
        if sum.is_arg() {
            let index = format!("{indices}[{lane}][threadIdx.x + {along} * {half}]");
            emitter.combine_arg(sum, lane, &other, &index);
        } else {
            emitter.combine(sum, lane, &other);
        }
    }
    publish(emitter);
    emitter.close();
    emitter.close();
    emitter.line("__syncthreads();");
    for lane in 0..sum.values.len() {
        let value = &sum.values[lane];
        emitter.line(format!("{value} = {values}[{lane}][threadIdx.x % {along}];"));
        if sum.is_arg() {
            let index = &sum.indices[lane];
            emitter.line(format!("{index} = {indices}[{lane}][threadIdx.x % {along}];"));
        }
    }
}
