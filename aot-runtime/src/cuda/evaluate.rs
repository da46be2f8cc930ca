//! Launches with all sizes known.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use super::model::Resources;
use crate::program::{BufferId, Launch, LaunchArg, MemoryPlan, Place, Program, Step, Target};
use crate::{Error, Result};

/// Steps with everything in them that follows from sizes.
#[derive(Debug)]
pub(crate) struct Evaluated {
    /// A number that no other has.
    pub(super) id: u64,
    pub(super) actions: Vec<Action>,
    /// Whether there are more or fewer actions at other sizes.
    pub(super) varies: bool,
}

/// Loops that come to more launches than this are evaluated iteration by iteration.
const MOST_LAUNCHES: i64 = 4096;

/// Whether a step can be evaluated as a whole at sizes given by the symbols' atoms.
pub(super) fn is_whole(step: &Step, atoms: &[i64]) -> bool {
    step.is_foreseen() && launches(step, atoms).is_some_and(|n| n <= MOST_LAUNCHES)
}

/// How many launches and copies a step comes to, if that can be told.
fn launches(step: &Step, atoms: &[i64]) -> Option<i64> {
    match step {
        Step::Loop(repeated) => {
            let mut each = repeated.body.iter().map(|step| launches(step, atoms));
            let each = each.try_fold(0i64, |sum, n| sum.checked_add(n?))?;
            repeated.count.eval(atoms).ok()?.max(0).checked_mul(each)
        }
        _ => Some(1),
    }
}

/// One thing to put into a stream.
#[derive(Debug)]
pub(super) enum Action {
    /// A kernel launch, which does nothing if an axis has no block: the argument structure in 8-byte
    /// words, and the words that are addresses of what changes from call to call.
    Launch { function: usize, grid: [u32; 3], words: Vec<u64>, patches: Vec<(usize, Where)> },
    /// A copy of this many bytes.
    Copy { from: Where, to: Where, bytes: usize },
}

/// Where a buffer begins.
#[derive(Clone, Copy, Debug)]
pub(super) enum Where {
    /// There.
    Fixed(u64),
    /// Bytes into the arena.
    Arena(u64),
    /// The n-th input.
    Input(u32),
    /// The n-th output.
    Output(u32),
    /// Bytes into the zeroed scratch of an execution context.
    Scratch(u64),
}

/// In which parts of memory buffers lie during one run.
#[derive(Debug)]
pub(super) struct Layout<'p> {
    program: &'p Program,
    resources: &'p Resources,
    plan: Option<&'p MemoryPlan>,
    offsets: HashMap<BufferId, u64>,
}

impl<'p> Layout<'p> {
    /// The layout for sizes up to these atoms; it holds throughout the run.
    pub(super) fn new(program: &'p Program, resources: &'p Resources, atoms: &[i64]) -> Self {
        let plan = program.plan_for(atoms);
        let offsets = plan.map(|p| p.offsets.iter().copied().collect()).unwrap_or_default();
        Self { program, resources, plan, offsets }
    }

    /// Bytes that the arena needs.
    pub(super) fn arena(&self) -> u64 {
        self.plan.map_or(0, |plan| plan.total)
    }

    /// Where a buffer begins.
    pub(super) fn place(&self, id: BufferId) -> Result<Where> {
        let inconsistent = || Error::artifact("the program", "a buffer has no place");
        let buffer = self.program.buffers.get(id.0 as usize).ok_or_else(inconsistent)?;
        Ok(match buffer.place {
            Place::Input(i) => Where::Input(i),
            Place::Output(i) => Where::Output(i),
            Place::Arena => Where::Arena(*self.offsets.get(&id).ok_or_else(inconsistent)?),
            Place::ZeroedScratch => {
                Where::Scratch(*self.resources.scratch.get(&id).ok_or_else(inconsistent)?)
            }
            _ => Where::Fixed(*self.resources.fixed.get(&id).ok_or_else(inconsistent)?),
        })
    }
}

/// Evaluates launches and copies at sizes given by the symbols' atoms.
pub(super) fn evaluate(
    layout: &Layout<'_>,
    target: &Target,
    steps: &[Step],
    atoms: &[i64],
) -> Result<Evaluated> {
    let mut actions = Vec::with_capacity(steps.len());
    add_actions(layout, target, steps, atoms, &mut actions)?;
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let varies = steps.iter().any(|step| matches!(step, Step::Loop(_)));
    Ok(Evaluated { id, actions, varies })
}

fn add_actions(
    layout: &Layout<'_>,
    target: &Target,
    steps: &[Step],
    atoms: &[i64],
    actions: &mut Vec<Action>,
) -> Result<()> {
    let place = |id: BufferId| layout.place(id);
    for step in steps {
        match step {
            Step::Launch(n) => {
                let variants = target.launches.get(*n as usize).map(Vec::as_slice);
                let mut chosen = None;
                for launch in variants.unwrap_or_default() {
                    if launch.when.eval(atoms)? {
                        chosen = Some(launch);
                        break;
                    }
                }
                let launch = chosen.ok_or_else(|| {
                    Error::artifact("the program", "no kernel is for these sizes")
                })?;
                actions.push(action(launch, atoms, &place)?);
            }
            Step::Copy { from, to } => {
                let buffer = &layout.program.buffers[from.0 as usize];
                let elements = u64::try_from(buffer.elements.eval(atoms)?).unwrap_or(0);
                let bytes = buffer.dtype.bytes_for(elements).unwrap_or(0) as usize;
                actions.push(Action::Copy { from: place(*from)?, to: place(*to)?, bytes });
            }
            Step::Loop(repeated) if is_whole(step, atoms) => {
                let mut atoms = atoms.to_vec();
                for at in 0..repeated.count.eval(atoms.as_slice())? {
                    if let Some(atom) = atoms.get_mut(repeated.iteration.0 as usize) {
                        *atom = at;
                    }
                    add_actions(layout, target, &repeated.body, &atoms, actions)?;
                }
            }
            Step::ReadBack { .. } | Step::Loop(_) => {
                return Err(Error::artifact("the program", "a size is read where none can be"));
            }
        }
    }
    Ok(())
}

/// A launch with everything but addresses known.
fn action(
    launch: &Launch,
    atoms: &[i64],
    place: &impl Fn(BufferId) -> Result<Where>,
) -> Result<Action> {
    let mut grid = [0u32; 3];
    for (axis, dim) in launch.grid.iter().enumerate() {
        let blocks = dim.eval(atoms)?;
        grid[axis] = u32::try_from(blocks.max(0))
            .map_err(|_| Error::Execution(format!("a kernel would need {blocks} blocks")))?;
    }
    let mut bytes: Vec<u8> = Vec::new();
    let mut patches = Vec::new();
    for arg in &launch.args {
        let align = if matches!(arg, LaunchArg::I32(_)) { 4 } else { 8 };
        bytes.resize(bytes.len().next_multiple_of(align), 0);
        match arg {
            LaunchArg::Buffer(id, extra) => {
                let extra = extra.eval(atoms)? as u64;
                let word = bytes.len() / 8;
                let value = match place(*id)? {
                    Where::Fixed(address) => address.wrapping_add(extra),
                    other => {
                        patches.push((word, other));
                        extra
                    }
                };
                bytes.extend(value.to_le_bytes());
            }
            LaunchArg::I64(dim) => bytes.extend(dim.eval(atoms)?.to_le_bytes()),
            LaunchArg::I32(dim) => {
                let value = dim.eval(atoms)?;
                let value = i32::try_from(value)
                    .map_err(|_| Error::Execution(format!("a size, {value}, exceeds 32 bits")))?;
                bytes.extend(value.to_le_bytes());
            }
        }
    }
    bytes.resize(bytes.len().next_multiple_of(8).max(8), 0);
    let words = bytes
        .chunks_exact(8)
        .map(|c| c.iter().rev().fold(0u64, |word, byte| (word << 8) | u64::from(*byte)))
        .collect();
    Ok(Action::Launch { function: launch.kernel as usize, grid, words, patches })
}

#[cfg(test)]
mod tests {
    use super::*;
    use aot_ir::Dim;
    use aot_ir::dim::Cond;

    #[test]
    fn arguments_are_packed_as_the_kernel_reads_them() {
        let launch = Launch {
            when: Cond::always(),
            kernel: 3,
            grid: [Dim::from(2), Dim::ONE, Dim::ONE],
            args: vec![
                LaunchArg::Buffer(BufferId(0), Dim::from(16)),
                LaunchArg::Buffer(BufferId(1), Dim::ZERO),
                LaunchArg::I64(Dim::from(1 << 40)),
                LaunchArg::I32(Dim::from(-1)),
                LaunchArg::I32(Dim::from(7)),
                LaunchArg::I32(Dim::from(9)),
            ],
        };
        let place =
            |id: BufferId| Ok(if id.0 == 0 { Where::Fixed(0x1000) } else { Where::Arena(256) });
        let Action::Launch { function, grid, words, patches } =
            action(&launch, &[], &place).unwrap()
        else {
            panic!("no launch")
        };
        assert_eq!((function, grid), (3, [2, 1, 1]));
        assert_eq!(words, [0x1010, 0, 1 << 40, 0x7_ffff_ffff, 9]);
        assert!(matches!(patches.as_slice(), [(1, Where::Arena(256))]));
        let empty = Launch { grid: [Dim::ONE, Dim::ZERO, Dim::ONE], ..launch };
        let empty = action(&empty, &[], &place).unwrap();
        assert!(matches!(empty, Action::Launch { grid: [1, 0, 1], .. }));
    }
}
