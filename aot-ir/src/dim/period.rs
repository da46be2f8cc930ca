//! How expressions repeat while a symbol counts.

use super::expr::{Atom, Cond, Dim, SymId};

impl Dim {
    /// Whether a symbol occurs, at any depth.
    pub fn mentions(&self, symbol: SymId) -> bool {
        self.any(|atom| *atom == Atom::Sym(symbol))
    }

    /// A period of the value while a symbol counts and everything else stays: the value at `i` is that at `i` plus it.
    /// None if no period is seen, or only ones beyond `most`.
    ///
    /// The symbol may occur in remainders by constants, of anything that has integer coefficients of it.
    pub fn period(&self, symbol: SymId, most: i64) -> Option<i64> {
        let factors = self.terms().iter().flat_map(|term| &term.factors);
        common(factors.map(|atom| atom_period(atom, symbol, most)), most)
    }

    /// A [period](Self::period) of all dims.
    pub fn common_period<'d>(
        dims: impl IntoIterator<Item = &'d Self>,
        symbol: SymId,
        most: i64,
    ) -> Option<i64> {
        common(dims.into_iter().map(|dim| dim.period(symbol, most)), most)
    }

    /// Whether it is a sum of products of constants with the symbol itself or with what does not depend on it.
    fn is_affine_in(&self, symbol: SymId) -> bool {
        self.terms().iter().all(|term| {
            let own = Atom::Sym(symbol);
            term.factors.len() == 1 && term.factors[0] == own
                || term.factors.iter().all(|atom| !Dim::atom(atom.clone()).mentions(symbol))
        })
    }
}

impl Cond {
    /// Whether a symbol occurs, at any depth.
    pub fn mentions(&self, symbol: SymId) -> bool {
        let mut found = false;
        self.visit(&mut |atom| found |= *atom == Atom::Sym(symbol));
        found
    }

    fn period(&self, symbol: SymId, most: i64) -> Option<i64> {
        match self {
            Self::Cmp(_, a, b) => common([a, b].map(|dim| dim.period(symbol, most)), most),
            Self::All(parts) => common(parts.iter().map(|part| part.period(symbol, most)), most),
        }
    }
}

fn atom_period(atom: &Atom, symbol: SymId, most: i64) -> Option<i64> {
    let of = |dim: &Dim| dim.period(symbol, most);
    match atom {
        Atom::Sym(id) => (*id != symbol).then_some(1),
        Atom::Var(_) | Atom::Value(_) => Some(1),
        Atom::Mod(a, b) => match b.as_const() {
            Some(divisor) if divisor > 0 && a.mentions(symbol) && a.is_affine_in(symbol) => {
                (divisor <= most).then_some(divisor)
            }
            _ => common([of(a), of(b)], most),
        },
        Atom::FloorDiv(a, b) | Atom::Min(a, b) | Atom::Max(a, b) => common([of(a), of(b)], most),
        Atom::Select(cond, a, b) => common([cond.period(symbol, most), of(a), of(b)], most),
    }
}

/// A period of all, if each has one.
fn common(periods: impl IntoIterator<Item = Option<i64>>, most: i64) -> Option<i64> {
    periods.into_iter().try_fold(1, |all: i64, period| {
        let period = period?;
        let (mut a, mut b) = (all, period);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        all.checked_mul(period / a).filter(|least| *least <= most)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dim::{Cmp, Scope, Symbol, Symbols};

    #[test]
    fn what_repeats_and_what_does_not() {
        let mut symbols = Symbols::default();
        let at = symbols.add(Symbol::counter("at", Dim::from(1000), 1000));
        let n = symbols.add(Symbol::new("n", 1, 64, 1));
        let (i, size) = (symbols.dim(at), symbols.dim(n));
        let scope = Scope::new(&symbols);
        let two = Dim::from(2);
        let half = |dim: &Dim| scope.modulo(dim, &two);
        let flag = scope.cond(Cmp::Eq, &half(&i), &Dim::ZERO);
        let cases = [
            (size.clone(), Some(1)),
            (half(&i), Some(2)),
            (half(&(&i + 1)) * &size + &size, Some(2)),
            (half(&(&i * &size + &size)), None),
            (scope.modulo(&(i.scaled(5) + &size), &Dim::from(6)) + half(&i), Some(6)),
            (scope.select(&flag, &size, &Dim::ONE), Some(2)),
            (scope.max(&(half(&i) * &size), &Dim::from(7)), Some(2)),
            (i.clone(), None),
            (half(&i) + &i, None),
            (scope.floor_div(&i, &two), None),
            (scope.modulo(&i, &size), None),
            (scope.modulo(&i, &Dim::from(65)), None),
            (scope.modulo(&i, &Dim::from(9)) + scope.modulo(&i, &Dim::from(8)), None),
        ];
        for (dim, period) in cases {
            assert_eq!(dim.period(at, 64), period, "{dim}");
            let Some(period) = period else { continue };
            for (at, n) in [(0, 1), (1, 3), (8, 5), (11, 8)] {
                let value = |at: i64| dim.eval([at, n].as_slice()).unwrap();
                assert_eq!(value(at), value(at + period), "{dim} at {at}");
            }
        }
        assert!(flag.mentions(at) && !flag.mentions(n) && !size.mentions(at));
    }
}
