//! Threads go along a row, chunk by chunk.

use super::exchange::Team;
use super::problem::Problem;
use crate::code::{Emit, Emitter, Flat, Int, Role};
use crate::kernel::Kernel;
use aot_ir::Dim;

/// Threads of a block.
const BLOCK: u32 = 256;
const MOST_LANES: i64 = 8;
/// Instructions of a thread besides loads and stores, per group of lanes.
const OVERHEAD: f64 = 24.0;

pub(super) fn kernel(problem: &Problem<'_>, mut emitter: Emitter<'_>) -> Emit<Kernel> {
    let width = choose_width(problem, &mut emitter);
    let elements = Flat::new(&emitter, &[problem.along], Some(problem.along), width);
    let rows = Flat::new(&emitter, problem.rows, None, 1);
    let mut threads = 1;
    while threads < BLOCK && i64::from(threads) < elements.most {
        threads *= 2;
    }
    let block = if threads <= 32 { BLOCK } else { threads };
    let rows_per_block = block / threads;

    let wide = rows.most > i64::from(i32::MAX) - i64::from(BLOCK);
    let (number, cast) = if wide { ("long long", "(long long)") } else { ("int", "(int)") };
    let row_count = emitter.uniform(&rows.count, Role::Other);
    emitter.line(format!("const int g = (int)threadIdx.x % {threads};"));
    // Threads beyond the last row repeat it, so that all take part in exchanges.
    emitter.line(format!(
        "const {number} place = {cast}blockIdx.x * {rows_per_block} + (int)threadIdx.x / {threads};"
    ));
    emitter.line(format!("const bool live = place < {};", row_count.text));
    emitter.line(format!("const {number} row = live ? place : {} - 1;", row_count.text));
    rows.bind(&mut emitter, Int { text: "row".to_owned(), wide });
    problem.hoist(&mut emitter)?;

    let carry = emitter.accumulator(problem.op, problem.dtype(), 1);
    let team = Team::new(&mut emitter, &carry, threads);
    let wide = elements.most > i64::from(i32::MAX / 2) / width as i64;
    let number = if wide { "long long" } else { "int" };
    let count = emitter.uniform(&elements.count, Role::Extent(problem.along.0));
    let first = emitter.fresh("c");
    emitter.line("#pragma unroll 1");
    emitter.open(format!(
        "for ({number} {first} = 0; {first} < {}; {first} += {threads})",
        count.text
    ));
    // Threads beyond the last element repeat it; nothing comes after what they combine.
    let inside = emitter.constant("bool", "b", &format!("{first} + g < {}", count.text));
    let step = format!("{inside} ? {first} + g : {} - 1", count.text);
    let step = Int { text: emitter.constant(number, "u", &step), wide };
    let unit = problem.place(&mut emitter, step, &count);
    elements.bind(&mut emitter, unit);
    let value = emitter.value(problem.value)?.spread(width);
    let own = emitter.accumulator(problem.op, problem.dtype(), 1);
    emitter.accumulate(&own, &value, None);
    let turn = format!("{first} / {threads} % 2");
    let running = team.before(&mut emitter, &own, &carry, &turn);
    problem.advance(&mut emitter, &running, &value, width);
    emitter.open(format!("if ({inside} && live)"));
    problem.stores(&mut emitter)?;
    emitter.close();
    emitter.close();

    let blocks = emitter.scope().ceil_div(&rows.count, &Dim::from(i64::from(rows_per_block)));
    let schedule = format!("scan, {threads} threads a row, {width} at a time");
    Ok(emitter.finish("aot_scan", block, blocks, schedule))
}

/// Neighbouring elements that a thread takes at once.
fn choose_width(problem: &Problem<'_>, emitter: &mut Emitter<'_>) -> usize {
    let accesses = problem.accesses(emitter);
    let narrowest = accesses.iter().map(|a| a.bytes()).min().unwrap_or(4);
    let (mut least, mut best, mut width) = (f64::INFINITY, 1, 1);
    while width <= MOST_LANES.min(16 / narrowest) {
        if emitter.divisors().divides(width, problem.group.extent(problem.along)) {
            let cost = emitter.access_cost(&accesses, problem.along, width as usize);
            let cost = cost + OVERHEAD / width as f64;
            if cost < least {
                (least, best) = (cost, width as usize);
            }
        }
        width *= 2;
    }
    best
}
