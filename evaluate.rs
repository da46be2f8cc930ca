//! What a program does at given sizes.

use super::layout::{Layout, take};
use crate::program::{
    Buffer, BufferId, Launch, LaunchArg, MemoryPlan, Place, Program, Step, Target,
};
use crate::{Error, Result};

/// Blocks of memory that addresses are relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    Input(u32),
    Output(u32),
    Weights,
    Prepared,
    PrepareScratch,
    Arena,
    Scratch,
}

/// A place in one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) base: Base,
    pub(crate) offset: u64,
}

/// One thing to put into the stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Launch {
        /// Index into the target's kernels.
        kernel: u32,
        grid: [u32; 3],
        /// The parameter, with zeros for addresses, in units of 8 bytes.
        arguments: Vec<u64>,
        /// Index into `arguments` and what stands there.
        addresses: Vec<(u32, Address)>,
    },
    Copy {
        from: Address,
        to: Address,
        bytes: usize,
    },
}

/// All of it, for one target and one set of sizes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Evaluated {
    pub(crate) actions: Vec<Action>,
    /// Bytes of the arena.
    pub(crate) arena: u64,
    /// Bytes of scratch memory that is zero before and after.
    pub(crate) scratch: u64,
    /// Bytes of every input.
    pub(crate) inputs: Vec<usize>,
    /// Bytes of every output.
    pub(crate) outputs: Vec<usize>,
}

/// Evaluates `steps` of a program at sizes given as atoms.
pub(crate) fn evaluate(
    program: &Program,
    target: &Target,
    layout: &Layout,
    steps: &[Step],
    atoms: &[i64],
) -> Result<Evaluated> {
    let at = At::new(program, target, layout, atoms)?;
    let mut actions = Vec::with_capacity(steps.len());
    for step in steps {
        match step {
            Step::Launch(index) => actions.extend(at.launch(*index)?),
            Step::Copy { from, to } => {
                let bytes = at.bytes(*from)?;
                if bytes != at.bytes(*to)? {
                    return Err(at.wrong("a copy is between buffers of different sizes"));
                }
                let (from, to) = (at.address(*from, 0)?, at.address(*to, 0)?);
                let bytes = usize::try_from(bytes).map_err(|_| at.wrong("a copy is too large"))?;
                actions.push(Action::Copy { from, to, bytes });
            }
        }
    }
    let port_bytes = |ports: &[crate::program::Port]| -> Result<Vec<usize>> {
        ports.iter().map(|port| at.port_bytes(port)).collect()
    };
    // `prepare` knows no sizes.
    let run = atoms.len() == program.symbols.len();
    Ok(Evaluated {
        actions,
        arena: at.plan.map_or(0, |plan| plan.total),
        scratch: at.scratch_bytes,
        inputs: if run { port_bytes(&program.inputs)? } else { Vec::new() },
        outputs: if run { port_bytes(&program.outputs)? } else { Vec::new() },
    })
}

/// The first plan that holds the sizes.
fn choose_plan<'a>(plans: &'a [MemoryPlan], atoms: &[i64]) -> Option<&'a MemoryPlan> {
    plans.iter().find(|p| {
        p.bounds.len() == atoms.len() && p.bounds.iter().zip(atoms).all(|(bound, atom)| atom <= bound)
    })
}

/// A program at given sizes.
struct At<'a> {
    program: &'a Program,
    target: &'a Target,
    layout: &'a Layout,
    atoms: &'a [i64],
    plan: Option<&'a MemoryPlan>,
    /// Offset of every buffer in the arena or the scratch memory.
    offsets: Vec<u64>,
    scratch_bytes: u64,
}

impl<'a> At<'a> {
    fn new(
        program: &'a Program,
        target: &'a Target,
        layout: &'a Layout,
        atoms: &'a [i64],
    ) -> Result<Self> {
        let plan = choose_plan(&program.plans, atoms);
        let offsets = vec![0; program.buffers.len()];
        let mut at = Self { program, target, layout, atoms, plan, offsets, scratch_bytes: 0 };
        let preparing = atoms.len() != program.symbols.len();
        if preparing {
            return Ok(at);
        }
        let arena = program.buffers.iter().any(|b| b.place == Place::Arena);
        if arena && plan.is_none() {
            return Err(at.wrong(format!("no memory plan holds the sizes {atoms:?}")));
        }
        if let Some(plan) = plan {
            for (id, offset) in &plan.offsets {
                let end = offset.checked_add(at.bytes(*id)?);
                if end.is_none_or(|end| end > plan.total) {
                    return Err(at.wrong(format!("buffer {} exceeds the arena", id.0)));
                }
                at.offsets[id.0 as usize] = *offset;
            }
        }
        for i in 0..program.buffers.len() {
            if program.buffers[i].place == Place::ZeroedScratch {
                let bytes = at.bytes(BufferId(i as u32))?;
                at.offsets[i] = take(&mut at.scratch_bytes, Some(bytes))?;
            }
        }
        Ok(at)
    }

    fn wrong(&self, reason: impl ToString) -> Error {
        Error::artifact(format!("the program of `{}`", self.program.model), reason)
    }

    fn buffer(&self, id: BufferId) -> Result<&'a Buffer> {
        let buffer = self.program.buffers.get(id.0 as usize);
        buffer.ok_or_else(|| self.wrong(format!("there is no buffer {}", id.0)))
    }

    fn bytes(&self, id: BufferId) -> Result<u64> {
        let Buffer { dtype, elements, .. } = self.buffer(id)?;
        let elements = u64::try_from(elements.eval(self.atoms)?).ok();
        let bytes = elements.and_then(|n| dtype.bytes_for(n));
        bytes.ok_or_else(|| self.wrong(format!("buffer {} has no sane size", id.0)))
    }

    fn port_bytes(&self, port: &crate::program::Port) -> Result<usize> {
        let mut elements = 1u64;
        for dim in &port.shape {
            let extent = u64::try_from(dim.eval(self.atoms)?).ok();
            let product = extent.and_then(|extent| elements.checked_mul(extent));
            elements = product.ok_or_else(|| self.wrong(format!("`{}` is too large", port.name)))?;
        }
        let bytes = port.dtype.bytes_for(elements).and_then(|b| usize::try_from(b).ok());
        bytes.ok_or_else(|| self.wrong(format!("`{}` is too large", port.name)))
    }

    fn address(&self, id: BufferId, add: i64) -> Result<Address> {
        let i = id.0 as usize;
        let (base, offset) = match self.buffer(id)?.place {
            Place::Input(n) => (Base::Input(n), 0),
            Place::Output(n) => (Base::Output(n), 0),
            Place::Weight(n) => {
                (Base::Weights, self.layout.weights.get(n as usize).copied().unwrap_or(0))
            }
            Place::Prepared => (Base::Prepared, self.layout.buffers[i]),
            Place::PrepareScratch => (Base::PrepareScratch, self.layout.buffers[i]),
            Place::Arena => (Base::Arena, self.offsets[i]),
            Place::ZeroedScratch => (Base::Scratch, self.offsets[i]),
        };
        // A view may begin before the buffer where the kernel does not read its first elements.
        Ok(Address { base, offset: offset.wrapping_add_signed(add) })
    }

    /// The launch with this index, unless it has no blocks.
    fn launch(&self, index: u32) -> Result<Option<Action>> {
        let variants = self.target.launches.get(index as usize).map_or(&[][..], |v| v.as_slice());
        let about = |reason: String| {
            let origin = self.program.origins.get(index as usize).and_then(|o| o.first());
            let origin = origin.map_or("", |o| o.as_str());
            self.wrong(format!("launch {index} (`{origin}`) {reason}"))
        };
        let mut chosen: Option<&Launch> = None;
        for variant in variants {
            if variant.when.eval(self.atoms)? {
                chosen = Some(variant);
                break;
            }
        }
        let launch = chosen.ok_or_else(|| about("has no kernel for these sizes".to_owned()))?;
        let mut grid = [0; 3];
        for (axis, (blocks, dim)) in grid.iter_mut().zip(&launch.grid).enumerate() {
            let value = dim.eval(self.atoms)?;
            let most = if axis == 0 { i64::from(i32::MAX) } else { 65535 };
            if !(0..=most).contains(&value) {
                return Err(about(format!("has {value} blocks along axis {axis}")));
            }
            *blocks = value as u32;
        }
        if grid.contains(&0) {
            return Ok(None);
        }
        let mut pack = Pack::default();
        let mut addresses = Vec::new();
        for arg in &launch.args {
            match arg {
                LaunchArg::Buffer(id, offset) => {
                    let address = self.address(*id, offset.eval(self.atoms)?)?;
                    addresses.push((pack.eight(0), address));
                }
                LaunchArg::I64(dim) => {
                    pack.eight(dim.eval(self.atoms)? as u64);
                }
                LaunchArg::I32(dim) => {
                    let value = dim.eval(self.atoms)?;
                    let value = i32::try_from(value)
                        .map_err(|_| about(format!("has argument {value}, beyond 32 bits")))?;
                    pack.four(value as u32);
                }
            }
        }
        Ok(Some(Action::Launch { kernel: launch.kernel, grid, arguments: pack.words, addresses }))
    }
}

/// Bytes of the parameter of a launch with these arguments.
pub(super) fn parameter_bytes(args: &[LaunchArg]) -> usize {
    let mut pack = Pack::default();
    let mut widest = 4;
    for arg in args {
        match arg {
            LaunchArg::I32(_) => pack.four(0),
            _ => {
                widest = 8;
                pack.eight(0);
            }
        }
    }
    pack.bytes.next_multiple_of(widest)
}

/// A structure of naturally aligned integers.
#[derive(Default)]
struct Pack {
    words: Vec<u64>,
    bytes: usize,
}

impl Pack {
    /// Adds 8 bytes; gives the index of their word.
    fn eight(&mut self, value: u64) -> u32 {
        self.words.push(value);
        self.bytes = self.words.len() * 8;
        self.words.len() as u32 - 1
    }

    fn four(&mut self, value: u32) {
        match (self.bytes.is_multiple_of(8), self.words.last_mut()) {
            (false, Some(last)) => *last |= u64::from(value) << 32,
            _ => self.words.push(u64::from(value)),
        }
        self.bytes += 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{KernelRef, Port, Weight};
    use aot_ir::dim::{Cmp, Cond};
    use aot_ir::{Arch, DType, Dim, Symbol, Symbols};

    fn sample() -> Program {
        let mut symbols = Symbols::default();
        let n = symbols.add(Symbol::new("n", 1, 64, 1));
        let n = symbols.dim(n);
        let buffer = |elements: &Dim, place| Buffer {
            dtype: DType::F32,
            elements: elements.clone(),
            place,
        };
        let port = |name: &str| Port {
            name: name.to_owned(),
            dtype: DType::F32,
            shape: vec![n.clone(), Dim::from(8)],
        };
        let plan = |bound, second, total| MemoryPlan {
            bounds: vec![bound],
            offsets: vec![(BufferId(2), 0), (BufferId(3), second)],
            total,
        };
        let launch = |when, kernel, args| Launch {
            when,
            kernel,
            grid: [n.clone(), Dim::ONE, Dim::ONE],
            args,
        };
        let args = vec![
            LaunchArg::Buffer(BufferId(0), Dim::ZERO),
            LaunchArg::Buffer(BufferId(3), &n * 4),
            LaunchArg::I64(&n * 8),
            LaunchArg::I32(n.clone()),
            LaunchArg::I32(Dim::from(-1)),
            LaunchArg::I32(Dim::from(7)),
        ];
        let few = Cond::Cmp(Cmp::Le, n.clone(), Dim::from(4));
        let kernel = |entry: &str| KernelRef {
            entry: entry.to_owned(),
            key: [0; 32],
            threads: 128,
            shared: 0,
        };
        Program {
            model: "m".into(),
            symbols,
            guards: vec![],
            inputs: vec![port("x")],
            outputs: vec![port("y")],
            weights: vec![
                Weight { name: "a".into(), dtype: DType::F16, shape: vec![3], offset: 0 },
                Weight { name: "b".into(), dtype: DType::F16, shape: vec![3], offset: 64 },
            ],
            buffers: vec![
                buffer(&(&n * 8), Place::Input(0)),
                buffer(&(&n * 8), Place::Output(0)),
                buffer(&(&n * 8), Place::Arena),
                buffer(&(&n * 8), Place::Arena),
                buffer(&Dim::from(3), Place::Weight(1)),
                buffer(&n, Place::ZeroedScratch),
                buffer(&Dim::from(100), Place::Prepared),
                buffer(&Dim::from(5), Place::Prepared),
            ],
            plans: vec![plan(4, 256, 512), plan(64, 2048, 4096)],
            prepare: vec![],
            steps: vec![
                Step::Launch(0),
                Step::Copy { from: BufferId(2), to: BufferId(1) },
            ],
            targets: vec![Target {
                arch: Arch::of_capability(90),
                ptx: false,
                kernels: vec![kernel("small"), kernel("large")],
                launches: vec![vec![
                    launch(few, 0, args.clone()),
                    launch(Cond::always(), 1, args),
                ]],
            }],
            origins: vec![vec!["/layer/MatMul".into()]],
        }
    }

    fn at(program: &Program, n: i64) -> Result<Evaluated> {
        let layout = Layout::new(program)?;
        evaluate(program, &program.targets[0], &layout, &program.steps, &[n])
    }

    #[test]
    fn arguments_are_packed_as_the_compiler_lays_them_out() {
        let program = sample();
        program.check().unwrap();
        let run = at(&program, 3).unwrap();
        let Action::Launch { kernel, grid, arguments, addresses } = &run.actions[0] else {
            panic!("no launch: {run:?}");
        };
        assert_eq!((*kernel, *grid), (0, [3, 1, 1]));
        assert_eq!(arguments[..3], [0, 0, 24]);
        assert_eq!(arguments[3..], [0xffff_ffff_0000_0003, 7]);
        let x = Address { base: Base::Input(0), offset: 0 };
        let second = Address { base: Base::Arena, offset: 256 + 12 };
        assert_eq!(addresses, &[(0, x), (1, second)]);
        assert_eq!(parameter_bytes(&program.targets[0].launches[0][0].args), 40);
        assert_eq!((run.inputs, run.outputs, run.scratch), (vec![96], vec![96], 12));
    }

    #[test]
    fn sizes_choose_plan_and_kernel() {
        let program = sample();
        let large = at(&program, 64).unwrap();
        assert_eq!((at(&program, 4).unwrap().arena, large.arena), (512, 4096));
        assert!(matches!(large.actions[0], Action::Launch { kernel: 1, .. }));
        let error = at(&program, 65).unwrap_err().to_string();
        assert!(error.contains("no memory plan holds the sizes [65]"), "{error}");
    }

    #[test]
    fn inconsistent_programs_are_errors() {
        let mut program = sample();
        program.plans[0].total = 256;
        assert!(at(&program, 4).unwrap_err().to_string().contains("exceeds the arena"));
        let mut program = sample();
        program.targets[0].launches[0][1].args[3] = LaunchArg::I32(Dim::from(1 << 40));
        let error = at(&program, 64).unwrap_err().to_string();
        assert!(error.contains("launch 0 (`/layer/MatMul`)"), "{error}");
        let mut program = sample();
        program.targets[0].launches[0][1].grid[1] = Dim::from(70_000);
        assert!(at(&program, 64).is_err());
        let mut program = sample();
        program.steps[1] = Step::Copy { from: BufferId(5), to: BufferId(1) };
        assert!(at(&program, 64).is_err());
    }

    #[test]
    fn a_launch_without_blocks_is_left_out() {
        let mut program = sample();
        program.targets[0].launches[0][0].grid[2] = Dim::ZERO;
        assert_eq!(at(&program, 1).unwrap().actions.len(), 1);
    }

    #[test]
    fn constant_buffers_are_aligned() {
        let layout = Layout::new(&sample()).unwrap();
        assert_eq!((layout.weights, layout.weight_bytes), (vec![0, 256], 262));
        assert_eq!((layout.buffers[7], layout.prepared_bytes), (512, 532));
    }
}
