//! Neighbouring threads take neighbouring rows; threads behind them take later parts of the rows.

use super::problem::Problem;
use crate::code::{Accumulator, Emit, Emitter, Flat, Int, Role, compute_type_name};
use crate::kernel::Kernel;
use aot_ir::Dim;
use aot_ir::dim::VarId;

/// Threads of a block.
const BLOCK: u32 = 256;
/// The fewest threads along rows, so that lines are used as a whole.
const LEAST_ALONG: u32 = 8;
/// Threads that a GPU should get at least: where rows are fewer, they are parted, and each element is
/// read twice.
const FEW_THREADS: i64 = 16 * 1024;
/// The fewest elements that are worth a thread.
const LEAST_PART: i64 = 16;

pub(super) fn kernel(
    problem: &Problem<'_>,
    mut emitter: Emitter<'_>,
    neighbours: VarId,
) -> Emit<Kernel> {
    let rows = Flat::new(&emitter, problem.rows, Some(neighbours), 1);
    let elements = Flat::new(&emitter, &[problem.along], None, 1);
    let mut along = BLOCK;
    while along > LEAST_ALONG
        && rows.most.saturating_mul(i64::from(BLOCK / along)) < FEW_THREADS
        && elements.most / i64::from(2 * BLOCK / along) >= LEAST_PART
    {
        along /= 2;
    }
    let deep = BLOCK / along;

    let wide = rows.most > i64::from(i32::MAX) - i64::from(BLOCK);
    let (number, cast) = if wide { ("long long", "(long long)") } else { ("int", "(int)") };
    let row_count = emitter.uniform(&rows.count, Role::Other);
    emitter.line(format!(
        "const {number} place = {cast}blockIdx.x * {along} + (int)threadIdx.x % {along};"
    ));
    // Threads beyond the last row repeat it, so that all take part in exchanges.
    emitter.line(format!("const bool live = place < {};", row_count.text));
    emitter.line(format!("const {number} row = live ? place : {} - 1;", row_count.text));
    rows.bind(&mut emitter, Int { text: "row".to_owned(), wide });
    problem.hoist(&mut emitter)?;

    let running = emitter.accumulator(problem.op, problem.dtype(), 1);
    let part = Part::new(&mut emitter, problem, &elements, deep);
    if deep > 1 {
        let own = emitter.accumulator(problem.op, problem.dtype(), 1);
        part.open(&mut emitter, problem);
        let value = emitter.value(problem.value)?;
        emitter.combine(&own, 0, value.lane(0));
        emitter.close();
        before(&mut emitter, &own, &running, along, deep);
    }
    emitter.open("if (live)");
    part.open(&mut emitter, problem);
    let value = emitter.value(problem.value)?;
    problem.advance(&mut emitter, &running, &value, 1);
    problem.stores(&mut emitter)?;
    emitter.close();
    emitter.close();

    let blocks = emitter.scope().ceil_div(&rows.count, &Dim::from(i64::from(along)));
    let schedule = format!("scan, {along} x {deep} threads");
    Ok(emitter.finish("aot_scan", BLOCK, blocks, schedule))
}

/// A thread's part of a row: places `from..to`, counted from where the scan begins.
struct Part {
    count: Int,
    wide: bool,
    from: String,
    to: String,
}

impl Part {
    fn new(emitter: &mut Emitter<'_>, problem: &Problem<'_>, elements: &Flat, deep: u32) -> Self {
        let wide = elements.most > i64::from(i32::MAX / 2);
        let number = if wide { "long long" } else { "int" };
        let count = emitter.uniform(&elements.count, Role::Extent(problem.along.0));
        if deep == 1 {
            let to = count.text.clone();
            return Self { count, wide, from: "0".to_owned(), to };
        }
        let length = emitter.scope().ceil_div(&elements.count, &Dim::from(i64::from(deep)));
        let length = emitter.uniform(&length, Role::Other);
        let y = format!("({number})(threadIdx.x / {})", BLOCK / deep);
        let from = emitter.constant(number, "n", &format!("{y} * {}", length.text));
        let (end, all) = (format!("{from} + {}", length.text), &count.text);
        let to = emitter.constant(number, "n", &format!("{end} < {all} ? {end} : {all}"));
        Self { count, wide, from, to }
    }

    /// Opens the loop over the part and binds the variable.
    fn open(&self, emitter: &mut Emitter<'_>, problem: &Problem<'_>) {
        let number = if self.wide { "long long" } else { "int" };
        let step = emitter.fresh("u");
        emitter.line("#pragma unroll 4");
        emitter
            .open(format!("for ({number} {step} = {}; {step} < {}; ++{step})", self.from, self.to));
        let place = problem.place(emitter, Int { text: step, wide: self.wide }, &self.count);
        emitter.bind(problem.along, place);
    }
}

/// `running` becomes the combination of the `own` values of all threads of the row with earlier parts.
fn before(
    emitter: &mut Emitter<'_>,
    own: &Accumulator,
    running: &Accumulator,
    along: u32,
    deep: u32,
) {
    let (sums, y) = (emitter.fresh("s"), emitter.fresh("m"));
    let type_name = compute_type_name(own.dtype);
    emitter.line(format!("__shared__ {type_name} {sums}[{deep}][{along}];"));
    emitter
        .line(format!("{sums}[threadIdx.x / {along}][threadIdx.x % {along}] = {};", own.values[0]));
    emitter.line("__syncthreads();");
    emitter.open(format!("for (int {y} = 0; {y} < (int)threadIdx.x / {along}; ++{y})"));
    emitter.combine(running, 0, &format!("{sums}[{y}][threadIdx.x % {along}]"));
    emitter.close();
}
