//! Proofs of `x >= 0` by cases over the parts that are not linear.

use super::Scope;
use super::expr::{Atom, Dim, Term};

/// Most expressions that one proof looks at.
const BUDGET: u32 = 96;

/// Whether an expression is proved to be at least zero.
pub(super) fn nonneg(scope: &Scope<'_>, a: &Dim) -> bool {
    let mut budget = BUDGET;
    prove(scope, a, &mut budget)
}

fn prove(scope: &Scope<'_>, a: &Dim, budget: &mut u32) -> bool {
    if scope.proves_nonneg_directly(a) {
        return true;
    }
    let mut seen: Vec<&Atom> = Vec::new();
    for atom in a.terms().iter().flat_map(|t| &t.factors) {
        let splits = matches!(
            atom,
            Atom::Min(..) | Atom::Max(..) | Atom::Select(..) | Atom::FloorDiv(..) | Atom::Mod(..)
        );
        if !splits || seen.contains(&atom) {
            continue;
        }
        seen.push(atom);
        let Some(rest) = budget.checked_sub(1) else { return false };
        *budget = rest;
        if let Some((factor, rest)) = linear(a, atom)
            && prove_split(scope, atom, &factor, &rest, budget)
        {
            return true;
        }
    }
    false
}

/// Proves `factor * atom + rest >= 0` through what bounds the atom.
fn prove_split(scope: &Scope<'_>, atom: &Atom, factor: &Dim, rest: &Dim, budget: &mut u32) -> bool {
    let bounds = scope.interval(factor);
    let (positive, negative) = (bounds.lo >= 0, bounds.hi <= 0);
    let mut with = |value: &Dim| prove(scope, &(factor * value + rest), budget);
    match atom {
        // The atom is one of two; where it is the better one for the proof, either will do.
        Atom::Min(x, y) if negative => with(x) || with(y),
        Atom::Max(x, y) if positive => with(x) || with(y),
        Atom::Min(x, y) | Atom::Max(x, y) | Atom::Select(_, x, y) => with(x) && with(y),
        // (x - d + 1) / d <= floor(x / d) <= x / d, multiplied by d.
        Atom::FloorDiv(x, d) => match d.as_const() {
            Some(c) if c > 0 && (positive || negative) => {
                let bound = if positive { x - c + 1 } else { x.clone() };
                prove(scope, &(factor * bound + rest.scaled(c)), budget)
            }
            _ => false,
        },
        Atom::Mod(_, d) if negative => with(&(d - 1)),
        Atom::Mod(..) if positive => with(&Dim::ZERO),
        _ => false,
    }
}

/// Writes `a` as `factor * atom + rest` where neither holds the atom as a factor.
fn linear(a: &Dim, atom: &Atom) -> Option<(Dim, Dim)> {
    let mut factor = Vec::new();
    let mut rest = Vec::new();
    for term in a.terms() {
        let Some(at) = term.factors.iter().position(|f| f == atom) else {
            rest.push(term.clone());
            continue;
        };
        let mut factors = term.factors.clone();
        factors.remove(at);
        if factors.contains(atom) {
            return None;
        }
        factor.push(Term { factors, coefficient: term.coefficient });
    }
    Some((Dim::from_terms(0, factor), Dim::from_terms(a.constant_part(), rest)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dim::{Symbol, Symbols};

    #[test]
    fn clamped_slices_are_inside() {
        let mut symbols = Symbols::default();
        let s = symbols.add(Symbol::new("s", 1, 512, 1));
        let s = symbols.dim(s);
        let scope = Scope::new(&symbols);
        let start = scope.min(&s, &Dim::from(2));
        assert!(scope.proves_nonneg(&(&s - &start)));
        let end = scope.min(&s, &Dim::from(7));
        let size = scope.max(&(&end - &start), &Dim::ZERO);
        assert!(scope.proves_nonneg(&(&s - &start - &size)));
        assert!(!scope.proves_nonneg(&(&s - &start - &size - 1)));
    }

    #[test]
    fn quotients_are_bounded_by_their_dividends() {
        let mut symbols = Symbols::default();
        let s = symbols.add(Symbol::new("s", 1, 512, 1));
        let s = symbols.dim(s);
        let scope = Scope::new(&symbols);
        let half = scope.floor_div(&s, &Dim::from(2));
        assert!(scope.proves_nonneg(&(&s - &half.scaled(2))));
        assert!(scope.proves_nonneg(&(half.scaled(2) + 1 - &s)));
        assert!(!scope.proves_nonneg(&(half.scaled(2) - &s)));
        let rest = scope.modulo(&s, &Dim::from(5));
        assert!(scope.proves_nonneg(&(Dim::from(4) - rest)));
    }
}
