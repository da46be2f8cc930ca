//! Why an expression has the sign that it has, for those who choose the ranges of sizes.

use super::expr::{Atom, Dim};
use super::symbols::{Symbol, Symbols};
use super::{BoundBy, SymId};

/// No size beyond this is advised.
const FARTHEST: i64 = 1 << 40;

impl Symbols {
    /// For an expression that is negative at all sizes: which sizes that are, and from which one on it is not, as a
    /// text to put behind what says that it is negative. Nothing if it mentions no size that shapes give.
    pub fn why_negative(&self, dim: &Dim) -> String {
        let given = self.iter().filter(|(id, symbol)| {
            symbol.bound_by == BoundBy::Shapes && dim.any(|atom| *atom == Atom::Sym(*id))
        });
        let given: Vec<(SymId, &Symbol)> = given.collect();
        let range = |s: &Symbol| format!("{} in {}..={}", s.name, s.min_size(), s.max_size());
        match given.as_slice() {
            [] => String::new(),
            [(id, symbol)] => match self.reaches(dim, *id, symbol) {
                Some(size) => format!(
                    " for all {}: the range of `{}` has to begin at {size}, or reach it",
                    range(symbol),
                    symbol.name
                ),
                None => format!(" for all {}", range(symbol)),
            },
            several => {
                let ranges: Vec<String> = several.iter().map(|(_, s)| range(s)).collect();
                format!(" for all {}: larger sizes are needed", ranges.join(", "))
            }
        }
    }

    /// The least size of `symbol` beyond its range at which an expression of it alone is not negative.
    fn reaches(&self, dim: &Dim, id: SymId, symbol: &Symbol) -> Option<i64> {
        let negative = |atom: i64| {
            let value = dim.eval(&|a: &Atom| (*a == Atom::Sym(id)).then_some(atom));
            value.map_or(true, |value| value < 0)
        };
        let (mut below, mut step) = (symbol.hi, 1);
        while negative(below + step) {
            below += step;
            step *= 2;
            if below > FARTHEST {
                return None;
            }
        }
        let mut above = below + step;
        while above - below > 1 {
            let middle = below + (above - below) / 2;
            if negative(middle) {
                below = middle;
            } else {
                above = middle;
            }
        }
        Some(symbol.scale * above + symbol.offset)
    }
}
