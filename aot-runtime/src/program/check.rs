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
#[path = "check_tests.rs"]
mod tests;
