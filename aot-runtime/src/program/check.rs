//! Whether a program read from a file refers only to what it has.

use super::{
    AppendedState, BufferId, InPlace, LaunchArg, LaunchSize, MemoryPlan, Place, Port, Program,
    Step, Target,
};
use crate::artifact::WEIGHT_ALIGNMENT;
use aot_ir::dim::{Atom, Cond};
use aot_ir::{DType, Dim, SymId};
use std::collections::HashSet;

impl Program {
    /// Checks every index, that sizes are sane and that memory plans hold what they must.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), String> {
        self.symbols.check()?;
        for (i, buffer) in self.buffers.iter().enumerate() {
            let (index, count, what) = match buffer.place {
                Place::Input(i) => (i, self.inputs.len(), "input"),
                Place::Output(i) => (i, self.outputs.len(), "output"),
                Place::Weight(i) => (i, self.weights.len(), "weight"),
                _ => continue,
            };
            if index as usize >= count {
                return Err(format!("buffer {i} is {what} {index} of {count}"));
            }
        }
        for weight in &self.weights {
            let elements = weight.shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
            let end = elements
                .and_then(|n| weight.dtype.bytes_for(n))
                .and_then(|n| n.checked_add(weight.offset));
            if end.is_none() || weight.offset % WEIGHT_ALIGNMENT != 0 {
                return Err(format!("weight `{}` has no sane place", weight.name));
            }
        }
        self.check_state()?;
        self.check_plans()?;
        let launches = self.origins.len();
        if self.work.len() != launches {
            return Err(format!(
                "the work of {} launches is known, of {launches}",
                self.work.len()
            ));
        }
        for step in self.prepare.iter().chain(&self.steps) {
            self.check_indices(step, launches)?;
        }
        self.targets.iter().try_for_each(|target| self.check_target(target))?;
        self.check_sizes()
    }

    fn check_state(&self) -> Result<(), String> {
        for (i, state) in self.state.iter().enumerate() {
            let input = self.inputs.get(state.input as usize);
            let output = self.outputs.get(state.output as usize);
            let alike = |a: &Port, b: &Port| a.dtype == b.dtype && a.shape.len() == b.shape.len();
            let earlier = &self.state[..i];
            let once = earlier.iter().all(|s| s.input < state.input && s.output != state.output);
            if !once || !input.zip(output).is_some_and(|(a, b)| alike(a, b)) {
                return Err(format!("state {i} is no input and output alike"));
            }
            let rank = input.map_or(0, |port| port.shape.len());
            let sane = |a: &AppendedState| {
                (a.axis as usize) < rank && a.capacity <= i32::MAX as u64 && a.dtype.bits() >= 8
            };
            if state.appended.is_some_and(|a| !sane(&a)) {
                return Err(format!("state {i} is appended to in no sane way"));
            }
        }
        Ok(())
    }

    fn check_indices(&self, step: &Step, launches: usize) -> Result<(), String> {
        match step {
            Step::Launch(i) if *i as usize >= launches => {
                Err(format!("a step is launch {i} of {launches}"))
            }
            Step::Launch(_) => Ok(()),
            Step::Copy { from, to } => {
                self.check_buffer(*from)?;
                self.check_buffer(*to)
            }
            Step::ReadBack { buffer, .. } => self.check_buffer(*buffer),
            Step::Host(step) => {
                let mut all = step.operands.iter().chain([&step.result]);
                all.try_for_each(|id| self.check_buffer(*id))
            }
            Step::Loop(repeated) => {
                repeated.condition.map_or(Ok(()), |id| self.check_buffer(id))?;
                repeated.body.iter().try_for_each(|step| self.check_indices(step, launches))
            }
        }
    }

    /// Whether every symbol is bound before a step or a port mentions it; all indices were checked.
    fn check_sizes(&self) -> Result<(), String> {
        let mut known: HashSet<SymId> = HashSet::new();
        for port in &self.inputs {
            self.check_known(&known, &port.shape, || format!("input `{}`", port.name))?;
        }
        for step in &self.prepare {
            self.check_step(&known, step)?;
        }
        self.check_run(&mut known, &self.steps)?;
        for port in &self.outputs {
            self.check_known(&known, &port.shape, || format!("output `{}`", port.name))?;
        }
        for guard in &self.guards {
            let what = || format!("the guard of `{}`", guard.node);
            self.check_known(&known, [&guard.lhs, &guard.rhs], what)?;
        }
        Ok(())
    }

    /// Checks steps in order; `known` gets the symbols that they bind.
    fn check_run(&self, known: &mut HashSet<SymId>, steps: &[Step]) -> Result<(), String> {
        let bind = |known: &mut HashSet<SymId>, symbol: SymId| match self.symbols.in_run(symbol)
            && known.insert(symbol)
        {
            true => Ok(()),
            false => Err(format!("dim {} is not one that a step can bind", symbol.0)),
        };
        for step in steps {
            match step {
                Step::ReadBack { symbol, buffer, .. } => {
                    bind(known, *symbol)?;
                    let place = &self.buffers[buffer.0 as usize];
                    if place.dtype != DType::I64 || !place.elements.is(1) {
                        return Err(format!("buffer {} is no size", buffer.0));
                    }
                }
                Step::Loop(repeated) => {
                    self.check_known(known, [&repeated.count], || "a loop".to_owned())?;
                    if let Some(id) = repeated.condition {
                        let place = &self.buffers[id.0 as usize];
                        if place.dtype != DType::Bool || !place.elements.is(1) {
                            return Err(format!("buffer {} is no condition", id.0));
                        }
                    }
                    let mut inner = known.clone();
                    bind(&mut inner, repeated.iteration)?;
                    self.check_run(&mut inner, &repeated.body)?;
                    for guard in &repeated.guards {
                        let what = || format!("the guard of `{}`", guard.node);
                        self.check_known(&inner, [&guard.lhs, &guard.rhs], what)?;
                    }
                    if let Some(turns) = repeated.turns {
                        bind(known, turns)?;
                    }
                }
                Step::Host(step) => {
                    self.check_known(known, step.op.dims(), || format!("`{}`", step.node))?;
                    let mut all = step.operands.iter().chain([&step.result]);
                    all.try_for_each(|id| self.check_length(known, *id))?;
                }
                Step::Launch(_) | Step::Copy { .. } => self.check_step(known, step)?,
            }
        }
        Ok(())
    }

    fn check_step(&self, known: &HashSet<SymId>, step: &Step) -> Result<(), String> {
        let what = || "a step".to_owned();
        match step {
            Step::Launch(n) => {
                let all = self.targets.iter().flat_map(|target| &target.launches[*n as usize]);
                for launch in all {
                    self.check_known(known, [&launch.blocks], what)?;
                    let sizes = launch.sizes.iter().filter_map(|size| match size {
                        LaunchSize::I64(dim) | LaunchSize::I32(dim) => Some(dim),
                        LaunchSize::Early => None,
                    });
                    self.check_known(known, sizes, what)?;
                    self.check_known(known, in_cond(&launch.when), what)?;
                    for arg in &launch.args {
                        // The arena has room for the greatest length; loops write what is not yet that long.
                        if let LaunchArg::Buffer(id) = arg
                            && self.buffers[id.0 as usize].place != Place::Arena
                        {
                            self.check_length(known, *id)?;
                        }
                    }
                }
                Ok(())
            }
            Step::Copy { from, to } => {
                self.check_length(known, *from)?;
                self.check_length(known, *to)
            }
            Step::ReadBack { .. } => Err("a size is read where no run is".to_owned()),
            Step::Loop(_) => Err("a loop is where no run is".to_owned()),
            Step::Host(_) => Err("the host computes where no run is".to_owned()),
        }
    }

    /// Whether it is known how long a buffer is.
    fn check_length(&self, known: &HashSet<SymId>, id: BufferId) -> Result<(), String> {
        let buffer = &self.buffers[id.0 as usize];
        let what = || format!("the length of buffer {}", id.0);
        if let Place::Output(n) = buffer.place {
            self.check_known(known, &self.outputs[n as usize].shape, what)?;
        }
        self.check_known(known, [&buffer.elements], what)
    }

    fn check_known<'d>(
        &self,
        known: &HashSet<SymId>,
        dims: impl IntoIterator<Item = &'d Dim>,
        what: impl Fn() -> String,
    ) -> Result<(), String> {
        let unknown = |atom: &Atom| match atom {
            Atom::Sym(id) => match self.symbols.get(*id) {
                Some(_) => self.symbols.in_run(*id) && !known.contains(id),
                None => true,
            },
            Atom::Var(_) | Atom::Value(_) => true,
            _ => false,
        };
        match dims.into_iter().any(|dim| dim.any(unknown)) {
            true => Err(format!("{} has a size that nothing gave before", what())),
            false => Ok(()),
        }
    }

    fn check_buffer(&self, id: BufferId) -> Result<(), String> {
        match self.buffers.get(id.0 as usize) {
            Some(_) => Ok(()),
            None => Err(format!("there is no buffer {} of {}", id.0, self.buffers.len())),
        }
    }

    fn check_plans(&self) -> Result<(), String> {
        let arena: Vec<usize> =
            (0..self.buffers.len()).filter(|&i| self.buffers[i].place == Place::Arena).collect();
        if self.plans.is_empty() && !arena.is_empty() {
            return Err("there is no memory plan".to_owned());
        }
        for InPlace { to, from } in &self.in_place {
            self.check_buffer(*to)?;
            self.check_buffer(*from)?;
        }
        for MemoryPlan { bounds, offsets, total } in &self.plans {
            if bounds.len() != self.symbols.len() {
                return Err("a memory plan does not bound every dim".to_owned());
            }
            for (id, offset) in offsets {
                self.check_buffer(*id)?;
                if offset % 256 != 0 || offset > total {
                    return Err(format!("buffer {} has no sane place in the arena", id.0));
                }
            }
            let placed = |i: &usize| offsets.iter().any(|(id, _)| id.0 as usize == *i);
            if let Some(i) = arena.iter().find(|i| !placed(i)) {
                return Err(format!("a memory plan has no place for buffer {i}"));
            }
        }
        if let Some(last) = self.plans.last() {
            let mut bounds = last.bounds.iter().zip(self.symbols.iter());
            if let Some((_, (_, symbol))) = bounds.find(|(bound, (_, symbol))| **bound < symbol.hi)
            {
                return Err(format!("no memory plan holds all sizes of `{}`", symbol.name));
            }
        }
        Ok(())
    }

    fn check_target(&self, target: &Target) -> Result<(), String> {
        if target.launches.len() != self.origins.len() {
            return Err(format!("{} has another number of launches", target.arch));
        }
        let launched = match target.loop_control {
            None => target.kernels.len(),
            Some(last) if last as usize + 1 == target.kernels.len() => last as usize,
            Some(n) => return Err(format!("kernel {n} of {} is not the last", target.arch)),
        };
        for variants in &target.launches {
            if variants.is_empty() {
                return Err(format!("{} has a launch without a kernel", target.arch));
            }
            for launch in variants {
                let kernel = target.kernels[..launched].get(launch.kernel as usize);
                if kernel.is_none_or(|k| k.threads == 0 || k.threads > 1024) {
                    return Err(format!("{} has a launch of no sane kernel", target.arch));
                }
                for arg in &launch.args {
                    if let LaunchArg::Buffer(id) = arg {
                        self.check_buffer(*id)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// The expressions that a condition compares.
fn in_cond(cond: &Cond) -> Vec<&Dim> {
    match cond {
        Cond::Cmp(_, a, b) => vec![a, b],
        Cond::All(parts) => parts.iter().flat_map(in_cond).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Buffer, Launch, LaunchWork, Loop, StatePort, Unit};
    use super::*;
    use aot_ir::{Arch, Symbol, Symbols};

    /// A program that reads a size from its input, and launches a kernel for as many elements.
    fn program() -> Program {
        let mut symbols = Symbols::default();
        let n = symbols.add(Symbol::in_run("n", 0, 9));
        let size = symbols.dim(n);
        let port =
            |name: &str, shape: Vec<Dim>| Port { name: name.into(), dtype: DType::I64, shape };
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
            guards: Vec::new(),
            inputs: vec![port("x", Vec::new())],
            outputs: vec![port("y", vec![size.clone()])],
            state: Vec::new(),
            weights: Vec::new(),
            buffers: vec![buffer(Dim::ONE, Place::Input(0)), buffer(size, Place::Output(0))],
            plans: Vec::new(),
            in_place: Vec::new(),
            prepare: Vec::new(),
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
        let counted =
            |symbols: &mut aot_ir::Symbols| symbols.add(aot_ir::Symbol::in_run("i", 0, 9));
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
}
