//! Neighbouring threads take neighbouring rows; threads behind them share the rows' elements.

use super::exchange;
use super::problem::Problem;
use super::rows::position;
use crate::code::{Access, Emit, Emitter, Flat, Int, Role};
use crate::group::FoldOp;
use crate::kernel::Kernel;
use aot_ir::Dim;
use aot_ir::dim::VarId;

/// Threads of a block, where there are enough rows.
const BLOCK: u32 = 256;
/// The most threads of a block, where rows are few and long.
const MOST_BLOCK: u32 = 1024;
/// Threads along rows, where there are enough rows.
const ALONG: u32 = 32;
/// The fewest threads along rows, so that lines are used as a whole.
const LEAST_ALONG: u32 = 8;
/// Blocks that a GPU should get at least.
const FEW_BLOCKS: i64 = 256;
/// With fewer blocks than this, most of a large GPU idles.
const IDLE_BLOCKS: i64 = 64;
/// The fewest elements of a row that are worth a thread, where blocks grow beyond `BLOCK`.
const LEAST_DEPTH: i64 = 16;
/// Bytes that memory gives at once: lanes are given up for more blocks down to these.
const SECTOR: i64 = 32;
const MOST_LANES: i64 = 8;
const OVERHEAD: f64 = 6.0;
/// Static shared memory of a block, in bytes.
const SHARED_BYTES: i64 = 48 * 1024;

pub(super) fn kernel(problem: &Problem<'_>, mut emitter: Emitter<'_>) -> Emit<Kernel> {
    let accesses = problem.accesses(&emitter);
    let elements = Flat::new(&emitter, problem.over, None, 1);
    let most_lanes = shared_lanes(problem, BLOCK).min(MOST_LANES);
    let (lane, mut width) = choose_lanes(problem, &mut emitter, &accesses, most_lanes);
    let is_long = elements.most >= i64::from(MOST_BLOCK);
    let widest = accesses.iter().map(|a| a.bytes()).max().unwrap_or(4);
    let mut rows = Flat::new(&emitter, problem.rows, lane, width);
    while is_long
        && width > 1
        && rows.most / i64::from(LEAST_ALONG) < IDLE_BLOCKS
        && width as i64 / 2 * i64::from(LEAST_ALONG) * widest >= SECTOR
    {
        width /= 2;
        rows = Flat::new(&emitter, problem.rows, lane, width);
    }
    let mut along = ALONG;
    while along > LEAST_ALONG && rows.most / i64::from(along) < FEW_BLOCKS {
        along /= 2;
    }
    let mut block = BLOCK;
    while block < MOST_BLOCK
        && rows.most / i64::from(along) < IDLE_BLOCKS
        && elements.most / i64::from(2 * block / along) >= LEAST_DEPTH
        && shared_lanes(problem, 2 * block) >= width as i64
    {
        block *= 2;
    }
    let deep = block / along;

    let wide = rows.most > i64::from(i32::MAX) - i64::from(block);
    let (number, cast) = if wide { ("long long", "(long long)") } else { ("int", "(int)") };
    let row_count = emitter.uniform(&rows.count, Role::Other);
    emitter.line(format!("const int y = (int)threadIdx.x / {along};"));
    emitter.line(format!(
        "const {number} place = {cast}blockIdx.x * {along} + (int)threadIdx.x % {along};"
    ));
    // Threads beyond the last row repeat it, so that all take part in exchanges.
    emitter.line(format!("const bool live = place < {};", row_count.text));
    emitter.line(format!("const {number} row = live ? place : {} - 1;", row_count.text));
    rows.bind(&mut emitter, Int { text: "row".to_owned(), wide });

    for (n, stage) in problem.stages.iter().enumerate() {
        emitter.hoist(stage.value, problem.over)?;
        let sum = emitter.accumulator(stage.op, problem.group[stage.value].dtype, width);
        open_elements(&mut emitter, &elements, deep);
        let value = emitter.value(stage.value)?;
        let at = match sum.is_arg() {
            true => Some(emitter.int(&position(problem), Role::Other)?.widened()),
            false => None,
        };
        emitter.accumulate(&sum, &value, at.as_deref());
        emitter.close();
        exchange::across_depth(&mut emitter, &sum, along, deep);
        emitter.bind_acc(n as u32, sum.result());
    }
    let stores = problem.element_stores();
    if !stores.is_empty() {
        for store in &stores {
            emitter.hoist(store.value, problem.over)?;
        }
        emitter.open("if (live)");
        open_elements(&mut emitter, &elements, deep);
        emitter.store_all(&stores)?;
        emitter.close();
        emitter.close();
    }
    let stores = problem.row_stores();
    if !stores.is_empty() {
        emitter.open("if (y == 0 && live)");
        emitter.store_all(&stores)?;
        emitter.close();
    }

    let blocks = emitter.scope().ceil_div(&rows.count, &Dim::from(i64::from(along)));
    let schedule = format!("reduce, {along} x {deep} threads, {width} rows at a time");
    Ok(emitter.finish("aot_reduce", block, blocks, schedule))
}

/// How many lanes the exchange of all stages has shared memory for in a block of `threads`.
fn shared_lanes(problem: &Problem<'_>, threads: u32) -> i64 {
    let bytes = |s: &crate::group::Stage| {
        let index = matches!(s.op, FoldOp::ArgMax { .. } | FoldOp::ArgMin { .. });
        i64::from(problem.group[s.value].dtype.bits().div_ceil(8)) + if index { 8 } else { 0 }
    };
    let lane = i64::from(threads) * problem.stages.iter().map(bytes).sum::<i64>();
    SHARED_BYTES / lane.max(1)
}

fn choose_lanes(
    problem: &Problem<'_>,
    emitter: &mut Emitter<'_>,
    accesses: &[Access],
    most_lanes: i64,
) -> (Option<VarId>, usize) {
    let narrowest = accesses.iter().map(|a| a.bytes()).min().unwrap_or(4);
    let mut best: Option<(f64, VarId, usize)> = None;
    for var in problem.rows.iter().rev() {
        let mut width = 1;
        while width <= most_lanes.min(16 / narrowest).max(1) {
            if emitter.divisors().divides(width, problem.group.extent(*var)) {
                let cost = emitter.access_cost(accesses, *var, width as usize);
                let cost = cost + OVERHEAD / width as f64;
                if best.as_ref().is_none_or(|(least, ..)| cost < *least) {
                    best = Some((cost, *var, width as usize));
                }
            }
            width *= 2;
        }
    }
    best.map_or((None, 1), |(_, var, width)| (Some(var), width))
}

/// Opens the loop over a thread's share of the elements and binds their variables.
fn open_elements(emitter: &mut Emitter<'_>, elements: &Flat, deep: u32) {
    let wide = elements.most > i64::from(i32::MAX / 2);
    let number = if wide { "long long" } else { "int" };
    let count = emitter.uniform(&elements.count, Role::Other);
    let element = emitter.fresh("u");
    emitter.line("#pragma unroll 4");
    emitter.open(format!(
        "for ({number} {element} = y; {element} < {}; {element} += {deep})",
        count.text
    ));
    elements.bind(emitter, Int { text: element, wide });
}
