//! Memory plans: how long arenas are, and that nothing in them overlaps, whatever the sizes.

use crate::groups::passed;
use crate::models::imported;
use aot_ir::dim::Cond;
use aot_ir::{Arch, Dim, Graph, Symbols};
use aot_kernels::group::{Group, OperandId};
use aot_kernels::{Arg, Kernel, KernelError};
use aot_runtime::program::Program;
use aot_tests::cases::all;
use aot_tests::models::MODELS;
use aot_tests::net::Random;
use cargo_aot::lower::arena::{peak_of, plan_arena};
use cargo_aot::lower::plan::Plan;
use cargo_aot::lower::program::assemble;
use cargo_aot::lower::{LowerOptions, Precision, lower};
use cargo_aot::passes;

/// How much longer an arena may be than what is alive at once.
const SLACK: f64 = 1.1;
/// Sizes that every program is tried at.
const TRIALS: usize = 40;

/// A kernel in name only, which touches all that its group does.
pub(crate) fn nothing(group: &Group, _: &Symbols, _: Arch) -> Result<Vec<Kernel>, KernelError> {
    let args = (0..group.operands.len()).map(|n| Arg::Pointer(OperandId(n as u32)));
    Ok(vec![Kernel {
        source: String::new(),
        entry: "nothing".to_owned(),
        options: Vec::new(),
        schedule: String::new(),
        when: Cond::always(),
        blocks: Dim::ONE,
        early: false,
        threads: 32,
        shared: 0,
        args: args.collect(),
        sizes: Vec::new(),
    }])
}

fn greatest(graph: &Graph) -> Vec<i64> {
    graph.symbols.iter().map(|(_, s)| s.hi).collect()
}

/// Atoms in range, those at its ends more often than others.
fn drawn(symbols: &Symbols, random: &mut Random) -> Vec<i64> {
    let atom = |lo: i64, hi: i64, random: &mut Random| match random.below(4) {
        0 => lo,
        1 => hi,
        _ => lo + random.below((hi - lo) as u64 + 1) as i64,
    };
    symbols.iter().map(|(_, s)| atom(s.lo, s.hi, random)).collect()
}

/// The program of a plan, with memory planned for a bound that is drawn, too.
fn program(plan: &Plan<'_>, random: &mut Random) -> Program {
    let symbols = &plan.graph.symbols;
    let bound = drawn(symbols, random).into_iter().zip(symbols.iter());
    let bound = bound.map(|(atom, (id, s))| if symbols.in_run(id) { s.hi } else { atom });
    let bounds = [bound.collect()];
    let targets = [(Arch::of_capability(90), false)];
    assemble(plan, "m", &targets, &bounds, &nothing).unwrap().program
}

fn check(name: &str, plan: &Plan<'_>, random: &mut Random) {
    let program = program(plan, random);
    assert_eq!(program.check(), Ok(()), "{name}");
    for _ in 0..TRIALS {
        let atoms = drawn(&program.symbols, random);
        assert_eq!(program.check_memory(&atoms), Ok(()), "{name} at {atoms:?}");
    }
}

fn options(precision: Precision) -> LowerOptions {
    LowerOptions { precision, precision_for: Vec::new() }
}

#[test]
fn arenas_of_models_are_short_and_nothing_overlaps() {
    let mut random = Random::new(5);
    let mut in_place = 0;
    for model in MODELS {
        let graph = passes::run(&imported(model), &passes::Options::default()).unwrap();
        for precision in [Precision::F32, Precision::F16] {
            let options = options(precision);
            let plan = lower(&graph, &options).unwrap();
            let arena = plan_arena(&plan, &greatest(&graph));
            let (total, bound) = (arena.total, arena.lower_bound);
            let name = format!("{} in {precision:?}", model.name);
            println!(
                "{name}: {total} bytes, {bound} alive, {} of {} in place",
                plan.in_place.len(),
                arena.offsets.len()
            );
            assert!(total as f64 <= SLACK * bound as f64, "{name}: {total} for {bound}");
            let peak = peak_of(&plan, &greatest(&graph)).unwrap();
            assert_eq!(peak.buffers.iter().map(|(_, bytes)| bytes).sum::<u64>(), bound, "{name}");
            check(&name, &plan, &mut random);
            in_place += plan.in_place.len();
        }
    }
    assert!(in_place > 100, "{in_place}");
}

#[test]
fn buffers_of_networks_never_overlap() {
    let mut random = Random::new(6);
    let mut in_place = 0;
    for case in all() {
        let graph = passed(&case);
        for precision in [Precision::F32, Precision::Bf16] {
            let options = options(precision);
            let plan = lower(&graph, &options).unwrap();
            check(&format!("{} in {precision:?}", case.name), &plan, &mut random);
            in_place += plan.in_place.len();
        }
    }
    assert!(in_place > 30, "{in_place}");
}

/// Each buffer in turn is put where another one is.
#[test]
fn overlaps_are_noticed() {
    let cases = all();
    let (mut moved, mut noticed) = (0, 0);
    for case in cases.iter().filter(|case| case.name.starts_with("random")) {
        let options = options(Precision::F32);
        let plan = lower(&case.graph, &options).unwrap();
        let program = program(&plan, &mut Random::new(1));
        let count = program.plans[0].offsets.len();
        for at in 1..count {
            let mut program = program.clone();
            for plan in &mut program.plans {
                plan.offsets[at].1 = plan.offsets[at - 1].1;
            }
            moved += 1;
            noticed += usize::from(program.check_memory(&greatest(&case.graph)).is_err());
        }
    }
    // Some are not alive together.
    assert!(moved > 50 && noticed * 2 > moved, "{noticed} of {moved}");
}
