//! Which steps need no word from the host: what data decide in them is decided on the GPU.
//!
//! Sizes that follow from what the run computes are few where this holds: those of a loop's iterations repeat, or are
//! those of a known number of iterations; those after a branch are one of two. All of them are evaluated ahead, as rows,
//! and a kernel ([`Target::loop_control`]) brings the row that is wanted to where kernels read their sizes.

use std::collections::HashMap;

use aot_ir::{Dim, Guard, Scope, SymId};

use super::evaluate::{MOST_LAUNCHES, actions, most_sizes};
use super::templates::Templates;
use crate::program::{Launch, LaunchSize, Loop, Program, Step, Target};

/// Rows that sizes repeat after, at most.
const MOST_PERIOD: i64 = 16;
/// Rows of sizes that do not repeat, at most.
const MOST_ROWS: i64 = 2048;
/// Bytes of all rows, at most.
const MOST_BYTES: usize = 2 << 20;
/// A truth value is one of so many.
const TRUTHS: i64 = 2;

/// What of a program is decided on the GPU.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    /// Everything that data decide.
    pub(super) all: Option<OnDevice>,
    /// Loops that need no word from the host on the way, by what counts their iterations, where that is not everything or
    /// not always.
    pub(super) loops: HashMap<SymId, OnDevice>,
    /// Bytes of what kernels read of sizes then, at most.
    pub(super) sizes: usize,
}

impl Decisions {
    /// What a target's kernels, whose launches these are, can decide.
    pub(super) fn new(program: &Program, target: &Target, templates: &Templates) -> Self {
        let scope = Scope::new(&program.symbols);
        let greatest = |dim: &Dim| Some(scope.interval(dim).hi);
        let mut out = Self::default();
        let mut take = |steps: &[Step], found: Option<OnDevice>| {
            let found = found?;
            let bytes = most_sizes(templates, steps, &scope, Some(&found));
            let few = actions(steps, &greatest, Some(&found)).is_some_and(|n| n <= MOST_LAUNCHES);
            let fits = few && bytes <= MOST_BYTES;
            out.sizes = out.sizes.max(if fits { bytes } else { 0 });
            fits.then_some(found)
        };
        let all = take(&program.steps, OnDevice::of_all(program, target));
        let mut loops = HashMap::new();
        let always = all.as_ref().is_some_and(|found| found.guards.is_empty());
        let mut pending: Vec<&Step> = program.steps.iter().filter(|_| !always).collect();
        while let Some(step) = pending.pop() {
            let Step::Loop(repeated) = step else { continue };
            match take(std::slice::from_ref(step), OnDevice::of_loop(program, target, repeated)) {
                Some(found) => drop(loops.insert(repeated.iteration, found)),
                None => pending.extend(&repeated.body),
            }
        }
        Self { all, loops, ..out }
    }
}

/// What is decided on the GPU, and from how many rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OnDevice {
    /// By what counts a loop's iterations: rows for its first iterations, after which they begin anew.
    loops: HashMap<SymId, i64>,
    /// By a symbol that the run binds: rows for its first sizes, after which they begin anew.
    chosen: HashMap<SymId, i64>,
    /// What is checked where data lead to it, and follows from sizes before the run.
    guards: Vec<Guard>,
}

impl OnDevice {
    /// All steps of a program, if they need no word from the host. It does not learn the sizes that the run binds then.
    pub(super) fn of_all(program: &Program, target: &Target) -> Option<Self> {
        Self::of(program, target, |analysis| analysis.foresees(&program.steps))
    }

    /// A loop alone, if its iterations need no word from the host, which reads how many were made.
    pub(super) fn of_loop<'p>(
        program: &'p Program,
        target: &'p Target,
        repeated: &'p Loop,
    ) -> Option<Self> {
        Self::of(program, target, |analysis| analysis.foresees_turns(repeated))
    }

    fn of<'p>(
        program: &'p Program,
        target: &'p Target,
        foresee: impl FnOnce(&mut Analysis<'p>) -> Option<()>,
    ) -> Option<Self> {
        target.loop_control?;
        let (found, bound, repeated) = (Self::default(), Vec::new(), Vec::new());
        let mut analysis = Analysis { program, target, found, bound, repeated };
        foresee(&mut analysis)?;
        let decides = !analysis.found.loops.is_empty() || !analysis.found.chosen.is_empty();
        decides.then_some(analysis.found)
    }

    /// Whether nothing has to be checked at sizes given by the symbols' atoms, wherever data lead.
    pub(super) fn is_safe(&self, atoms: &[i64]) -> bool {
        let holds = |guard: &Guard| {
            let both = guard.lhs.eval(atoms).ok().zip(guard.rhs.eval(atoms).ok());
            both.is_some_and(|(lhs, rhs)| lhs == rhs)
        };
        self.guards.iter().all(holds)
    }

    /// The rows of a loop that is a node of a graph, by what counts its iterations.
    pub(super) fn rows(&self, iteration: SymId) -> Option<i64> {
        self.loops.get(&iteration).copied()
    }

    /// The rows that a symbol chooses from.
    pub(super) fn choices(&self, symbol: SymId) -> Option<i64> {
        self.chosen.get(&symbol).copied()
    }
}

struct Analysis<'p> {
    program: &'p Program,
    target: &'p Target,
    found: OnDevice,
    /// Symbols that have a size on the GPU only.
    bound: Vec<SymId>,
    /// Symbols of loops among these steps, which have no size before them.
    repeated: Vec<SymId>,
}

impl<'p> Analysis<'p> {
    /// None unless steps, of which everything around is foreseen, need no word from the host.
    fn foresees(&mut self, steps: &'p [Step]) -> Option<()> {
        let outer = self.bound.len();
        for (i, step) in steps.iter().enumerate() {
            let rest = &steps[i + 1..];
            match step {
                Step::Launch(n) => {
                    let variants = self.variants(*n);
                    let chosen = |l: &Launch| self.bound.iter().any(|s| l.when.mentions(*s));
                    if variants.len() > 1 && variants.iter().any(chosen) {
                        return None;
                    }
                }
                Step::Copy { from, .. } => {
                    if self.decided(&self.program.buffers.get(from.0 as usize)?.elements) {
                        return None;
                    }
                }
                Step::ReadBack { symbol, sure: true, .. } => self.choose(*symbol, TRUTHS)?,
                Step::ReadBack { .. } | Step::Host(_) => return None,
                Step::Loop(repeated) => self.foresees_loop(repeated, rest)?,
            }
        }
        self.bound.truncate(outer);
        Some(())
    }

    /// As [`Analysis::foresees`] of a loop and the steps after it.
    fn foresees_loop(&mut self, repeated: &'p Loop, rest: &'p [Step]) -> Option<()> {
        self.foresees_turns(repeated)?;
        let Some(turns) = repeated.turns else { return Some(()) };
        self.repeated.push(turns);
        if !self.found.loops.contains_key(&repeated.iteration) {
            return None;
        }
        let dims = self.dims(rest);
        match dims.iter().any(|dim| dim.mentions(turns)) || self.is_told(turns) {
            true => self.choose(turns, period(&dims, turns)?),
            false => Some(()),
        }
    }

    /// As [`Analysis::foresees`] of a loop, whose number of iterations nobody asks for.
    fn foresees_turns(&mut self, repeated: &'p Loop) -> Option<()> {
        self.bound.push(repeated.iteration);
        let mut sides = repeated.guards.iter().flat_map(|guard| [&guard.lhs, &guard.rhs]);
        let varies = sides.any(|dim| {
            self.decided(dim) || self.repeated.iter().any(|symbol| dim.mentions(*symbol))
        });
        self.bound.pop();
        if varies {
            return None;
        }
        self.found.guards.extend_from_slice(&repeated.guards);
        if repeated.condition.is_none() && !self.decided(&repeated.count) {
            self.repeated.push(repeated.iteration);
            return self.foresees(&repeated.body);
        }
        self.bound.push(repeated.iteration);
        self.foresees(&repeated.body)?;
        self.bound.pop();
        let rows = period(&self.dims(&repeated.body), repeated.iteration).or_else(|| {
            let most = Scope::new(&self.program.symbols).interval(&repeated.count).hi;
            (most <= MOST_ROWS).then_some(most.max(1))
        })?;
        // A symbol that counts two loops would have the rows of one.
        match self.found.loops.insert(repeated.iteration, rows) {
            Some(_) => None,
            None => Some(()),
        }
    }

    /// A symbol gets its size on the GPU, where it chooses the sizes of the rest.
    fn choose(&mut self, symbol: SymId, rows: i64) -> Option<()> {
        if self.is_told(symbol) || self.found.chosen.insert(symbol, rows).is_some() {
            return None;
        }
        self.bound.push(symbol);
        Some(())
    }

    /// Whether a dim has a value on the GPU only.
    fn decided(&self, dim: &Dim) -> bool {
        self.bound.iter().any(|symbol| dim.mentions(*symbol))
    }

    /// Whether the caller is told a symbol, or errors depend on it.
    fn is_told(&self, symbol: SymId) -> bool {
        let Program { inputs, outputs, guards, .. } = self.program;
        let shapes = inputs.iter().chain(outputs).flat_map(|port| &port.shape);
        let guards = guards.iter().flat_map(|guard| [&guard.lhs, &guard.rhs]);
        shapes.chain(guards).any(|dim| dim.mentions(symbol))
    }

    fn variants(&self, launch: u32) -> &'p [Launch] {
        self.target.launches.get(launch as usize).map_or(&[], Vec::as_slice)
    }

    /// What launches of steps have of sizes, and how often loops are repeated.
    fn dims(&self, steps: &'p [Step]) -> Vec<&'p Dim> {
        let mut out = Vec::new();
        for step in steps {
            match step {
                Step::Launch(n) => {
                    for launch in self.variants(*n) {
                        out.push(&launch.blocks);
                        out.extend(launch.sizes.iter().filter_map(|size| match size {
                            LaunchSize::I64(dim) | LaunchSize::I32(dim) => Some(dim),
                            LaunchSize::Early => None,
                        }));
                    }
                }
                Step::Loop(repeated) => {
                    out.push(&repeated.count);
                    out.extend(self.dims(&repeated.body));
                }
                Step::Copy { .. } | Step::ReadBack { .. } | Step::Host(_) => {}
            }
        }
        out
    }
}

/// After how much of a symbol all dims repeat.
fn period(dims: &[&Dim], symbol: SymId) -> Option<i64> {
    Dim::common_period(dims.iter().copied(), symbol, MOST_PERIOD)
}
