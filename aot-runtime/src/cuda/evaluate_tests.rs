//! Evaluation against its definition, on random programs.

use std::collections::HashMap;
use std::sync::Arc;

use aot_ir::dim::{Atom, Cmp, Cond};
use aot_ir::{Arch, DType, Dim, Scope, SymId, Symbol, Symbols};

use super::super::actions::{Action, Blocks};
use super::super::context::Places;
use super::super::flight::LaunchId;
use super::super::layout::{Layout, Placement};
use super::super::templates::Templates;
use super::{Evaluated, How, evaluate, most_sizes};
use crate::program::{
    Buffer, BufferId, Launch, LaunchArg, LaunchSize, Loop, MemoryPlan, Place, Program, Step, Target,
};
use crate::{Error, Result};

/// Where buffers, by index, begin.
const ADDRESSES: [u64; 5] = [0x100, 0x200, 0x1_0300, 0x2_0400, 0x500];
const PLACES: Places<'_> = Places {
    arena: 0x1_0000,
    offsets: &[],
    scratch: 0x2_0000,
    sizes: 0x40_0000,
    progress: 0x50_0000,
    inputs: &[0x100],
    outputs: &[0x200],
};
/// The symbol of the shapes.
const N: SymId = SymId(0);
/// What counts the iterations of a loop, and of one within it.
const COUNTERS: [SymId; 2] = [SymId(1), SymId(2)];

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    fn list<T>(&mut self, most: u64, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| make(self)).collect()
    }

    /// An expression, which few sizes make fail.
    fn dim(&mut self, depth: u64) -> Dim {
        let kind = if depth == 0 { self.below(4) } else { self.below(9) };
        match kind {
            0 => Dim::from(self.below(40) as i64),
            1..4 => Dim::atom(Atom::Sym(SymId(self.below(3) as u32))),
            4 => self.dim(depth - 1) + self.dim(depth - 1),
            5 => self.dim(depth - 1) * self.dim(depth - 1),
            6 => Dim::atom(Atom::FloorDiv(self.dim(depth - 1), self.dim(0) + 1)),
            7 => Dim::atom(Atom::Mod(self.dim(depth - 1), self.dim(0))),
            _ => Dim::atom(Atom::Select(
                self.cond(),
                self.dim(depth - 1),
                self.dim(0).scaled(1 << 28),
            )),
        }
    }

    fn cond(&mut self) -> Cond {
        let cmp = [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le][self.below(4) as usize];
        Cond::Cmp(cmp, self.dim(1), Dim::from(self.below(12) as i64))
    }

    fn launch(&mut self, kernel: u32, last: bool) -> Launch {
        let mut sizes = self.list(4, |r| match r.below(4) {
            0 => LaunchSize::I64(r.dim(2)),
            _ => LaunchSize::I32(r.dim(2)),
        });
        let mut args = self.list(4, |r| match r.below(8) {
            0 => LaunchArg::Sizes,
            1 => LaunchArg::I64(-3),
            2 => LaunchArg::I32(r.below(9) as i32),
            3 => LaunchArg::Progress,
            4 => LaunchArg::Number,
            _ => LaunchArg::Buffer(BufferId(r.below(ADDRESSES.len() as u64) as u32)),
        });
        match self.below(3) {
            0 => sizes.insert(self.below(sizes.len() as u64 + 1) as usize, LaunchSize::Early),
            1 => args.insert(self.below(args.len() as u64 + 1) as usize, LaunchArg::Early),
            _ => {}
        }
        Launch {
            when: if last && self.below(20) > 0 { Cond::always() } else { self.cond() },
            kernel,
            blocks: if self.below(2) == 0 {
                self.below(3).cast_signed().into()
            } else {
                self.dim(1)
            },
            early: self.below(3) > 0,
            args,
            sizes,
        }
    }

    /// Steps in so many loops.
    fn steps(&mut self, deep: usize, launches: usize) -> Vec<Step> {
        self.list(6, |r| match r.below(8) {
            0 => Step::Copy { from: BufferId(r.below(5) as u32), to: BufferId(r.below(5) as u32) },
            1 if deep < COUNTERS.len() => Step::Loop(Box::new(Loop {
                iteration: COUNTERS[deep],
                count: Dim::from(r.below(4) as i64),
                condition: None,
                turns: None,
                guards: Vec::new(),
                body: r.steps(deep + 1, launches),
            })),
            _ => Step::Launch(r.below(launches as u64) as u32),
        })
    }

    fn program(&mut self) -> Program {
        let mut symbols = Symbols::default();
        symbols.add(Symbol::new("n", 0, 9, 1));
        for _ in COUNTERS {
            symbols.add(Symbol::in_run("i", 0, 3));
        }
        let launches: Vec<Vec<Launch>> = (0..4)
            .map(|_| {
                let most = self.below(3) as u32;
                (0..=most).map(|kernel| self.launch(kernel, kernel == most)).collect()
            })
            .collect();
        let places = [
            Place::Input(0),
            Place::Output(0),
            Place::Arena,
            Place::ZeroedScratch,
            Place::Weight(0),
        ];
        let buffers = places
            .map(|place| Buffer { dtype: DType::F32, elements: self.dim(1), place })
            .into_iter()
            .collect();
        let offsets = vec![(BufferId(2), ADDRESSES[2] - PLACES.arena)];
        Program {
            model: "m".into(),
            symbols,
            buffers,
            plans: vec![MemoryPlan { bounds: vec![9, 3, 3], offsets, total: 1 << 10 }],
            steps: self.steps(0, launches.len()),
            targets: vec![Target {
                arch: Arch::of_capability(90),
                ptx: false,
                kernels: Vec::new(),
                launches,
                loop_control: None,
            }],
            ..Program::default()
        }
    }
}

/// What is put into a stream.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Launch { step: u32, kernel: u32, blocks: Blocks, words: Vec<u64>, sizes: Vec<u8> },
    Copy { from: u64, to: u64, bytes: usize },
}

/// What a step comes to; a launch with the values of its sizes.
#[derive(Debug)]
enum Chosen<'p> {
    Launch { step: u32, launch: &'p Launch, blocks: Blocks, values: Vec<i64> },
    Copy { from: BufferId, to: BufferId, bytes: usize },
}

/// What steps come to, in order.
fn choose<'p>(
    program: &'p Program,
    steps: &'p [Step],
    atoms: &[i64],
    out: &mut Vec<Chosen<'p>>,
) -> Result<()> {
    for step in steps {
        match step {
            Step::Launch(n) => {
                let mut choice = None;
                for launch in &program.targets[0].launches[*n as usize] {
                    if choice.is_none() && launch.when.eval(atoms)? {
                        choice = Some(launch);
                    }
                }
                let none = || Error::artifact("the program", "no kernel is for these sizes");
                let launch = choice.ok_or_else(none)?;
                let blocks = launch.blocks.eval(atoms)?;
                let many = |_| Error::Execution(format!("a kernel would need {blocks} blocks"));
                let number = u32::try_from(blocks.max(0)).map_err(many)?;
                let mut values = Vec::new();
                for size in &launch.sizes {
                    let value = match size {
                        LaunchSize::I64(dim) | LaunchSize::I32(dim) => dim.eval(atoms)?,
                        LaunchSize::Early => 0,
                    };
                    if matches!(size, LaunchSize::I32(_)) && i32::try_from(value).is_err() {
                        let reason = format!("a size, {value}, exceeds 32 bits");
                        return Err(Error::Execution(reason));
                    }
                    values.push(value);
                }
                let blocks = match launch.blocks.as_const() {
                    Some(_) => Blocks::Exactly(number),
                    None => Blocks::AtLeast(number),
                };
                out.push(Chosen::Launch { step: *n, launch, blocks, values });
            }
            Step::Copy { from, to } => {
                let elements = program.buffers[from.0 as usize].elements.eval(atoms)?;
                let bytes = elements.max(0) as usize * 4;
                out.push(Chosen::Copy { from: *from, to: *to, bytes });
            }
            Step::Loop(repeated) => {
                let mut atoms = atoms.to_vec();
                for at in 0..repeated.count.eval(atoms.as_slice())? {
                    atoms[repeated.iteration.0 as usize] = at;
                    choose(program, &repeated.body, &atoms, out)?;
                }
            }
            Step::ReadBack { .. } | Step::Host(_) => panic!("{step:?}"),
        }
    }
    Ok(())
}

/// Appends a number at a multiple of its length.
fn pack(bytes: &mut Vec<u8>, number: &[u8]) {
    bytes.resize(bytes.len().next_multiple_of(number.len()), 0);
    bytes.extend(number);
}

/// What the program comes to by definition.
fn defined(program: &Program, atoms: &[i64]) -> Result<Vec<Seen>> {
    let mut all = Vec::new();
    choose(program, &program.steps, atoms, &mut all)?;
    // A launch without blocks does not wait, so that what comes after it must; nor does one that can't be told begin
    // the next one early.
    let lets = |chosen: &Chosen<'_>| match chosen {
        Chosen::Launch { launch, blocks, .. } => {
            let told = launch.args.contains(&LaunchArg::Early)
                || launch.sizes.contains(&LaunchSize::Early);
            told && *blocks != Blocks::Exactly(0)
        }
        Chosen::Copy { .. } => false,
    };
    let is_early = |at: usize| match &all.get(at) {
        Some(Chosen::Launch { launch, blocks, .. }) => {
            launch.early && *blocks != Blocks::Exactly(0) && at > 0 && lets(&all[at - 1])
        }
        _ => false,
    };
    let mut end = 0;
    let seen = all.iter().enumerate().map(|(at, chosen)| match chosen {
        Chosen::Copy { from, to, bytes } => {
            let [from, to] = [from, to].map(|id| ADDRESSES[id.0 as usize]);
            Seen::Copy { from, to, bytes: *bytes }
        }
        Chosen::Launch { step, launch, blocks, values } => {
            let early = i32::from(is_early(at)) + 2 * i32::from(is_early(at + 1));
            let (mut sizes, mut bytes) = (Vec::new(), Vec::new());
            for (size, value) in launch.sizes.iter().zip(values) {
                match size {
                    LaunchSize::I64(_) => pack(&mut sizes, &value.to_le_bytes()),
                    LaunchSize::I32(_) => pack(&mut sizes, &(*value as i32).to_le_bytes()),
                    LaunchSize::Early => pack(&mut sizes, &early.to_le_bytes()),
                }
            }
            sizes.resize(sizes.len().next_multiple_of(16), 0);
            for arg in &launch.args {
                match arg {
                    LaunchArg::Sizes => pack(&mut bytes, &(PLACES.sizes + end).to_le_bytes()),
                    LaunchArg::Buffer(id) => {
                        pack(&mut bytes, &ADDRESSES[id.0 as usize].to_le_bytes());
                    }
                    LaunchArg::Progress => pack(&mut bytes, &PLACES.progress.to_le_bytes()),
                    LaunchArg::Number => {
                        let id = LaunchId { step: *step, kernel: launch.kernel };
                        pack(&mut bytes, &id.number().to_le_bytes());
                    }
                    LaunchArg::I64(number) => pack(&mut bytes, &number.to_le_bytes()),
                    LaunchArg::I32(number) => pack(&mut bytes, &number.to_le_bytes()),
                    LaunchArg::Early => pack(&mut bytes, &early.to_le_bytes()),
                }
            }
            bytes.resize(bytes.len().next_multiple_of(8).max(8), 0);
            end += sizes.len() as u64;
            let words = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
            let (words, kernel) = (words.collect(), launch.kernel);
            Seen::Launch { step: *step, kernel, blocks: *blocks, words, sizes }
        }
    });
    Ok(seen.collect())
}

/// What was evaluated, as streams get it.
fn seen(evaluated: &Evaluated, offsets: &[u64]) -> Vec<Seen> {
    let places = Places { offsets, ..PLACES };
    let mut words = vec![7];
    let seen = evaluated.actions.iter().map(|action| match action {
        Action::Launch { template, blocks, sizes, early } => {
            let template = &evaluated.templates.all()[*template];
            template.arguments(&places, *sizes, *early, &mut words);
            let start = *sizes as usize;
            Seen::Launch {
                step: template.id.step,
                kernel: template.id.kernel,
                blocks: *blocks,
                words: words.clone(),
                sizes: evaluated.sizes[start..start + template.room].to_vec(),
            }
        }
        Action::Copy { from, to, bytes } => {
            Seen::Copy { from: places.address(*from), to: places.address(*to), bytes: *bytes }
        }
        Action::Control(control) => panic!("{control:?}"),
    });
    seen.collect()
}

#[test]
fn evaluation_does_what_programs_say() {
    let mut random = Random(1);
    let (mut right, mut wrong) = (0, 0);
    for _ in 0..400 {
        let program = random.program();
        let placement = Placement::new(
            &program,
            &HashMap::from([(BufferId(4), ADDRESSES[4])]),
            &HashMap::from([(BufferId(3), ADDRESSES[3] - PLACES.scratch)]),
        );
        let place = |id| placement.place(id);
        let templates = Templates::new(&program.targets[0], &program.steps, place).unwrap();
        let templates = Arc::new(templates);
        let most = most_sizes(&templates, &program.steps, &Scope::new(&program.symbols), None);
        for n in 0..=9 {
            let atoms = [n, 3, 3];
            let layout = Layout::new(&program, &placement, &atoms);
            let how = How { layout, templates: &templates, device: None, rehearsed: false };
            let found = evaluate(how, &program.steps, &atoms);
            match (found, defined(&program, &atoms)) {
                (Ok(found), Ok(defined)) => {
                    assert_eq!(seen(&found, layout.offsets()), defined, "{program:?} at {n}");
                    assert!(found.sizes.len() <= most);
                    right += 1;
                }
                (Err(found), Err(defined)) => {
                    assert_eq!(found.to_string(), defined.to_string(), "{program:?} at {n}");
                    wrong += 1;
                }
                (found, defined) => panic!("{found:?}, {defined:?}: {program:?} at {n}"),
            }
        }
    }
    assert!(right > 1000 && wrong > 100, "{right} evaluations, {wrong} errors");
}

#[test]
fn variants_that_are_not_chosen_need_no_values() {
    let mut program = Random(2).program();
    let n = Dim::atom(Atom::Sym(N));
    let none = Dim::atom(Atom::Mod(Dim::ONE, n.clone()));
    let zero = Cond::Cmp(Cmp::Eq, n, Dim::ZERO);
    let launch = |when, size: &Dim| Launch {
        when,
        kernel: 0,
        blocks: size.clone(),
        early: false,
        args: Vec::new(),
        sizes: vec![LaunchSize::I32(size.clone())],
    };
    program.steps = vec![Step::Launch(0)];
    program.targets[0].launches =
        vec![vec![launch(zero, &Dim::from(5)), launch(Cond::always(), &none)]];
    let placement = Placement::new(&program, &HashMap::new(), &HashMap::new());
    let place = |id| placement.place(id);
    let sizes = |program: &Program, n| {
        let templates = Templates::new(&program.targets[0], &program.steps, place).unwrap();
        let layout = Layout::new(program, &placement, &[n, 3, 3]);
        let templates = &Arc::new(templates);
        let how = How { layout, templates, device: None, rehearsed: false };
        let evaluated = evaluate(how, &program.steps, &[n, 3, 3]);
        evaluated.map(|evaluated| evaluated.sizes[0]).map_err(|error| error.to_string())
    };
    assert_eq!((sizes(&program, 0), sizes(&program, 2)), (Ok(5), Ok(1)));
    program.targets[0].launches[0].remove(0);
    let error = "size expression 1 % s0 divides by a number that is not positive";
    assert_eq!(sizes(&program, 0), Err(error.to_owned()));
}
