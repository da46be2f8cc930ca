//! Programs that refer to what they do not have.

use super::super::{Buffer, Launch, LaunchWork, Loop, StatePort, Unit};
use super::*;
use aot_ir::{Arch, Symbol, Symbols};

/// A program that reads a size from its input, and launches a kernel for as many elements.
fn program() -> Program {
    let mut symbols = Symbols::default();
    let n = symbols.add(Symbol::in_run("n", 0, 9));
    let size = symbols.dim(n);
    let port = |name: &str, shape: Vec<Dim>| Port { name: name.into(), dtype: DType::I64, shape };
    let buffer = |elements: Dim, place| Buffer { dtype: DType::I64, elements, place };
    let launch = Launch {
        when: Cond::always(),
        kernel: 0,
        blocks: size.clone(),
        early: false,
        args: vec![LaunchArg::Buffer(BufferId(1))],
        sizes: Vec::new(),
    };
    let kernel =
        super::super::KernelRef { entry: "k".into(), key: [0; 32], threads: 32, shared: 0 };
    Program {
        model: "m".into(),
        symbols,
        inputs: vec![port("x", Vec::new())],
        outputs: vec![port("y", vec![size.clone()])],
        buffers: vec![buffer(Dim::ONE, Place::Input(0)), buffer(size, Place::Output(0))],
        steps: vec![
            Step::ReadBack { symbol: n, buffer: BufferId(0), sure: false },
            Step::Launch(0),
        ],
        targets: vec![Target {
            arch: Arch::of_capability(80),
            ptx: false,
            kernels: vec![kernel],
            launches: vec![vec![launch]],
            loop_control: None,
        }],
        origins: vec![Vec::new()],
        work: vec![LaunchWork { flop: Dim::ONE, bytes: Dim::ONE, unit: Unit::Plain }],
        ..Program::default()
    }
}

#[test]
fn sizes_are_read_before_steps_need_them() {
    assert_eq!(program().check(), Ok(()));
    let says = |change: &dyn Fn(&mut Program), text: &str| {
        let mut program = program();
        change(&mut program);
        assert_eq!(program.check(), Err(text.to_owned()));
    };
    says(&|p| p.steps.reverse(), "a step has a size that nothing gave before");
    says(&|p| p.steps.truncate(0), "output `y` has a size that nothing gave before");
    says(&|p| p.prepare = vec![p.steps[0].clone()], "a size is read where no run is");
    says(&|p| p.steps.insert(0, p.steps[0].clone()), "dim 0 is not one that a step can bind");
    says(&|p| p.buffers[0].dtype = DType::I32, "buffer 0 is no size");
    says(
        &|p| p.inputs[0].shape = p.outputs[0].shape.clone(),
        "input `x` has a size that nothing gave before",
    );
    let shorter = |p: &mut Program| {
        p.targets[0].launches[0][0].blocks = Dim::ONE;
        p.steps.reverse();
    };
    says(&shorter, "the length of buffer 1 has a size that nothing gave before");
}

#[test]
fn the_last_memory_plan_holds_all_sizes() {
    let check = |bounds: &[i64]| {
        let mut program = program();
        let plan = |bound: &i64| MemoryPlan { bounds: vec![*bound], offsets: vec![], total: 0 };
        program.plans = bounds.iter().map(plan).collect();
        program.check()
    };
    assert_eq!((check(&[4, 9]), check(&[10])), (Ok(()), Ok(())));
    assert_eq!(check(&[9, 8]), Err("no memory plan holds all sizes of `n`".to_owned()));
}

#[test]
fn state_is_an_input_and_an_output_alike() {
    let says = |state: &[StatePort], text: &str| {
        let mut program = program();
        program.inputs[0].shape = vec![Dim::from(4)];
        program.buffers[0].elements = Dim::from(4);
        program.steps.truncate(0);
        program.outputs[0].shape = vec![Dim::from(4)];
        program.buffers[1].elements = Dim::from(4);
        program.state = state.to_vec();
        assert_eq!(program.check().err().unwrap_or_default(), text);
    };
    let appended = |axis, dtype| Some(AppendedState { axis, capacity: 9, dtype });
    let state = |appended| StatePort { input: 0, output: 0, appended };
    says(&[state(None)], "");
    says(&[state(appended(0, DType::I64))], "");
    says(&[state(appended(1, DType::I64))], "state 0 is appended to in no sane way");
    says(&[state(appended(0, DType::I4))], "state 0 is appended to in no sane way");
    says(&[StatePort { output: 1, ..state(None) }], "state 0 is no input and output alike");
    says(&[state(None), state(None)], "state 1 is no input and output alike");
}

#[test]
fn loops_count_within_themselves() {
    let counted = |symbols: &mut aot_ir::Symbols| symbols.add(aot_ir::Symbol::in_run("i", 0, 9));
    let within = |change: &dyn Fn(&mut Loop)| {
        let mut program = program();
        let iteration = counted(&mut program.symbols);
        let mut repeated = Loop {
            iteration,
            count: program.outputs[0].shape[0].clone(),
            condition: None,
            turns: None,
            guards: Vec::new(),
            body: vec![program.steps[1].clone()],
        };
        change(&mut repeated);
        program.steps[1] = Step::Loop(Box::new(repeated));
        program.check()
    };
    assert_eq!(within(&|_| ()), Ok(()));
    let mut controlled = program();
    controlled.targets[0].loop_control = Some(0);
    let launched = "sm_80 has a launch of no sane kernel";
    assert_eq!(controlled.check(), Err(launched.to_owned()));
    let kernel = controlled.targets[0].kernels[0].clone();
    controlled.targets[0].kernels.push(kernel);
    let not_last = "kernel 0 of sm_80 is not the last";
    assert_eq!(controlled.check(), Err(not_last.to_owned()));
    controlled.targets[0].loop_control = Some(1);
    assert_eq!(controlled.check(), Ok(()));
    let says = |change: &dyn Fn(&mut Loop), text: &str| {
        assert_eq!(within(change), Err(text.to_owned()));
    };
    says(&|l| l.body = vec![Step::Launch(7)], "a step is launch 7 of 1");
    says(&|l| l.condition = Some(BufferId(9)), "there is no buffer 9 of 2");
    says(&|l| l.condition = Some(BufferId(0)), "buffer 0 is no condition");
    says(&|l| l.turns = Some(aot_ir::SymId(0)), "dim 0 is not one that a step can bind");
    let own = |l: &mut Loop| l.count = Dim::atom(Atom::Sym(l.iteration));
    says(&own, "a loop has a size that nothing gave before");
    let again = |l: &mut Loop| l.body = vec![Step::Loop(Box::new(l.clone()))];
    says(&again, "dim 1 is not one that a step can bind");
}
