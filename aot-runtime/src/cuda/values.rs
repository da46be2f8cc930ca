//! Values of expressions at the sizes of a run.

use std::collections::HashMap;

use aot_ir::dim::{Atom, Cond};
use aot_ir::{Dim, SymId};

use crate::Result;

/// Index of an expression in [`Expressions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct DimId(usize);

/// Expressions over symbols, each once: the layers of a model share most of theirs.
#[derive(Debug, Default)]
pub(super) struct Expressions {
    dims: Vec<Dim>,
    ids: HashMap<Dim, DimId>,
    /// By symbol: what mentions it.
    mentions: Vec<Vec<DimId>>,
}

impl Expressions {
    /// An expression's index.
    pub(super) fn dim(&mut self, dim: &Dim) -> DimId {
        if let Some(id) = self.ids.get(dim) {
            return *id;
        }
        let id = DimId(self.dims.len());
        self.dims.push(dim.clone());
        self.ids.insert(dim.clone(), id);
        dim.visit(&mut |atom| {
            if let Atom::Sym(SymId(symbol)) = atom {
                let symbol = *symbol as usize;
                self.mentions.resize_with(self.mentions.len().max(symbol + 1), Vec::new);
                let mentions = &mut self.mentions[symbol];
                if mentions.last() != Some(&id) {
                    mentions.push(id);
                }
            }
        });
        id
    }

    /// The index of an expression that is 1 where a condition holds, else 0.
    pub(super) fn cond(&mut self, cond: &Cond) -> DimId {
        self.dim(&Dim::atom(Atom::Select(cond.clone(), Dim::ONE, Dim::ZERO)))
    }
}

/// Values of expressions, each found when it is asked for first.
#[derive(Clone, Debug)]
pub(super) struct Values<'e> {
    expressions: &'e Expressions,
    atoms: Vec<i64>,
    found: Vec<Option<i64>>,
}

impl<'e> Values<'e> {
    /// The values at sizes given by the symbols' atoms.
    pub(super) fn new(expressions: &'e Expressions, atoms: &[i64]) -> Self {
        Self { expressions, atoms: atoms.to_vec(), found: vec![None; expressions.dims.len()] }
    }

    /// The symbols' atoms by id.
    pub(super) fn atoms(&self) -> &[i64] {
        &self.atoms
    }

    /// Gives a symbol another atom.
    pub(super) fn set(&mut self, symbol: SymId, atom: i64) {
        let symbol = symbol.0 as usize;
        for id in self.expressions.mentions.get(symbol).into_iter().flatten() {
            self.found[id.0] = None;
        }
        if let Some(slot) = self.atoms.get_mut(symbol) {
            *slot = atom;
        }
    }

    /// The value of an expression.
    ///
    /// # Errors
    /// As [`Dim::eval`].
    pub(super) fn get(&mut self, id: DimId) -> Result<i64> {
        if let Some(value) = self.found[id.0] {
            return Ok(value);
        }
        let value = self.expressions.dims[id.0].eval(self.atoms.as_slice())?;
        self.found[id.0] = Some(value);
        Ok(value)
    }

    /// Whether a condition holds.
    ///
    /// # Errors
    /// As [`Cond::eval`].
    pub(super) fn holds(&mut self, id: DimId) -> Result<bool> {
        Ok(self.get(id)? != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aot_ir::dim::Cmp;

    #[test]
    fn values_follow_the_atoms() {
        let [n, i] = [0, 1].map(|id| Dim::atom(Atom::Sym(SymId(id))));
        let mut all = Expressions::default();
        let inverse = all.dim(&Dim::atom(Atom::FloorDiv(Dim::from(12), i.clone())));
        let (sum, twice) = (all.dim(&(&n + &i)), all.dim(&(&n * 2)));
        assert_eq!((all.dim(&(&i + &n)), all.dims.len()), (sum, 3));
        let less = all.cond(&Cond::Cmp(Cmp::Lt, i, n));
        let mut values = Values::new(&all, &[5, 0]);
        let mut at = |atom| {
            values.set(SymId(1), atom);
            ([inverse, sum, twice].map(|id| values.get(id).ok()), values.holds(less).ok())
        };
        assert_eq!(at(0), ([None, Some(5), Some(10)], Some(true)));
        assert_eq!(at(6), ([Some(2), Some(11), Some(10)], Some(false)));
        assert_eq!(at(4), ([Some(3), Some(9), Some(10)], Some(true)));
        assert_eq!(at(0), ([None, Some(5), Some(10)], Some(true)));
        assert_eq!(values.atoms(), [5, 0]);
    }
}
