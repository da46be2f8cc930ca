//! Launches with all sizes known.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::actions::{Action, Actions};
use super::flight::LaunchId;
use super::layout::Layout;
use super::templates::Templates;
use super::values::Values;
use crate::program::Step;
use crate::{Error, Result};

/// Steps with everything in them that follows from sizes.
#[derive(Debug)]
pub(crate) struct Evaluated {
    /// A number that no other has.
    pub(super) id: u64,
    /// How many steps these are.
    pub(super) steps: usize,
    /// What the actions launch.
    pub(super) templates: Arc<Templates>,
    pub(super) actions: Vec<Action>,
    /// The launches among the actions.
    pub(super) launches: Arc<[LaunchId]>,
    /// What kernels read of sizes.
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
pub(super) fn most_sizes(templates: &Templates, steps: &[Step], greatest: &[i64]) -> usize {
    let each = steps.iter().map(|step| match step {
        Step::Launch(n) => templates.variants(*n).iter().map(|t| t.room).max().unwrap_or(0),
        Step::Loop(repeated) => {
            let inside: i64 = repeated.body.iter().filter_map(|s| launches(s, greatest)).sum();
            let turns = repeated.count.eval(greatest).unwrap_or(i64::MAX);
            let turns = turns.clamp(1, (MOST_LAUNCHES / inside.max(1)).max(1)) as usize;
            most_sizes(templates, &repeated.body, greatest).saturating_mul(turns)
        }
        Step::Copy { .. } | Step::ReadBack { .. } | Step::Host(_) => 0,
    });
    each.fold(0, usize::saturating_add)
}

/// Evaluates launches and copies at sizes given by the symbols' atoms; `templates` are of these steps.
pub(super) fn evaluate(
    layout: &Layout<'_>,
    templates: &Arc<Templates>,
    steps: &[Step],
    atoms: &[i64],
) -> Result<Evaluated> {
    let mut actions = Actions::default();
    add_actions(layout, templates, steps, &mut templates.values(atoms), &mut actions)?;
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let varies = steps.iter().any(|step| matches!(step, Step::Loop(_)));
    let Actions { actions, sizes, .. } = actions;
    let launches = actions.iter().filter_map(|action| match action {
        Action::Launch { template, .. } => Some(templates.all()[*template].id),
        Action::Copy { .. } => None,
    });
    let launches = launches.collect();
    let (steps, templates) = (steps.len(), templates.clone());
    Ok(Evaluated { id, steps, templates, actions, launches, sizes, varies })
}

/// Adds what steps come to at the sizes that `values` are of.
fn add_actions(
    layout: &Layout<'_>,
    templates: &Templates,
    steps: &[Step],
    values: &mut Values<'_>,
    actions: &mut Actions,
) -> Result<()> {
    for step in steps {
        match step {
            Step::Launch(n) => {
                let chosen = templates.choose(*n, values)?;
                actions.launch(chosen, &templates.all()[chosen], values)?;
            }
            Step::Copy { from, to } => {
                let bytes = layout.bytes(*from, values.atoms())?;
                let (from, to) = (layout.place(*from)?, layout.place(*to)?);
                actions.copy(Action::Copy { from, to, bytes });
            }
            Step::Loop(repeated) if is_whole(step, values.atoms()) => {
                let mut values = values.clone();
                for at in 0..repeated.count.eval(values.atoms())? {
                    values.set(repeated.iteration, at);
                    add_actions(layout, templates, &repeated.body, &mut values, actions)?;
                }
            }
            Step::ReadBack { .. } | Step::Host(_) | Step::Loop(_) => {
                return Err(Error::artifact("the program", "a run waits where none can"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "evaluate_tests.rs"]
mod tests;
