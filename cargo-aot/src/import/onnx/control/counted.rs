//! Loops whose condition compares what they count: they are repeated a number of times that follows from sizes.

use super::super::builder::Tensor;
use super::super::known::{Content, Elem};
use super::super::nodes::{Importer, Opsets, Stop};
use super::repeat::{Repeat, Shape};
use aot_ir::dim::{Atom, Cmp, Cond};
use aot_ir::{Dim, Scope, Symbol};

/// Counters are looked at as numbers between the negative of this and this, all of which are exact in `f32`.
const FAR: i64 = 1 << 24;

/// What a carried value is taken for while a body is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    /// It may hold anything.
    Data,
    /// The integer that it begins with, in every iteration.
    Start,
    /// Any integer within [`FAR`].
    Number,
}

/// What a trial of a body finds.
#[derive(Debug)]
struct Trial {
    counters: Vec<Option<Counter>>,
    /// The number of iterations, if what was taken for a number or a start is a counter or stays so.
    count: Option<Dim>,
}

/// A carried integer that grows by the same number in every iteration.
#[derive(Clone, Debug)]
pub(super) struct Counter {
    start: Dim,
    step: i64,
}

impl Counter {
    /// What it is before iteration `at`.
    fn before(&self, at: &Dim) -> Dim {
        &self.start + at.scaled(self.step)
    }

    /// What it is to be taken for.
    fn taken(&self) -> Taken {
        if self.step == 0 { Taken::Start } else { Taken::Number }
    }
}

/// How often a loop is repeated, and what it counts, by its carried values.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    pub(super) count: Dim,
    counters: Vec<Option<Counter>>,
}

impl Counted {
    /// The carried values that are known before iteration `at`.
    pub(super) fn before(&self, at: &Dim) -> Vec<(usize, Dim)> {
        let counters = self.counters.iter().enumerate();
        counters.filter_map(|(i, counter)| Some((i, counter.as_ref()?.before(at)))).collect()
    }
}

impl Importer<'_> {
    /// How often a loop with a condition is repeated, where sizes tell: imports the body with numbers in the place of
    /// what may be a counter, which is forgotten again.
    ///
    /// What turns out to be no counter may be any integer, so nothing that was found while it was taken for a number
    /// near 0 counts: the body is tried again without it.
    pub(super) fn counted(
        &mut self,
        repeat: &Repeat<'_>,
        opsets: &Opsets,
    ) -> Result<Option<Counted>, Stop> {
        let Shape::Loop(first) = repeat.shape else { return Ok(None) };
        let Some(first) = self.builder.content(first) else { return Ok(None) };
        let Some(first) = truth_of(&first) else { return Ok(None) };
        let starts: Vec<Option<Dim>> =
            repeat.initial.iter().map(|t| self.one_integer(*t)).collect();
        let number = |start: &Option<Dim>| start.as_ref().map_or(Taken::Data, |_| Taken::Number);
        let mut taken: Vec<Taken> = starts.iter().map(number).collect();
        while taken.contains(&Taken::Number) {
            let trial = self.trial(repeat, opsets, first, (&starts, &taken))?;
            let Some(Trial { counters, count }) = trial else { return Ok(None) };
            let kept = counters.iter().map(|c| c.as_ref().map_or(Taken::Data, Counter::taken));
            let kept: Vec<Taken> = kept.collect();
            if kept == taken {
                let counted = count.map(|count| Counted { count, counters });
                let scope = self.builder.scope();
                return Ok(counted.filter(|counted| is_near(&scope, counted)));
            }
            taken = kept;
        }
        Ok(None)
    }

    /// Imports the body with carried values as they are taken for, and forgets it. None where that fails.
    fn trial(
        &mut self,
        repeat: &Repeat<'_>,
        opsets: &Opsets,
        first: &Cond,
        (starts, taken): (&[Option<Dim>], &[Taken]),
    ) -> Result<Option<Trial>, Stop> {
        let mut found = None;
        self.try_to(|importer| {
            let open = importer.builder.begin_loop(&repeat.count, false, &repeat.initial);
            let numbers = importer.numbers(starts, taken);
            for (&t, number) in open.carried().iter().zip(&numbers) {
                if let Some(number) = number {
                    importer.builder.set_integer(t, number.clone());
                }
            }
            let at = open.at();
            let inside = importer.inside(repeat, opsets, &at, open.carried());
            if let Ok(Some((condition, next))) = &inside {
                let counters = importer.counters(starts, &numbers, next);
                let again = condition.and_then(|(_, again)| importer.builder.content(again));
                let scope = importer.builder.scope();
                let again = again.as_ref().and_then(|content| truth_of(content));
                let count =
                    again.and_then(|again| count(&scope, first, again, (&at, &numbers), &counters));
                let count = count.map(|count| scope.min(&repeat.count, &count));
                found = Some(Trial { counters, count });
            }
            importer.builder.abandon_loop(open);
            inside.map(|_| Vec::new())
        })?;
        Ok(found)
    }

    /// The integers that stand for carried values within a body that is tried.
    fn numbers(&mut self, starts: &[Option<Dim>], taken: &[Taken]) -> Vec<Option<Dim>> {
        let name = format!("{}/counter", self.builder.node);
        let mut numbers = Vec::new();
        for (n, (start, taken)) in starts.iter().zip(taken).enumerate() {
            numbers.push(match taken {
                Taken::Data => None,
                Taken::Start => start.clone(),
                Taken::Number => {
                    let symbol = Symbol::in_run(format!("{name} {n}"), -FAR, FAR);
                    Some(Dim::atom(Atom::Sym(self.builder.add_symbol(symbol))))
                }
            });
        }
        numbers
    }

    /// Which of the numbers that stand for carried values have become counters in `next`.
    fn counters(
        &mut self,
        starts: &[Option<Dim>],
        numbers: &[Option<Dim>],
        next: &[Tensor],
    ) -> Vec<Option<Counter>> {
        let mut counters = Vec::new();
        for ((start, number), &next) in starts.iter().zip(numbers).zip(next) {
            let next = self.one_integer(next);
            let counter =
                start.clone().zip(number.as_ref()).zip(next).and_then(|((start, number), next)| {
                    let step = (next - number).as_const()?;
                    // What the start becomes says nothing of later iterations, unless it stays.
                    (step == 0 || *number != start).then_some(Counter { start, step })
                });
            counters.push(counter);
        }
        counters
    }

    /// The integer that a tensor of one element is known to hold.
    fn one_integer(&mut self, t: Tensor) -> Option<Dim> {
        match self.builder.ints(t)?.as_slice() {
            [one] => Some(one.clone()),
            _ => None,
        }
    }
}

/// The condition that a tensor is known to hold, if all of its elements are one.
fn truth_of(content: &Content) -> Option<&Cond> {
    match content.uniform()? {
        Elem::Bool(cond) => Some(cond),
        _ => None,
    }
}

/// How many iterations there are if `first` says whether there is one, and `again`, in which numbers stand for
/// counters, whether another one follows iteration `at`.
fn count(
    scope: &Scope<'_>,
    first: &Cond,
    again: &Cond,
    (at, numbers): (&Dim, &[Option<Dim>]),
    counters: &[Option<Counter>],
) -> Option<Dim> {
    let of = |atom: &Atom| {
        let stands = |number: &Option<Dim>| number.as_ref().and_then(Dim::as_atom) == Some(atom);
        let n = numbers.iter().position(stands)?;
        Some(counters[n].as_ref()?.before(at))
    };
    let again = again.substitute(scope, &of);
    let after = |cond: &Cond, n: i64| {
        cond.substitute(scope, &|atom| (at.as_atom() == Some(atom)).then(|| Dim::from(n)))
    };
    let parts = match &again {
        Cond::All(parts) => parts.as_slice(),
        one => std::slice::from_ref(one),
    };
    let (always, limits): (Vec<&Cond>, Vec<&Cond>) =
        parts.iter().partition(|part| scope.decide_cond(part) == Some(true));
    let more = limits.into_iter().map(|part| followers(scope, part, at));
    let more = more.reduce(|a, b| Some(scope.min(&a?, &b?)))??;
    let holds_before = |part: &&Cond| scope.decide_cond(&after(part, -1)) == Some(true);
    if after(&again, -1) == *first && always.iter().all(holds_before) {
        // There is a first iteration as there is one after any other.
        return Some(scope.max(&Dim::ZERO, &(more + 1)));
    }
    let all = scope.max(&Dim::ZERO, &more) + 1;
    Some(scope.select(first, &all, &Dim::ZERO))
}

/// After how many iterations, counted by `at`, a comparison lets another one follow; negative where it would not before
/// the first. None where it does not say.
fn followers(scope: &Scope<'_>, comparison: &Cond, at: &Dim) -> Option<Dim> {
    // It holds as long as this is not negative.
    let room = match comparison {
        Cond::Cmp(Cmp::Lt, a, b) => b - a - 1,
        Cond::Cmp(Cmp::Le, a, b) => b - a,
        _ => return None,
    };
    let after =
        |n: i64| room.substitute(scope, &|atom| (at.as_atom() == Some(atom)).then(|| Dim::from(n)));
    let step = (after(0) - after(1)).as_const().filter(|step| *step > 0)?;
    let linear = room == after(0) - at.scaled(step) && !after(0).any(|atom| varies(atom, at));
    linear.then(|| scope.floor_div(&after(0), &Dim::from(step)) + 1)
}

/// Whether an atom is a symbol that the body binds whose iterations are counted by `at`.
fn varies(atom: &Atom, at: &Dim) -> bool {
    matches!((atom, at.as_atom()), (Atom::Sym(a), Some(Atom::Sym(b))) if a.0 >= b.0)
}

/// Whether all counters that change stay numbers as they were looked at.
fn is_near(scope: &Scope<'_>, counted: &Counted) -> bool {
    let changing = counted.counters.iter().flatten().filter(|counter| counter.step != 0);
    let mut ends =
        changing.flat_map(|c| [Dim::ZERO, counted.count.clone()].map(|at| c.before(&at)));
    ends.all(|end| {
        let interval = scope.interval(&end);
        -FAR <= interval.lo && interval.hi <= FAR
    })
}
