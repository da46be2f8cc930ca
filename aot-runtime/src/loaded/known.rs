//! Which sizes of a run are known so far.

use aot_ir::dim::Atom;
use aot_ir::{Dim, SymId, Symbols};

/// Atoms by symbol, and which of them are known.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    atoms: Vec<i64>,
    known: Vec<bool>,
}

impl Known {
    /// What the shapes of inputs tell.
    pub(crate) fn new(symbols: &Symbols, atoms: &[i64]) -> Self {
        let known = symbols.iter().map(|(id, _)| !symbols.in_run(id)).collect();
        Self { atoms: atoms.to_vec(), known }
    }

    #[cfg(feature = "cuda")]
    pub(super) fn bind(&mut self, symbol: SymId, atom: i64) {
        let i = symbol.0 as usize;
        if let (Some(slot), Some(known)) = (self.atoms.get_mut(i), self.known.get_mut(i)) {
            (*slot, *known) = (atom, true);
        }
    }

    /// Atoms by symbol; the greatest where the size is not known.
    pub(crate) fn atoms(&self) -> &[i64] {
        &self.atoms
    }

    /// Whether an expression has a value by now.
    pub(crate) fn has(&self, dim: &Dim) -> bool {
        let unknown = |atom: &Atom| match atom {
            Atom::Sym(SymId(i)) => !self.known.get(*i as usize).copied().unwrap_or(false),
            _ => false,
        };
        self.known.iter().all(|known| *known) || !dim.any(unknown)
    }

    /// Whether all of them have.
    pub(crate) fn has_all(&self, dims: &[Dim]) -> bool {
        dims.iter().all(|dim| self.has(dim))
    }
}

#[cfg(all(test, feature = "cuda"))]
mod tests {
    use super::*;
    use aot_ir::Symbol;

    #[test]
    fn what_the_run_binds_is_not_known_before() {
        let mut symbols = Symbols::default();
        let n = symbols.add(Symbol::new("n", 1, 8, 1));
        let given = symbols.dim(n);
        assert!(Known::new(&symbols, &[2]).has(&given));
        let found = symbols.add(Symbol::in_run("found", 0, 9));
        let sum = &given + &symbols.dim(found);
        let mut known = Known::new(&symbols, &[2, 9]);
        assert!(known.has(&given) && !known.has(&sum));
        assert!(known.has_all(&[Dim::ONE, given.clone()]) && !known.has_all(&[given, sum.clone()]));
        known.bind(found, 4);
        assert!(known.has(&sum));
        assert_eq!(known.atoms(), [2, 4]);
    }
}
