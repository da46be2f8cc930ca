//! What comes before a thread's elements.

use crate::code::{Accumulator, Emitter, Part, compute_type_name};

/// Threads of a row, a power of two, and where those of several warps meet.
#[derive(Debug)]
pub(super) struct Team {
    threads: u32,
    /// Two arrays of one value a warp, taken in turn: no chunk waits for the readers of another.
    sums: String,
}

impl Team {
    /// Declares what `threads` neighbouring threads of a row need.
    pub(super) fn new(emitter: &mut Emitter<'_>, sum: &Accumulator, threads: u32) -> Self {
        emitter.require(Part::Reduce);
        let sums = emitter.fresh("s");
        if threads > 32 {
            let type_name = compute_type_name(sum.dtype);
            emitter.line(format!("__shared__ {type_name} {sums}[2][{}];", threads / 32));
        }
        Self { threads, sums }
    }

    /// The combination of `carry` and of the `own` values of all threads before this one, as a variable of
    /// its own. Afterwards `carry` has all threads' values in it, and `own` is used up. `g` is the thread's
    /// place in the row; `turn` is 0 and 1 in turn from call to call.
    pub(super) fn before(
        &self,
        emitter: &mut Emitter<'_>,
        own: &Accumulator,
        carry: &Accumulator,
        turn: &str,
    ) -> Accumulator {
        let type_name = compute_type_name(own.dtype);
        let before = emitter.accumulator(own.op, own.dtype, 1);
        let (name, total) = (&own.values[0], &carry.values[0]);
        emitter.combine(&before, 0, total);
        let warp = self.threads.min(32);
        if warp > 1 {
            let distance = emitter.fresh("m");
            emitter.line("#pragma unroll");
            emitter.open(format!("for (int {distance} = 1; {distance} < {warp}; {distance} *= 2)"));
            let text = format!("shuffle_up({name}, {distance})");
            let other = emitter.constant(type_name, "v", &text);
            emitter.open(format!("if (g % {warp} >= {distance})"));
            emitter.combine(own, 0, &other);
            emitter.close();
            emitter.close();
            let other = emitter.constant(type_name, "v", &format!("shuffle_up({name}, 1)"));
            emitter.open(format!("if (g % {warp} > 0)"));
            emitter.combine(&before, 0, &other);
            emitter.close();
        }
        if self.threads <= 32 {
            let last = match warp {
                1 => name.clone(),
                _ => {
                    let text = format!("shuffle_from({name}, (int)threadIdx.x | {})", warp - 1);
                    emitter.constant(type_name, "v", &text)
                }
            };
            emitter.combine(carry, 0, &last);
            return before;
        }
        let sums = &self.sums;
        emitter.line(format!("if (g % 32 == 31) {sums}[{turn}][g / 32] = {name};"));
        emitter.line("__syncthreads();");
        let w = emitter.fresh("w");
        emitter.line("#pragma unroll");
        emitter.open(format!("for (int {w} = 0; {w} < {}; ++{w})", self.threads / 32));
        let other = emitter.constant(type_name, "v", &format!("{sums}[{turn}][{w}]"));
        emitter.open(format!("if ({w} < g / 32)"));
        emitter.combine(&before, 0, &other);
        emitter.close();
        emitter.combine(carry, 0, &other);
        emitter.close();
        before
    }
}
