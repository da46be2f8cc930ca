//! The symbols' atoms during a run.

use super::error::ExecError;
use super::tensor::Tensor;
use crate::dim::{Atom, ShapePattern, atom_of, bind};
use crate::{Dim, Graph, SymId, ValueId};

/// Atoms by symbol, and which of them are known so far. Guards are checked as soon as they can be.
#[derive(Debug)]
pub(super) struct Sizes {
    atoms: Vec<i64>,
    known: Vec<bool>,
}

impl Sizes {
    /// The sizes that the shapes of inputs give.
    pub(super) fn new(graph: &Graph, shapes: &[ShapePattern<'_>]) -> Result<Self, ExecError> {
        let atoms = bind(&graph.symbols, shapes)?;
        let known = graph.symbols.iter().map(|(id, _)| !graph.symbols.in_run(id)).collect();
        let sizes = Self { atoms, known };
        sizes.check(graph, &|_| true)?;
        Ok(sizes)
    }

    /// Sizes that are known, by symbol; those of the rest of `symbols` are not.
    pub(super) fn of_atoms(atoms: &[i64], symbols: usize) -> Self {
        let (mut atoms, mut known) = (atoms.to_vec(), vec![true; atoms.len()]);
        atoms.resize(atoms.len().max(symbols), 0);
        known.resize(atoms.len(), false);
        Self { atoms, known }
    }

    /// Forgets what symbols were.
    pub(super) fn forget(&mut self, symbols: &[SymId]) {
        for symbol in symbols {
            if let Some(known) = self.known.get_mut(symbol.0 as usize) {
                *known = false;
            }
        }
    }

    /// Begins an iteration of a loop: the symbol that counts is `at`, and the guards of the body must hold.
    pub(super) fn begin(&mut self, body: &Graph, symbol: SymId, at: i64) -> Result<(), ExecError> {
        self.put(body, symbol, at)?;
        self.check(body, &|_| true)
    }

    /// Gives a symbol a size.
    fn set(&mut self, graph: &Graph, symbol: SymId, size: i64) -> Result<(), ExecError> {
        self.put(graph, symbol, size)?;
        self.check(graph, &|dim| dim.any(|atom| *atom == Atom::Sym(symbol)))
    }

    fn put(&mut self, graph: &Graph, symbol: SymId, size: i64) -> Result<(), ExecError> {
        let i = symbol.0 as usize;
        let (Some(atom), Some(known)) = (self.atoms.get_mut(i), self.known.get_mut(i)) else {
            return Err(ExecError::value("a size is bound that does not exist"));
        };
        *atom = atom_of(&graph.symbols, symbol, size)?;
        *known = true;
        Ok(())
    }

    /// Binds the symbols whose size a computed value is.
    pub(super) fn bind(
        &mut self,
        graph: &Graph,
        value: ValueId,
        size: &Tensor,
    ) -> Result<(), ExecError> {
        for binding in graph.bindings.iter().filter(|b| b.size == value) {
            let found = size.to_i64().first().copied();
            let found = found.ok_or_else(|| ExecError::value("a size has no element"))?;
            self.set(graph, binding.symbol, found)?;
        }
        Ok(())
    }

    /// Checks the guards of whose sides one is `wanted`, where all symbols are known.
    fn check(&self, graph: &Graph, wanted: &dyn Fn(&Dim) -> bool) -> Result<(), ExecError> {
        let unknown = |atom: &Atom| match atom {
            Atom::Sym(id) => !self.known.get(id.0 as usize).copied().unwrap_or(false),
            _ => false,
        };
        for guard in &graph.guards {
            let sides = [&guard.lhs, &guard.rhs];
            let due = sides.iter().any(|d| wanted(d)) && !sides.iter().any(|d| d.any(unknown));
            if due {
                guard.check(&graph.symbols, &self.atoms)?;
            }
        }
        Ok(())
    }

    /// Atoms by symbol; the greatest where the size is not known yet.
    pub(super) fn atoms(&self) -> &[i64] {
        &self.atoms
    }

    pub(super) fn into_atoms(self) -> Vec<i64> {
        self.atoms
    }
}
