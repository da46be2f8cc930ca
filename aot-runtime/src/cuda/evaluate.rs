//! Launches with all sizes known.

use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aot_ir::{Dim, Scope};

use super::actions::{Action, Actions, Value};
use super::layout::Layout;
use super::on_device::OnDevice;
use super::order::Order;
use super::rows::{Decided, HEADER, PROGRESS};
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
    pub(super) launches: Arc<Order>,
    /// What kernels read of sizes.
    pub(super) sizes: Vec<u8>,
    /// Whether there are more or fewer actions at other sizes.
    pub(super) varies: bool,
    /// Whether the GPU decides something, for which they have to be a graph.
    pub(super) decides: bool,
}

/// Loops that come to more launches than this are evaluated iteration by iteration.
pub(super) const MOST_LAUNCHES: i64 = 4096;

/// Whether a step can be evaluated as a whole at sizes given by the symbols' atoms.
pub(super) fn is_whole(step: &Step, atoms: &[i64]) -> bool {
    let count = |dim: &Dim| dim.eval(atoms).ok();
    let actions = || actions(slice::from_ref(step), &count, None);
    step.is_foreseen() && actions().is_some_and(|n| n <= MOST_LAUNCHES)
}

/// How many actions steps come to where loops are repeated so often, if that can be told; of a loop whose end the GPU
/// decides, those of one iteration.
pub(super) fn actions(
    steps: &[Step],
    count: &impl Fn(&Dim) -> Option<i64>,
    device: Option<&OnDevice>,
) -> Option<i64> {
    steps.iter().try_fold(0i64, |sum, step| {
        let own = match step {
            Step::Loop(repeated) => {
                let each = actions(&repeated.body, count, device)?;
                match device.and_then(|device| device.rows(repeated.iteration)) {
                    Some(_) => each.checked_add(2)?,
                    None => count(&repeated.count)?.max(0).checked_mul(each)?,
                }
            }
            _ => 1,
        };
        sum.checked_add(own)
    })
}

/// Bytes of what kernels of some steps read of sizes, at most, whatever the sizes in their ranges.
pub(super) fn most_sizes(
    templates: &Templates,
    steps: &[Step],
    scope: &Scope<'_>,
    device: Option<&OnDevice>,
) -> usize {
    let of = |steps: &[Step]| most_sizes(templates, steps, scope, device);
    // A row that kernels read, and those that are brought there.
    let rows = |each: usize, rows: i64| each.saturating_mul(rows.saturating_add(1) as usize);
    let mut sum = 0usize;
    for (i, step) in steps.iter().enumerate() {
        let chosen = match step {
            Step::Launch(n) => {
                sum = sum.saturating_add(room(templates, *n));
                None
            }
            Step::Loop(repeated) => {
                let each = of(&repeated.body);
                let own = device.and_then(|device| device.rows(repeated.iteration));
                sum = sum.saturating_add(match own {
                    Some(own) => rows(each, own).saturating_add(HEADER),
                    // Evaluated iteration by iteration.
                    None if !step.is_foreseen() && device.is_none() => each,
                    None => {
                        let turns = scope.interval(&repeated.count).hi.max(0) as usize;
                        let all = each.saturating_mul(turns);
                        // What comes to more launches is evaluated iteration by iteration.
                        let whole =
                            MOST_LAUNCHES as usize * greatest_room(templates, &repeated.body);
                        if device.is_some() { all } else { all.min(whole.max(each)) }
                    }
                });
                repeated.turns
            }
            Step::ReadBack { symbol, .. } => Some(*symbol),
            Step::Copy { .. } | Step::Host(_) => None,
        };
        if let Some((device, symbol)) = device.zip(chosen)
            && let Some(choices) = device.choices(symbol)
        {
            return sum.saturating_add(rows(of(&steps[i + 1..]), choices));
        }
    }
    sum
}

/// Bytes of what a launch reads of sizes, at most.
fn room(templates: &Templates, launch: u32) -> usize {
    templates.variants(launch).iter().map(|template| template.room).max().unwrap_or(0)
}

/// The most bytes of what one of the launches reads of sizes.
fn greatest_room(templates: &Templates, steps: &[Step]) -> usize {
    let of = |step: &Step| match step {
        Step::Launch(n) => room(templates, *n),
        Step::Loop(repeated) => greatest_room(templates, &repeated.body),
        Step::Copy { .. } | Step::ReadBack { .. } | Step::Host(_) => 0,
    };
    steps.iter().map(of).max().unwrap_or(0)
}

/// How steps are evaluated.
#[derive(Clone, Copy, Debug)]
pub(super) struct How<'a> {
    pub(super) layout: Layout<'a>,
    /// Of the steps.
    pub(super) templates: &'a Arc<Templates>,
    /// What the GPU decides.
    pub(super) device: Option<&'a OnDevice>,
    /// Data mean nothing.
    pub(super) rehearsed: bool,
}

/// Evaluates launches and copies at sizes given by the symbols' atoms.
pub(super) fn evaluate(how: How<'_>, steps: &[Step], atoms: &[i64]) -> Result<Evaluated> {
    let How { layout, templates, device, rehearsed } = how;
    let mut actions = Actions::default();
    let decided = Decided::new();
    let mut evaluation = Evaluation { layout, templates, device, rehearsed, decided };
    evaluation.add(steps, &mut templates.values(atoms), &mut actions)?;
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let varies = steps.iter().any(|step| matches!(step, Step::Loop(_)));
    let Actions { actions, sizes, .. } = actions;
    let decides = actions.iter().any(|action| matches!(action, Action::Control(_)));
    let launches = Arc::new(Order::new(&actions, templates));
    let (steps, templates) = (steps.len(), templates.clone());
    Ok(Evaluated { id, steps, templates, actions, launches, sizes, varies, decides })
}

/// Steps on the way to actions.
#[derive(Debug)]
pub(super) struct Evaluation<'a> {
    pub(super) layout: Layout<'a>,
    templates: &'a Templates,
    device: Option<&'a OnDevice>,
    pub(super) rehearsed: bool,
    /// Symbols that have a size on the GPU only.
    pub(super) decided: Decided,
}

impl Evaluation<'_> {
    /// Adds what steps come to at the sizes that `values` are of.
    pub(super) fn add(
        &mut self,
        steps: &[Step],
        values: &mut Values<'_>,
        actions: &mut Actions,
    ) -> Result<()> {
        let device = self.device;
        let choices = |symbol| device.and_then(|device| device.choices(symbol));
        for (i, step) in steps.iter().enumerate() {
            let rest = &steps[i + 1..];
            match step {
                Step::Launch(n) => {
                    let chosen = self.templates.choose(*n, values)?;
                    actions.launch(chosen, &self.templates.all()[chosen], values)?;
                }
                Step::Copy { from, to } => {
                    let bytes = self.layout.bytes(*from, values.atoms())?;
                    let (from, to) = (self.layout.place(*from)?, self.layout.place(*to)?);
                    actions.copy(Action::Copy { from, to, bytes });
                }
                Step::Loop(repeated)
                    if let Some(rows) = device.and_then(|d| d.rows(repeated.iteration)) =>
                {
                    let header = self.add_loop(repeated, rows, values, actions)?;
                    if let Some(turns) = repeated.turns
                        && let Some(choices) = choices(turns)
                    {
                        let made = Value::Sizes(header + PROGRESS as u64);
                        return self.add_chosen((turns, choices), made, rest, values, actions);
                    }
                }
                Step::Loop(repeated) if device.is_some() || is_whole(step, values.atoms()) => {
                    let mut values = values.clone();
                    for at in 0..repeated.count.eval(values.atoms())? {
                        values.set(repeated.iteration, at);
                        self.add(&repeated.body, &mut values, actions)?;
                    }
                }
                Step::ReadBack { symbol, buffer, .. } if let Some(choices) = choices(*symbol) => {
                    let value = Value::Buffer(self.layout.place(*buffer)?);
                    return self.add_chosen((*symbol, choices), value, rest, values, actions);
                }
                Step::ReadBack { .. } | Step::Host(_) | Step::Loop(_) => {
                    return Err(Error::artifact("the program", "a run waits where none can"));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "evaluate_tests.rs"]
mod tests;
