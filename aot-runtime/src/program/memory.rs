//! Whether a memory plan keeps what is alive together apart.

use super::{BufferId, LaunchArg, Place, Program, Step};
use std::collections::BTreeMap;

/// Places in the order of a run at which a buffer is first and last needed, both inclusive.
type Life = (usize, usize);

impl Program {
    /// Which plan is for sizes given by the symbols' atoms: the first whose bounds hold them.
    pub fn plan_for(&self, atoms: &[i64]) -> Option<usize> {
        self.plans.iter().position(|plan| plan.bounds.iter().zip(atoms).all(|(b, atom)| atom <= b))
    }

    /// Checks that at sizes given by the symbols' atoms every buffer of the arena lies within it, and that no two
    /// overlap that are alive together, but for those that may [take the place](super::InPlace) of another one.
    ///
    /// What steps of a loop alone need is taken to be made anew in each iteration.
    ///
    /// # Errors
    /// Names the buffers.
    pub fn check_memory(&self, atoms: &[i64]) -> Result<(), String> {
        let lives = self.lives();
        let plan = self.plan_for(atoms).ok_or("no memory plan holds these sizes")?;
        let plan = &self.plans[plan];
        let offsets: BTreeMap<BufferId, u64> = plan.offsets.iter().copied().collect();
        let mut placed = Vec::with_capacity(lives.len());
        for (&id, &life) in &lives {
            let buffer = &self.buffers[id.0 as usize];
            let elements = buffer.elements.eval(atoms).map_err(|error| error.to_string())?;
            let bytes = buffer.dtype.bytes_for(elements.max(0) as u64);
            let start = *offsets.get(&id).ok_or_else(|| format!("buffer {} has no place", id.0))?;
            let end = bytes.and_then(|bytes| start.checked_add(bytes));
            match end {
                Some(end) if end > plan.total => {
                    return Err(format!("buffer {} exceeds the arena", id.0));
                }
                // What is empty overlaps nothing.
                Some(end) if end > start => placed.push((id, start, end, life)),
                Some(_) => {}
                None => return Err(format!("buffer {} has no sane length", id.0)),
            }
        }
        placed.sort_by_key(|(id, start, ..)| (*start, *id));
        for (i, a) in placed.iter().enumerate() {
            let next = placed[i + 1..].iter().take_while(|b| b.1 < a.2);
            for b in next.filter(|b| a.3.0 <= b.3.1 && b.3.0 <= a.3.1) {
                if !self.may_take_over(a.0, b.0, &lives) && !self.may_take_over(b.0, a.0, &lives) {
                    return Err(format!("buffers {} and {} overlap", a.0.0, b.0.0));
                }
            }
        }
        Ok(())
    }

    /// Whether a buffer may take the place of another one, and does where that one is needed last.
    fn may_take_over(
        &self,
        to: BufferId,
        from: BufferId,
        lives: &BTreeMap<BufferId, Life>,
    ) -> bool {
        let declared = self.in_place.iter().any(|pair| (pair.to, pair.from) == (to, from));
        let (a, b) = (&self.buffers[from.0 as usize], &self.buffers[to.0 as usize]);
        let alike = (a.dtype, &a.elements) == (b.dtype, &b.elements);
        declared && alike && lives[&from].1 == lives[&to].0
    }

    /// When the arena's buffers are needed, whatever the target and the kernels that are chosen.
    fn lives(&self) -> BTreeMap<BufferId, Life> {
        let mut order = Order::default();
        self.follow(&self.steps, &mut order);
        let mut lives: BTreeMap<BufferId, Life> = BTreeMap::new();
        let arena = |id: &BufferId| self.buffers[id.0 as usize].place == Place::Arena;
        for (id, at) in order.touches.into_iter().filter(|(id, _)| arena(id)) {
            let life = lives.entry(id).or_insert((at, at));
            *life = (life.0.min(at), life.1.max(at));
        }
        // What is needed outside of a loop too is handed from one iteration to the next.
        for (first, last) in order.loops {
            for life in lives.values_mut() {
                let within = first <= life.1 && life.0 <= last;
                if within && (life.0 < first || life.1 > last) {
                    *life = (life.0.min(first), life.1.max(last));
                }
            }
        }
        lives
    }

    fn follow(&self, steps: &[Step], order: &mut Order) {
        for step in steps {
            let at = order.now;
            match step {
                Step::Launch(n) => {
                    let all = self.targets.iter().flat_map(|target| &target.launches[*n as usize]);
                    for arg in all.flat_map(|launch| &launch.args) {
                        if let LaunchArg::Buffer(id) = arg {
                            order.touches.push((*id, at));
                        }
                    }
                }
                Step::Copy { from, to } => order.touches.extend([(*from, at), (*to, at)]),
                Step::ReadBack { buffer, .. } => order.touches.push((*buffer, at)),
                Step::Host(step) => {
                    let all = step.operands.iter().chain([&step.result]);
                    order.touches.extend(all.map(|id| (*id, at)));
                }
                Step::Loop(repeated) => {
                    order.now += 1;
                    self.follow(&repeated.body, order);
                    order.loops.push((at, order.now));
                    let condition = repeated.condition.iter();
                    order.touches.extend(condition.flat_map(|id| [(*id, at), (*id, order.now)]));
                }
            }
            order.now += 1;
        }
    }
}

/// The course of a run.
#[derive(Debug, Default)]
struct Order {
    now: usize,
    touches: Vec<(BufferId, usize)>,
    /// Where loops begin and end, inner ones first.
    loops: Vec<(usize, usize)>,
}

#[cfg(test)]
mod tests {
    use super::super::{Buffer, InPlace, Launch, Loop, MemoryPlan, Target};
    use super::*;
    use aot_ir::dim::Cond;
    use aot_ir::{Arch, DType, Dim, Symbol, Symbols};

    /// A chain of launches, each of which reads a buffer of `n` floats and writes the next one.
    fn chain(offsets: &[u64], total: u64) -> Program {
        let mut symbols = Symbols::default();
        let n = symbols.add(Symbol::new("n", 1, 64, 1));
        let buffer = Buffer { dtype: DType::F32, elements: symbols.dim(n), place: Place::Arena };
        let id = |i: usize| BufferId(i as u32);
        let launch = |i: usize| {
            let args = [id(i), id(i + 1)].map(LaunchArg::Buffer).to_vec();
            let (when, sizes) = (Cond::always(), Vec::new());
            vec![Launch { when, kernel: 0, blocks: Dim::ONE, early: false, args, sizes }]
        };
        let count = offsets.len() - 1;
        let placed = offsets.iter().enumerate().map(|(i, offset)| (id(i), *offset));
        Program {
            model: "m".into(),
            symbols,
            buffers: vec![buffer; offsets.len()],
            plans: vec![MemoryPlan { bounds: vec![64], offsets: placed.collect(), total }],
            steps: (0..count as u32).map(Step::Launch).collect(),
            targets: vec![Target {
                arch: Arch::of_capability(80),
                ptx: false,
                kernels: Vec::new(),
                launches: (0..count).map(launch).collect(),
                loop_control: None,
            }],
            origins: vec![Vec::new(); count],
            ..Program::default()
        }
    }

    fn says(program: &Program, n: i64, text: &str) {
        assert_eq!(program.check_memory(&[n]), Err(text.to_owned()));
    }

    #[test]
    fn buffers_that_are_alive_together_lie_apart() {
        let turns = chain(&[0, 256, 0, 256], 512);
        assert_eq!(turns.check_memory(&[64]), Ok(()));
        says(&turns, 65, "no memory plan holds these sizes");
        says(&chain(&[0, 256, 0, 512], 512), 64, "buffer 3 exceeds the arena");
        // 33 floats and more reach into the next one.
        let near = chain(&[0, 128, 0], 512);
        assert_eq!(near.check_memory(&[32]), Ok(()));
        says(&near, 33, "buffers 0 and 1 overlap");
    }

    #[test]
    fn in_place_is_said() {
        let mut program = chain(&[0, 256, 256, 0], 512);
        says(&program, 1, "buffers 1 and 2 overlap");
        program.in_place = vec![InPlace { to: BufferId(2), from: BufferId(1) }];
        assert_eq!(program.check_memory(&[64]), Ok(()));
        // It is read once more.
        let again = program.targets[0].launches[0][0].clone();
        program.targets[0].launches[2].push(again);
        says(&program, 64, "buffers 0 and 3 overlap");
        program.plans[0].offsets[3].1 = 512;
        program.plans[0].total = 1024;
        says(&program, 64, "buffers 1 and 2 overlap");
    }

    #[test]
    fn what_passes_through_a_loop_lives_throughout() {
        let mut program = chain(&[0, 256, 0, 256, 512], 768);
        assert_eq!(program.check_memory(&[64]), Ok(()));
        let body = program.steps.drain(1..3).collect();
        let iteration = program.symbols.add(Symbol::counter("i", 3.into(), 3));
        let (count, guards) = (Dim::from(3), Vec::new());
        let repeated = Loop { iteration, count, condition: None, turns: None, guards, body };
        program.steps.insert(1, Step::Loop(Box::new(repeated)));
        program.plans[0].bounds.push(3);
        // The buffer that comes in is wanted again in the next iteration.
        assert_eq!(program.check_memory(&[64, 0]), Err("buffers 1 and 3 overlap".to_owned()));
    }
}
