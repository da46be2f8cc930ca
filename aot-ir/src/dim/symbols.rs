//! Named run-time sizes.

use super::{Atom, Dim, SymId};
use serde::{Deserialize, Serialize};

/// What gives a symbol its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BoundBy {
    /// The shapes of inputs, before a run.
    #[default]
    Shapes,
    /// The run itself: a value that it computes, or the turns of a loop.
    Run,
}

/// A run-time size: `scale * atom + offset`, where the atom is an integer in `lo..=hi`.
///
/// A size with a step is stored through its atom (a multiple of 32 up to 960 is 32 times an atom in
/// `1..=30`), so that the algebra sees its divisibility.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Symbol {
    /// The name users know it by.
    pub name: String,
    /// Least atom.
    pub lo: i64,
    /// Greatest atom.
    pub hi: i64,
    /// Size per atom, positive.
    pub scale: i64,
    /// Size at atom 0.
    pub offset: i64,
    /// What gives it its size.
    pub bound_by: BoundBy,
    /// An expression of earlier symbols that the atom is less than, beside `hi`.
    pub below: Option<Dim>,
}

impl Symbol {
    /// A size in `lo..=hi` that advances from `lo` by `step`.
    ///
    /// `hi` is lowered to the last size that the step reaches; `step` must be positive.
    pub fn new(name: impl Into<String>, lo: i64, hi: i64, step: i64) -> Self {
        let step = step.max(1);
        let (name, bound_by) = (name.into(), BoundBy::Shapes);
        if step == 1 {
            return Self { name, lo, hi, scale: 1, offset: 0, bound_by, below: None };
        }
        let (lo, hi, offset) = match lo % step {
            0 => (lo / step, hi.div_euclid(step), 0),
            _ => (0, (hi - lo).div_euclid(step), lo),
        };
        Self { name, lo, hi, scale: step, offset, bound_by, below: None }
    }

    /// A size in `lo..=hi` that is bound during a run.
    pub fn in_run(name: impl Into<String>, lo: i64, hi: i64) -> Self {
        Self { bound_by: BoundBy::Run, ..Self::new(name, lo, hi, 1) }
    }

    /// What counts the iterations of a loop from 0: less than `count`, which is `most` at most.
    pub fn counter(name: impl Into<String>, count: Dim, most: i64) -> Self {
        let hi = most.saturating_sub(1).max(0);
        Self { below: Some(count), ..Self::in_run(name, 0, hi) }
    }

    /// Least size.
    pub fn min_size(&self) -> i64 {
        self.scale * self.lo + self.offset
    }

    /// Greatest size.
    pub fn max_size(&self) -> i64 {
        self.scale * self.hi + self.offset
    }

    /// The size in range and on the step that is nearest below `size`, or the least.
    pub fn nearest(&self, size: i64) -> i64 {
        let atom = size.saturating_sub(self.offset).div_euclid(self.scale);
        self.scale * atom.clamp(self.lo, self.hi) + self.offset
    }

    /// The atom of a size, if the size is in range and on the step.
    pub fn atom_of(&self, size: i64) -> Option<i64> {
        let distance = size.checked_sub(self.offset)?;
        let atom = distance.div_euclid(self.scale);
        (distance.rem_euclid(self.scale) == 0 && (self.lo..=self.hi).contains(&atom))
            .then_some(atom)
    }
}

/// The table that [`SymId`]s index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Symbols(Vec<Symbol>);

impl Symbols {
    /// Adds a symbol.
    pub fn add(&mut self, symbol: Symbol) -> SymId {
        self.0.push(symbol);
        SymId(self.0.len() as u32 - 1)
    }

    /// The symbol of an id, if the table has it.
    pub fn get(&self, id: SymId) -> Option<&Symbol> {
        self.0.get(id.0 as usize)
    }

    /// The symbol of this name.
    pub fn find(&self, name: &str) -> Option<SymId> {
        self.0.iter().position(|s| s.name == name).map(|i| SymId(i as u32))
    }

    /// The size that a symbol stands for, as an expression of its atom.
    pub fn dim(&self, id: SymId) -> Dim {
        match self.get(id) {
            Some(s) => Dim::atom(Atom::Sym(id)).scaled(s.scale) + Dim::from(s.offset),
            None => Dim::atom(Atom::Sym(id)),
        }
    }

    /// Whether the symbol is bound during a run; see [`BoundBy`].
    pub fn in_run(&self, id: SymId) -> bool {
        self.get(id).is_some_and(|s| s.bound_by == BoundBy::Run)
    }

    /// Whether an expression mentions a symbol that is bound during a run.
    pub fn mentions_run(&self, dim: &Dim) -> bool {
        dim.any(|atom| matches!(atom, Atom::Sym(id) if self.in_run(*id)))
    }

    /// All symbols in the order of their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (SymId, &Symbol)> {
        self.0.iter().enumerate().map(|(i, s)| (SymId(i as u32), s))
    }

    /// Checks that every range is one and that sizes are small enough to compute with, as after
    /// loading symbols from a file.
    ///
    /// # Errors
    /// The first symbol that is wrong.
    pub fn check(&self) -> Result<(), String> {
        const LARGEST: i64 = 1 << 40;
        for (i, Symbol { name, lo, hi, scale, offset, below, .. }) in self.0.iter().enumerate() {
            let size = |v: i64| v.checked_mul(*scale).and_then(|v| v.checked_add(*offset));
            let sane = |v: &Option<i64>| v.is_some_and(|v| (-LARGEST..=LARGEST).contains(&v));
            let bounded = [Some(*offset), size(*lo), size(*hi)].iter().all(sane);
            let later = |a: &Atom| !matches!(a, Atom::Sym(id) if (id.0 as usize) < i);
            let cyclic = below.as_ref().is_some_and(|d| d.any(|a| a.is_leaf() && later(a)));
            if *scale < 1 || lo > hi || !bounded || cyclic {
                return Err(format!("dim `{name}` has no sane range"));
            }
        }
        Ok(())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
