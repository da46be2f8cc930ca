//! Rows against what they stand for: graphs are walked through as a GPU does, with decisions that the test makes up.

use std::collections::HashMap;
use std::sync::Arc;

use aot_ir::dim::{Atom, Cond};
use aot_ir::{Arch, DType, Dim, Guard, Scope, SymId, Symbol, Symbols};

use super::super::actions::{Action, Control, Mode, Value, Where};
use super::super::evaluate::{Evaluated, How, evaluate, is_whole, most_sizes};
use super::super::layout::{Layout, Placement};
use super::super::on_device::{Decisions, OnDevice};
use super::super::templates::Templates;
use super::{HEADER, PROGRESS, VECTOR};
use crate::program::{
    Buffer, BufferId, KernelRef, Launch, LaunchArg, LaunchSize, Loop, MemoryPlan, Place, Port,
    Program, Step, Target,
};

const FOR_EVER: i64 = 1 << 40;
const N: SymId = SymId(0);
const TAKEN: SymId = SymId(1);
const I: SymId = SymId(2);
const TURNS: SymId = SymId(3);
const J: SymId = SymId(4);
const K: SymId = SymId(5);
/// The truth value, and the conditions of the loops.
const TRUTH: BufferId = BufferId(0);
const OUTER: BufferId = BufferId(1);
const INNER: BufferId = BufferId(2);

fn dim(symbol: SymId) -> Dim {
    Dim::atom(Atom::Sym(symbol))
}

fn modulo(a: Dim, b: i64) -> Dim {
    Dim::atom(Atom::Mod(a, b.into()))
}

fn repeated(iteration: SymId, count: Dim, condition: Option<BufferId>, body: Vec<Step>) -> Loop {
    Loop { iteration, count, condition, turns: None, guards: Vec::new(), body }
}

/// A branch, a loop that data end with another one in it and in that one whose length it decides, and launches around: each
/// has one size.
fn program() -> Program {
    let mut symbols = Symbols::default();
    symbols.add(Symbol::new("n", 1, 9, 1));
    symbols.add(Symbol::in_run("taken", 0, 1));
    symbols.add(Symbol::counter("i", FOR_EVER.into(), FOR_EVER));
    symbols.add(Symbol::in_run("turns", 0, FOR_EVER));
    symbols.add(Symbol::counter("j", 3.into(), 3));
    symbols.add(Symbol::counter("k", 2.into(), 2));
    let rest = Dim::ONE - dim(TAKEN);
    let sizes = [
        dim(N) * 100,
        dim(TAKEN) * 7 + dim(N),
        // Divides where it is made alone.
        Dim::atom(Atom::FloorDiv(dim(N) * 60, dim(TAKEN))),
        Dim::atom(Atom::FloorDiv(dim(N) * 40, rest.clone())),
        modulo(dim(I) + 1, 2) * dim(N) + dim(TAKEN),
        modulo(dim(I), 3) * 100 + dim(J) * 10 + dim(K),
        modulo(dim(TURNS), 2) * 50 + dim(N),
    ];
    let launch = |size: Dim| Launch {
        when: Cond::always(),
        kernel: 0,
        blocks: size.clone(),
        early: true,
        args: vec![LaunchArg::Sizes],
        sizes: vec![LaunchSize::I32(size), LaunchSize::Early],
    };
    let told = repeated(K, modulo(dim(I), 2) + 1, None, vec![Step::Launch(5)]);
    let inner = repeated(J, 3.into(), Some(INNER), vec![Step::Loop(Box::new(told))]);
    let outer = vec![Step::Launch(4), Step::Loop(Box::new(inner)), Step::Launch(4)];
    let outer = Loop { turns: Some(TURNS), ..repeated(I, FOR_EVER.into(), Some(OUTER), outer) };
    let branch = |count: Dim, id: u32, launch: u32| {
        Step::Loop(Box::new(repeated(SymId(id), count, None, vec![Step::Launch(launch)])))
    };
    for _ in 0..2 {
        symbols.add(Symbol::counter("b", Dim::ONE, 1));
    }
    let buffer = |dtype| Buffer { dtype, elements: Dim::ONE, place: Place::Arena };
    let offsets = (0..3).map(|n| (BufferId(n), u64::from(n) * 256)).collect();
    Program {
        model: "m".into(),
        buffers: vec![buffer(DType::I64), buffer(DType::Bool), buffer(DType::Bool)],
        plans: vec![MemoryPlan { bounds: vec![FOR_EVER; symbols.len()], offsets, total: 768 }],
        symbols,
        steps: vec![
            Step::Launch(0),
            Step::ReadBack { symbol: TAKEN, buffer: TRUTH, sure: true },
            Step::Launch(1),
            branch(dim(TAKEN), 6, 2),
            branch(rest, 7, 3),
            Step::Loop(Box::new(outer)),
            Step::Launch(6),
        ],
        targets: vec![Target {
            arch: Arch::of_capability(90),
            ptx: false,
            kernels: vec![KernelRef { entry: "k".into(), key: [0; 32], threads: 1, shared: 0 }; 2],
            launches: sizes.into_iter().map(|size| vec![launch(size)]).collect(),
            loop_control: Some(1),
        }],
        ..Program::default()
    }
}

fn templates(program: &Program) -> (Placement, Arc<Templates>) {
    let placement = Placement::new(program, &HashMap::new(), &HashMap::new());
    let place = |id| placement.place(id);
    let templates = Templates::new(&program.targets[0], &program.steps, place).unwrap();
    (placement, Arc::new(templates))
}

fn evaluated(program: &Program, device: &OnDevice, n: i64, rehearsed: bool) -> Evaluated {
    let (placement, templates) = templates(program);
    let mut atoms: Vec<i64> = program.symbols.iter().map(|(_, s)| s.hi).collect();
    atoms[N.0 as usize] = n;
    let layout = Layout::new(program, &placement, &atoms);
    let how = How { layout, templates: &templates, device: Some(device), rehearsed };
    evaluate(how, &program.steps, &atoms).unwrap()
}

/// What data decide: the branch, and by turn of the outer loop how many turns the inner one has.
#[derive(Debug)]
struct Decision {
    taken: bool,
    turns: Vec<i64>,
}

/// A GPU that walks through actions.
struct Machine<'e> {
    evaluated: &'e Evaluated,
    decision: &'e Decision,
    sizes: Vec<u8>,
    /// Turns so far, of the outer loop and of the inner one.
    made: (usize, i64),
    seen: Vec<(u32, i64)>,
}

impl Machine<'_> {
    fn word(&self, at: u64) -> i64 {
        i64::from_le_bytes(self.sizes[at as usize..][..8].try_into().unwrap())
    }

    fn put(&mut self, at: u64, word: i64) {
        self.sizes[at as usize..][..8].copy_from_slice(&word.to_le_bytes());
    }

    /// Walks on from an action to the end of its chain, and tells where that is.
    fn walk(&mut self, mut at: usize) -> usize {
        while let Some(action) = self.evaluated.actions.get(at) {
            match action {
                Action::Launch { template, blocks: _, sizes, .. } => {
                    let size = self.word(*sizes) as i32;
                    let step = self.evaluated.templates.all()[*template].id.step;
                    self.seen.push((step, i64::from(size)));
                }
                Action::Copy { .. } => panic!("{action:?}"),
                Action::Control(control) => match control.mode {
                    Mode::Choose => {
                        let value = match control.value {
                            Value::Sizes(at) => self.word(at),
                            Value::Buffer(place) => {
                                assert_eq!(place, Where::Arena(TRUTH));
                                i64::from(self.decision.taken)
                            }
                        };
                        self.bring(control, value % i64::from(control.period));
                    }
                    Mode::End => return at,
                    Mode::Begin => {
                        let mut end = None;
                        self.put(control.progress, 0);
                        self.put(control.progress + 8, 0);
                        self.begins(control);
                        while self.goes_on(control) {
                            self.bring(control, self.word(control.progress + 8));
                            let last = self.walk(at + 1);
                            end = Some(last);
                            let row =
                                (self.word(control.progress + 8) + 1) % i64::from(control.period);
                            self.put(control.progress + 8, row);
                            self.put(control.progress, self.word(control.progress) + 1);
                            self.ends(control);
                        }
                        at = end.unwrap_or_else(|| self.end(at));
                    }
                },
            }
            at += 1;
        }
        at
    }

    /// Where a loop's body ends.
    fn end(&self, begin: usize) -> usize {
        let mut deep = 0;
        let actions = self.evaluated.actions.iter().enumerate().skip(begin);
        let ends = |(_, action): &(usize, &Action)| {
            match action {
                Action::Control(Control { mode: Mode::Begin, .. }) => deep += 1,
                Action::Control(Control { mode: Mode::End, .. }) => deep -= 1,
                _ => {}
            }
            deep == 0
        };
        let mut actions = actions;
        actions.find(ends).unwrap().0
    }

    fn bring(&mut self, control: &Control, row: i64) {
        let bytes = control.vectors as usize * VECTOR;
        let from = control.rows as usize + row as usize * bytes;
        self.sizes.copy_within(from..from + bytes, control.sizes as usize);
    }

    fn begins(&mut self, control: &Control) {
        match control.condition {
            Some(Where::Arena(OUTER)) => self.made.0 = 0,
            Some(Where::Arena(INNER)) => self.made.1 = 0,
            _ => {}
        }
    }

    fn ends(&mut self, control: &Control) {
        match control.condition {
            Some(Where::Arena(OUTER)) => self.made.0 += 1,
            Some(Where::Arena(INNER)) => self.made.1 += 1,
            _ => {}
        }
    }

    fn goes_on(&self, control: &Control) -> bool {
        let Value::Sizes(count) = control.value else { panic!("{control:?}") };
        let said = match control.condition {
            Some(Where::Arena(OUTER)) => self.made.0 < self.decision.turns.len(),
            Some(Where::Arena(INNER)) => self.made.1 < self.decision.turns[self.made.0],
            None => true,
            other => panic!("{other:?}"),
        };
        said && self.word(control.progress) < self.word(count)
    }
}

/// The launches and their sizes, as the program says.
fn defined(n: i64, decision: &Decision) -> Vec<(u32, i64)> {
    let taken = i64::from(decision.taken);
    let mut out = vec![(0, n * 100), (1, taken * 7 + n)];
    out.push(if decision.taken { (2, n * 60) } else { (3, n * 40) });
    for (i, inner) in (0..).zip(&decision.turns) {
        let own = (4, (i + 1) % 2 * n + taken);
        out.push(own);
        for j in 0..(*inner).min(3) {
            out.extend((0..i % 2 + 1).map(|k| (5, i % 3 * 100 + j * 10 + k)));
        }
        out.push(own);
    }
    out.push((6, decision.turns.len() as i64 % 2 * 50 + n));
    out
}

fn walked(evaluated: &Evaluated, decision: &Decision) -> Vec<(u32, i64)> {
    let (sizes, seen) = (evaluated.sizes.clone(), Vec::new());
    let mut machine = Machine { evaluated, decision, sizes, made: (0, 0), seen };
    // The second walk finds the sizes as the first one left them.
    let first = machine.walk(0);
    let seen = std::mem::take(&mut machine.seen);
    assert_eq!((machine.walk(0), &machine.seen), (first, &seen));
    seen
}

#[test]
fn gpus_do_what_programs_say_whatever_data_decide() {
    let program = program();
    let device = OnDevice::of_all(&program, &program.targets[0]).unwrap();
    let (_, templates) = templates(&program);
    let most = most_sizes(&templates, &program.steps, &Scope::new(&program.symbols), Some(&device));
    for n in [1, 4] {
        let evaluated = evaluated(&program, &device, n, false);
        assert!(evaluated.sizes.len() <= most && evaluated.decides);
        for turns in [vec![], vec![2], vec![0, 5, 1], vec![1; 20], vec![3, 0, 0, 2, 1, 1, 7]] {
            for taken in [false, true] {
                let decision = Decision { taken, turns: turns.clone() };
                assert_eq!(walked(&evaluated, &decision), defined(n, &decision), "{decision:?}");
            }
        }
    }
}

#[test]
fn there_is_room_for_the_sizes_of_every_run() {
    let around = |inner: Loop| {
        let body = vec![Step::Launch(0), Step::Loop(Box::new(inner))];
        let steps = vec![Step::Loop(Box::new(repeated(K, dim(N), None, body)))];
        Program { steps, ..program() }
    };
    // Ended by data, in every turn of a loop that sizes end.
    let program = around(repeated(J, FOR_EVER.into(), Some(INNER), vec![Step::Launch(4)]));
    let device = OnDevice::of_all(&program, &program.targets[0]).unwrap();
    let scope = Scope::new(&program.symbols);
    let most = most_sizes(&templates(&program).1, &program.steps, &scope, Some(&device));
    for n in 1..=9 {
        assert!(evaluated(&program, &device, n, false).sizes.len() <= most, "{n}");
    }
    // Many turns, and the more the fewer the turns around them are.
    let count = Dim::from(3000) - dim(N) * 300;
    let program = around(repeated(J, count, None, vec![Step::Launch(5)]));
    let (placement, templates) = templates(&program);
    let scope = Scope::new(&program.symbols);
    let most = most_sizes(&templates, &program.steps, &scope, None);
    let mut whole = 0;
    for n in 1..=9 {
        let atoms = vec![n; program.symbols.len()];
        if is_whole(&program.steps[0], &atoms) {
            let layout = Layout::new(&program, &placement, &atoms);
            let how = How { layout, templates: &templates, device: None, rehearsed: false };
            assert!(evaluate(how, &program.steps, &atoms).unwrap().sizes.len() <= most, "{n}");
            whole += 1;
        }
    }
    assert!((1..9).contains(&whole));
}

#[test]
fn rehearsed_loops_end() {
    let program = program();
    let device = OnDevice::of_all(&program, &program.targets[0]).unwrap();
    let evaluated = evaluated(&program, &device, 2, true);
    let decision = Decision { taken: true, turns: vec![9; 9] };
    let outer = walked(&evaluated, &decision).iter().filter(|(step, _)| *step == 4).count();
    assert_eq!(outer, 2 * 2);
}

#[test]
fn loops_lie_behind_their_headers() {
    let mut program = program();
    program.steps = vec![program.steps[5].clone()];
    let Step::Loop(repeated) = &program.steps[0] else { panic!("{:?}", program.steps) };
    let device = OnDevice::of_loop(&program, &program.targets[0], repeated).unwrap();
    let evaluated = evaluated(&program, &device, 3, false);
    let [Action::Control(begin), ..] = &*evaluated.actions else { panic!("{evaluated:?}") };
    assert_eq!((begin.progress, begin.sizes), (PROGRESS as u64, HEADER as u64));
    assert_eq!(begin.value, Value::Sizes(0));
    assert_eq!(evaluated.sizes[..8], FOR_EVER.to_le_bytes());
    assert_eq!(begin.period, 6);
}

#[test]
fn what_the_host_has_to_know_is_not_decided_on_gpus() {
    let is = |change: &dyn Fn(&mut Program)| {
        let mut program = program();
        change(&mut program);
        let (_, templates) = templates(&program);
        let Decisions { all, loops, sizes } =
            Decisions::new(&program, &program.targets[0], &templates);
        assert_eq!(sizes > 0, all.is_some() || !loops.is_empty());
        let mut loops: Vec<u32> = loops.keys().map(|id| id.0).collect();
        loops.sort_unstable();
        (all.is_some(), loops)
    };
    let (all, outer, inner) = ((true, vec![]), (false, vec![I.0]), (false, vec![J.0]));
    assert_eq!(is(&|_| ()), all);
    // The kernel is missing.
    assert_eq!(is(&|p| p.targets[0].loop_control = None), (false, vec![]));
    // The caller is told.
    let port = |symbol| Port { name: "y".into(), dtype: DType::F32, shape: vec![dim(symbol)] };
    assert_eq!(is(&|p| p.outputs.push(port(TURNS))), outer);
    assert_eq!(is(&|p| p.outputs.push(port(TAKEN))), outer);
    // Sizes that do not repeat are many.
    let size = |n: usize, size: Dim| {
        move |p: &mut Program| {
            p.targets[0].launches[n][0].sizes[0] = LaunchSize::I32(size.clone());
        }
    };
    assert_eq!(is(&size(4, dim(I))), inner);
    assert_eq!(is(&size(6, dim(TURNS))), outer);
    assert_eq!(is(&size(5, dim(J) * dim(J))), all);
    // Something is checked in every iteration, or before all.
    let guard = || Guard { lhs: dim(TAKEN), rhs: Dim::ONE, node: "x".into() };
    assert_eq!(is(&|p| p.guards.push(guard())), outer);
    let guarded = |lhs: Dim| {
        move |p: &mut Program| {
            let Some(Step::Loop(outer)) = p.steps.get_mut(5) else { panic!("{p:?}") };
            outer.guards.push(Guard { lhs: lhs.clone(), rhs: Dim::ONE, node: "x".into() });
        }
    };
    assert_eq!(is(&guarded(dim(I))), inner);
    assert_eq!(is(&guarded(dim(TAKEN))), outer);
    // Loops within it that follow from sizes have iterations, which are not one size before it.
    let inside = |lhs: Dim| {
        move |p: &mut Program| {
            let body = vec![Step::Loop(Box::new(Loop {
                guards: vec![Guard { lhs: lhs.clone(), rhs: Dim::ONE, node: "x".into() }],
                ..repeated(J, FOR_EVER.into(), Some(INNER), vec![Step::Launch(0)])
            }))];
            p.steps = vec![Step::Loop(Box::new(repeated(K, dim(N), None, body)))];
        }
    };
    assert_eq!(is(&inside(dim(K))), (false, vec![J.0]));
    assert_eq!(is(&inside(dim(N))), (true, vec![K.0]));
    // What follows from the sizes before the run is checked before it.
    assert_eq!(is(&guarded(dim(N))), (true, vec![I.0]));
    let mut program = program();
    guarded(dim(N))(&mut program);
    let device = OnDevice::of_all(&program, &program.targets[0]).unwrap();
    assert_eq!([0, 1, 2].map(|n| device.is_safe(&[n])), [false, true, false]);
    // A size that may be out of its range.
    let unsure = |p: &mut Program| {
        p.steps[1] = Step::ReadBack { symbol: TAKEN, buffer: TRUTH, sure: false };
    };
    assert_eq!(is(&unsure), outer);
    // Another kernel, or another length.
    let other = |p: &mut Program| {
        let launch = p.targets[0].launches[4][0].clone();
        let when = Cond::Cmp(aot_ir::dim::Cmp::Eq, modulo(dim(I), 2), Dim::ZERO);
        p.targets[0].launches[4].insert(0, Launch { when, ..launch });
    };
    assert_eq!(is(&other), inner);
    let copies = |p: &mut Program| {
        p.buffers[1].elements = dim(TAKEN);
        p.steps.push(Step::Copy { from: OUTER, to: INNER });
    };
    assert_eq!(is(&copies), outer);
}
