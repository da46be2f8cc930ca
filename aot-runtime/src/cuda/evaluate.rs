//! Launches with all sizes known.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::actions::{Action, Actions, SIZES_ALIGNMENT, Where};
use super::flight::LaunchId;
use super::model::Resources;
use crate::program::{BufferId, Launch, LaunchSize, MemoryPlan, Place, Program, Step, Target};
use crate::{Error, Result};

/// Steps with everything in them that follows from sizes.
#[derive(Debug)]
pub(crate) struct Evaluated {
    /// A number that no other has.
    pub(super) id: u64,
    /// How many steps these are.
    pub(super) steps: usize,
    pub(super) actions: Vec<Action>,
    /// The launches among the actions.
    pub(super) launches: Arc<[LaunchId]>,
    /// What kernels read of sizes: [`Where::Sizes`].
    pub(super) sizes: Vec<u8>,
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

/// Bytes of what kernels of some steps read of sizes, at most: atoms are the greatest.
pub(super) fn most_sizes(target: &Target, steps: &[Step], greatest: &[i64]) -> usize {
    let of = |launch: &Launch| {
        let bytes = |size: &LaunchSize| if matches!(size, LaunchSize::I64(_)) { 8 } else { 4 };
        launch.sizes.iter().map(bytes).sum::<usize>().next_multiple_of(SIZES_ALIGNMENT)
    };
    let each = steps.iter().map(|step| match step {
        Step::Launch(n) => {
            let variants = target.launches.get(*n as usize).into_iter().flatten();
            variants.map(of).max().unwrap_or(0)
        }
        Step::Loop(repeated) => {
            let inside: i64 = repeated.body.iter().filter_map(|s| launches(s, greatest)).sum();
            let turns = repeated.count.eval(greatest).unwrap_or(i64::MAX);
            let turns = turns.clamp(1, (MOST_LAUNCHES / inside.max(1)).max(1)) as usize;
            most_sizes(target, &repeated.body, greatest).saturating_mul(turns)
        }
        Step::Copy { .. } | Step::ReadBack { .. } | Step::Host(_) => 0,
    });
    each.fold(0, usize::saturating_add)
}

/// In which parts of memory buffers lie during one run.
#[derive(Debug)]
pub(super) struct Layout<'p> {
    program: &'p Program,
    resources: &'p Resources,
    plan: Option<&'p MemoryPlan>,
    offsets: Option<&'p HashMap<BufferId, u64>>,
}

impl<'p> Layout<'p> {
    /// The layout for sizes up to these atoms; it holds throughout the run.
    pub(super) fn new(program: &'p Program, resources: &'p Resources, atoms: &[i64]) -> Self {
        let plan = program.plan_for(atoms);
        let offsets = plan.and_then(|n| resources.arenas.get(n));
        Self { program, resources, plan: plan.map(|n| &program.plans[n]), offsets }
    }

    /// Bytes that the arena needs.
    pub(super) fn arena(&self) -> u64 {
        self.plan.map_or(0, |plan| plan.total)
    }

    /// Bytes that a buffer holds at sizes given by the symbols' atoms.
    pub(super) fn bytes(&self, id: BufferId, atoms: &[i64]) -> Result<usize> {
        let buffer = &self.program.buffers[id.0 as usize];
        let elements = u64::try_from(buffer.elements.eval(atoms)?).unwrap_or(0);
        Ok(buffer.dtype.bytes_for(elements).unwrap_or(0) as usize)
    }

    /// Where a buffer begins.
    pub(super) fn place(&self, id: BufferId) -> Result<Where> {
        let inconsistent = || Error::artifact("the program", "a buffer has no place");
        let buffer = self.program.buffers.get(id.0 as usize).ok_or_else(inconsistent)?;
        Ok(match buffer.place {
            Place::Input(i) => Where::Input(i),
            Place::Output(i) => Where::Output(i),
            Place::Arena => {
                let offset = self.offsets.and_then(|offsets| offsets.get(&id));
                Where::Arena(*offset.ok_or_else(inconsistent)?)
            }
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
    let mut actions = Actions::default();
    add_actions(layout, target, steps, atoms, &mut actions)?;
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let varies = steps.iter().any(|step| matches!(step, Step::Loop(_)));
    let Actions { actions, launches, sizes, .. } = actions;
    let (steps, launches) = (steps.len(), launches.into());
    Ok(Evaluated { id, steps, actions, launches, sizes, varies })
}

fn add_actions(
    layout: &Layout<'_>,
    target: &Target,
    steps: &[Step],
    atoms: &[i64],
    actions: &mut Actions,
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
                actions.launch(*n, launch, atoms, &place)?;
            }
            Step::Copy { from, to } => {
                let bytes = layout.bytes(*from, atoms)?;
                actions.copy(Action::Copy { from: place(*from)?, to: place(*to)?, bytes });
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
            Step::ReadBack { .. } | Step::Host(_) | Step::Loop(_) => {
                return Err(Error::artifact("the program", "a run waits where none can"));
            }
        }
    }
    Ok(())
}
