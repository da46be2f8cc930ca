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
        !dim.any(|atom| match atom {
            Atom::Sym(SymId(i)) => !self.known.get(*i as usize).copied().unwrap_or(false),
            _ => false,
        })
    }

    /// Whether all of them have.
    pub(crate) fn has_all(&self, dims: &[Dim]) -> bool {
        dims.iter().all(|dim| self.has(dim))
    }
}
