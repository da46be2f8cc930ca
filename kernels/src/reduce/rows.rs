//! Threads go along a row.

use super::problem::Problem;
use super::{exchange, kept};
use crate::code::{Access, Emit, Emitter, Flat, Int, Role, Value, compute_type_name};
use crate::group::ExprId;
use crate::kernel::Kernel;
use aot_ir::Dim;
use aot_ir::dim::VarId;
use std::collections::BTreeMap;

/// Registers of one thread that kept values may take.
const KEPT_REGISTERS: i64 = 48;
/// Elements that one thread should at most have of a row.
const ELEMENTS: i64 = 16;
/// Threads that a GPU should get at least, where rows are few.
const FEW_THREADS: i64 = 32 * 1024;
/// Threads of a block that holds several rows.
const BLOCK: u32 = 256;
const MOST_THREADS: u32 = 1024;
const MOST_LANES: i64 = 8;
/// Instructions of a thread besides loads and stores, per group of lanes.
const OVERHEAD: f64 = 6.0;

struct Schedule {
    /// A row's elements, in groups of lanes.
    elements: Flat,
    /// Threads of a row: a power of two.
    threads: u32,
    /// Groups of lanes that one thread has at most.
    rounds: i64,
    /// What is kept in registers, with the phase that evaluates it.
    kept: BTreeMap<ExprId, usize>,
}

pub(super) fn kernel(problem: &Problem<'_>, mut emitter: Emitter<'_>) -> Emit<Kernel> {
    let schedule = choose(problem, &mut emitter);
    let row_count = Flat::new(&emitter, problem.rows, None, 1);
    let threads = schedule.threads;
    let block = if threads <= 32 { BLOCK } else { threads };
    let rows_per_block = block / threads;

    // Place of the thread.
    let wide = row_count.most > i64::from(i32::MAX) - i64::from(BLOCK);
    let (number, cast) = if wide { ("long long", "(long long)") } else { ("int", "(int)") };
    let rows = emitter.uniform(&row_count.count, Role::Other);
    emitter.line(format!("const int g = (int)threadIdx.x % {threads};"));
    if rows_per_block == 1 {
        emitter.line(format!("const {number} row = {cast}blockIdx.x;"));
    } else {
        // Threads beyond the last row repeat it, so that all take part in exchanges.
        emitter.line(format!(
            "const {number} place = {cast}blockIdx.x * {rows_per_block} + (int)threadIdx.x / {threads};"
        ));
        emitter.line(format!("const bool live = place < {};", rows.text));
        emitter.line(format!("const {number} row = live ? place : {} - 1;", rows.text));
    }
    row_count.bind(&mut emitter, Int { text: "row".to_owned(), wide });

    let mut arrays = Arrays::new();
    for id in schedule.kept.keys() {
        let name = emitter.fresh("s");
        let type_name = compute_type_name(problem.group[*id].dtype);
        let size = schedule.rounds * schedule.elements.width as i64;
        emitter.line(format!("{type_name} {name}[{size}];"));
        arrays.insert(*id, (name, 1));
    }

    for (n, stage) in problem.stages.iter().enumerate() {
        emitter.hoist(stage.value, problem.over)?;
        let sum = emitter.accumulator(stage.op, problem.group[stage.value].dtype, 1);
        let position = position(problem);
        let round = open_rounds(&mut emitter, &schedule, &arrays, n)?;
        let value = emitter.value(stage.value)?.spread(schedule.elements.width);
        let at = match sum.is_arg() {
            true => Some(emitter.int(&position, Role::Other)?.widened()),
            false => None,
        };
        emitter.accumulate(&sum, &value, at.as_deref());
        close_rounds(&mut emitter, &schedule, &mut arrays, n, &round)?;
        if threads <= 32 {
            exchange::within_warp(&mut emitter, &sum, threads);
        } else {
            exchange::within_block(&mut emitter, &sum, threads);
        }
        emitter.bind_acc(n as u32, sum.result());
    }

    let stores = problem.element_stores();
    if !stores.is_empty() {
        for store in &stores {
            emitter.hoist(store.value, problem.over)?;
        }
        if rows_per_block > 1 {
            emitter.open("if (live)");
        }
        let phase = problem.stages.len();
        let round = open_rounds(&mut emitter, &schedule, &arrays, phase)?;
        emitter.store_all(&stores)?;
        close_rounds(&mut emitter, &schedule, &mut arrays, phase, &round)?;
        if rows_per_block > 1 {
            emitter.close();
        }
    }
    let stores = problem.row_stores();
    if !stores.is_empty() {
        let live = if rows_per_block > 1 { " && live" } else { "" };
        emitter.open(format!("if (g == 0{live})"));
        emitter.store_all(&stores)?;
        emitter.close();
    }

    let scope = emitter.scope();
    let blocks = scope.ceil_div(&row_count.count, &Dim::from(i64::from(rows_per_block)));
    let (width, kept) = (schedule.elements.width, schedule.kept.len());
    let schedule = format!("reduce, {threads} threads a row, {width} at a time, {kept} kept");
    Ok(emitter.finish("aot_reduce", block, blocks, schedule))
}

/// Row-major index of an element, in the order that the group gives.
pub(super) fn position(problem: &Problem<'_>) -> Dim {
    let nest = |p: Dim, v: &VarId| p * problem.group.extent(*v) + Dim::var(*v);
    problem.over.iter().fold(Dim::ZERO, nest)
}

/// Names of the arrays that hold kept values, and how many lanes they hold of each group.
type Arrays = BTreeMap<ExprId, (String, usize)>;

/// Opens the loop over a thread's groups of lanes and binds the elements' variables; what is kept
/// from earlier phases is at hand inside.
fn open_rounds(
    emitter: &mut Emitter<'_>,
    schedule: &Schedule,
    arrays: &Arrays,
    phase: usize,
) -> Emit<String> {
    let elements = &schedule.elements;
    let wide = elements.most > i64::from(i32::MAX / 2) / elements.width as i64;
    let number = if wide { "long long" } else { "int" };
    let count = emitter.uniform(&elements.count, Role::Other);
    let round = emitter.fresh("c");
    let threads = schedule.threads;
    let unit = if schedule.is_unrolled() {
        emitter.line("#pragma unroll");
        emitter.open(format!("for (int {round} = 0; {round} < {}; ++{round})", schedule.rounds));
        let unit = emitter.constant(number, "u", &format!("g + {round} * {threads}"));
        emitter.open(format!("if ({unit} < {})", count.text));
        unit
    } else {
        let unit = emitter.fresh("u");
        emitter.line("#pragma unroll 4");
        emitter.open(format!(
            "for ({number} {unit} = g; {unit} < {}; {unit} += {threads})",
            count.text
        ));
        emitter.enter();
        unit
    };
    elements.bind(emitter, Int { text: unit, wide });
    for (id, first) in &schedule.kept {
        if *first < phase {
            let (array, width) = &arrays[id];
            let lanes = (0..*width).map(|l| slot(array, &round, *width, l)).collect();
            let value = Value { dtype: emitter.group()[*id].dtype, lanes };
            emitter.remember_value(*id, value);
        }
    }
    Ok(round)
}

/// Keeps what this phase evaluated first, and closes the loop.
fn close_rounds(
    emitter: &mut Emitter<'_>,
    schedule: &Schedule,
    arrays: &mut Arrays,
    phase: usize,
    round: &str,
) -> Emit<()> {
    for (id, first) in &schedule.kept {
        if *first == phase {
            let value = emitter.value(*id)?;
            let width = value.lanes.len();
            if let Some((array, lanes)) = arrays.get_mut(id) {
                *lanes = width;
                for (lane, text) in value.lanes.iter().enumerate() {
                    emitter.line(format!("{} = {text};", slot(array, round, width, lane)));
                }
            }
        }
    }
    emitter.close();
    emitter.close();
    Ok(())
}

fn slot(array: &str, round: &str, width: usize, lane: usize) -> String {
    if width == 1 {
        format!("{array}[{round}]")
    } else {
        format!("{array}[{round} * {width} + {lane}]")
    }
}

impl Schedule {
    /// Kept values need constant indices into registers.
    fn is_unrolled(&self) -> bool {
        !self.kept.is_empty() || self.rounds <= 4
    }
}

/// What the choice among schedules goes by.
struct Choice {
    accesses: Vec<Access>,
    /// The most rows there can be.
    rows: i64,
    kept: BTreeMap<ExprId, usize>,
    /// Registers that one kept element takes.
    registers: i64,
}

fn choose(problem: &Problem<'_>, emitter: &mut Emitter<'_>) -> Schedule {
    let kept = kept::choose(problem, emitter);
    let registers = kept.keys().map(|id| i64::from(problem.group[*id].dtype.bits().max(32) / 32));
    let choice = Choice {
        accesses: problem.accesses(emitter),
        rows: Flat::new(emitter, problem.rows, None, 1).most,
        registers: registers.sum(),
        kept,
    };
    let narrowest = choice.accesses.iter().map(|a| a.bytes()).min().unwrap_or(4);
    // Where an index is sought, lanes must be neighbours in the order of the elements.
    let candidates = match problem.seeks_index() {
        true => &problem.over[problem.over.len().saturating_sub(1)..],
        false => problem.over,
    };
    let (mut least, mut best) = choice.schedule(problem, emitter, candidates.last().copied(), 1);
    for var in candidates.iter().rev() {
        let mut width = 1;
        while width <= MOST_LANES.min(16 / narrowest) {
            if emitter.divisors().divides(width, problem.group.extent(*var)) {
                let (cost, schedule) = choice.schedule(problem, emitter, Some(*var), width);
                if cost < least {
                    (least, best) = (cost, schedule);
                }
            }
            width *= 2;
        }
    }
    best
}

impl Choice {
    /// The schedule with lanes along a variable, and its cost per element.
    fn schedule(
        &self,
        problem: &Problem<'_>,
        emitter: &mut Emitter<'_>,
        lane: Option<VarId>,
        width: i64,
    ) -> (f64, Schedule) {
        let elements = Flat::new(emitter, problem.over, lane, width as usize);
        let per_thread = (ELEMENTS / width).max(1);
        let rounds = |threads: u32| {
            let threads = i64::from(threads);
            elements.most / threads + i64::from(elements.most % threads != 0)
        };
        let mut threads = 1;
        while threads < MOST_THREADS && rounds(threads) > per_thread {
            threads *= 2;
        }
        while threads < MOST_THREADS
            && rounds(threads) > 1
            && self.rows.saturating_mul(i64::from(threads)) < FEW_THREADS
        {
            threads *= 2;
        }
        let rounds = rounds(threads);
        let needed = rounds.saturating_mul(width).saturating_mul(self.registers);
        let kept = if needed <= KEPT_REGISTERS { self.kept.clone() } else { BTreeMap::new() };
        let used = elements.most as f64 / (rounds as f64 * f64::from(threads));
        let access = match lane {
            Some(lane) => emitter.access_cost(&self.accesses, lane, width as usize),
            None => 0.0,
        };
        let cost = (access + OVERHEAD / width as f64) / used;
        (cost, Schedule { elements, threads, rounds, kept })
    }
}
