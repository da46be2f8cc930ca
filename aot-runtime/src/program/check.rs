//! Whether a program read from a file refers only to what it has.

use super::{BufferId, LaunchArg, MemoryPlan, Place, Program, Step, Target};

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
            if end.is_none() || weight.offset % 64 != 0 {
                return Err(format!("weight `{}` has no sane place", weight.name));
            }
        }
        self.check_plans()?;
        let launches = self.origins.len();
        for step in self.prepare.iter().chain(&self.steps) {
            match step {
                Step::Launch(i) if *i as usize >= launches => {
                    return Err(format!("a step is launch {i} of {launches}"));
                }
                Step::Launch(_) => {}
                Step::Copy { from, to } => {
                    self.check_buffer(*from)?;
                    self.check_buffer(*to)?;
                }
            }
        }
        self.targets.iter().try_for_each(|target| self.check_target(target))
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
        Ok(())
    }

    fn check_target(&self, target: &Target) -> Result<(), String> {
        if target.launches.len() != self.origins.len() {
            return Err(format!("{} has another number of launches", target.arch));
        }
        for variants in &target.launches {
            if variants.is_empty() {
                return Err(format!("{} has a launch without a kernel", target.arch));
            }
            for launch in variants {
                let kernel = target.kernels.get(launch.kernel as usize);
                if kernel.is_none_or(|k| k.threads == 0 || k.threads > 1024) {
                    return Err(format!("{} has a launch of no sane kernel", target.arch));
                }
                for arg in &launch.args {
                    if let LaunchArg::Buffer(id, _) = arg {
                        self.check_buffer(*id)?;
                    }
                }
            }
        }
        Ok(())
    }
}
