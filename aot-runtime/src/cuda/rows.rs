//! Steps whose sizes data decide, evaluated ahead: a row of sizes for all that data may decide, and one list of actions.

use std::collections::BTreeMap;

use aot_ir::{Dim, SymId};

use super::actions::{Action, Actions, Blocks, Control, Mode, Value};
use super::evaluate::Evaluation;
use super::values::Values;
use crate::program::{Loop, Step};
use crate::{Error, Result};

/// What a loop has among the sizes before its kernels' own: the number of iterations at most, filled up to 16 bytes, and
/// its progress.
pub(super) const HEADER: usize = 32;
/// Where the progress begins in it: the iterations that were made.
pub(super) const PROGRESS: usize = 16;
/// Sizes are copied in units of so many bytes.
const VECTOR: usize = 16;
/// Iterations of a rehearsal, at most: whether loops end means nothing there.
pub(super) const REHEARSED: i64 = 2;

/// Rows of sizes for the same actions.
#[derive(Debug, Default)]
struct Rows {
    actions: Option<Vec<Action>>,
    sizes: Vec<u8>,
    /// Bytes of one.
    length: usize,
}

impl Rows {
    fn push(&mut self, row: Actions) -> Result<()> {
        let Actions { actions, sizes, .. } = row;
        let unlike = || Error::artifact("the program", "what data decide changes more than sizes");
        match &mut self.actions {
            None => (self.actions, self.length) = (Some(actions), sizes.len()),
            Some(known) if known.len() == actions.len() && self.length == sizes.len() => {
                for (known, action) in known.iter_mut().zip(&actions) {
                    known.join(action).ok_or_else(unlike)?;
                }
            }
            Some(_) => return Err(unlike()),
        }
        self.sizes.extend(sizes);
        Ok(())
    }
}

impl Action {
    /// Becomes what serves for another row, too, if they differ in how many blocks have something to do alone.
    fn join(&mut self, other: &Self) -> Option<()> {
        let mut same = *self;
        if let (
            Self::Launch { blocks: Blocks::AtLeast(a), .. },
            Self::Launch { blocks: Blocks::AtLeast(b), .. },
        ) = (&mut same, other)
        {
            *a = (*b).max(*a);
            *self = same;
            if let Self::Launch { blocks, .. } = &mut same {
                *blocks = Blocks::AtLeast(*b);
            }
        }
        (same == *other).then_some(())
    }

    /// The action with its sizes so many bytes later.
    fn moved(self, by: u64) -> Self {
        match self {
            Self::Launch { template, blocks, sizes, early } => {
                Self::Launch { template, blocks, sizes: sizes + by, early }
            }
            Self::Copy { .. } => self,
            Self::Control(control) => Self::Control(control.moved(by)),
        }
    }
}

impl Evaluation<'_> {
    /// A loop as a node of a graph: the rows are of its first iterations. Where the sizes have its header.
    pub(super) fn add_loop(
        &mut self,
        repeated: &Loop,
        rows: i64,
        values: &Values<'_>,
        actions: &mut Actions,
    ) -> Result<u64> {
        let header = actions.sizes.len();
        let mut count = repeated.count.eval(values.atoms())?;
        if self.rehearsed && repeated.condition.is_some() {
            count = count.min(REHEARSED);
        }
        actions.sizes.extend(count.to_le_bytes());
        actions.sizes.resize(header + HEADER, 0);
        let depends = self.decided.keys().any(|symbol| repeated.count.mentions(*symbol));
        if count <= 0 && !depends {
            return Ok(header as u64);
        }
        let values = if count > 0 { values.clone() } else { self.at_some(&repeated.count, values) };
        let at_most = repeated.count.eval(values.atoms())?.clamp(1, rows);
        // There are as many rows whatever data decide. Those of iterations that are not made have any sizes.
        let rows = if depends { rows } else { at_most };
        let iterations = (0..rows).map(|iteration| iteration.min(at_most - 1));
        let body = self.rows_of(repeated.iteration, iterations, &repeated.body, &values)?;
        let condition = repeated.condition.map(|buffer| self.layout.place(buffer)).transpose()?;
        let value = Value::Sizes(header as u64);
        let control = Control {
            mode: Mode::Begin,
            condition,
            value,
            progress: (header + PROGRESS) as u64,
            period: rows as u32,
            ..Control::default()
        };
        self.add_rows(control, body, actions);
        Ok(header as u64)
    }

    /// The steps after a symbol got its size on the GPU, which is one of `choices` as far as they are concerned.
    pub(super) fn add_chosen(
        &mut self,
        (symbol, choices): (SymId, i64),
        value: Value,
        rest: &[Step],
        values: &Values<'_>,
        actions: &mut Actions,
    ) -> Result<()> {
        let (least, most) = self.range(symbol);
        let sizes = (0..choices.min(most.saturating_add(1)).max(1)).map(|row| {
            let size = least + (row - least).rem_euclid(choices);
            if size > most { least } else { size }
        });
        let rows = self.rows_of(symbol, sizes, rest, values)?;
        if rows.actions.as_ref().is_none_or(Vec::is_empty) {
            return Ok(());
        }
        let period = choices as u32;
        let control = Control { mode: Mode::Choose, value, period, ..Control::default() };
        self.add_rows(control, rows, actions);
        Ok(())
    }

    /// Rows of steps, one for each of a symbol's atoms.
    fn rows_of(
        &mut self,
        symbol: SymId,
        atoms: impl Iterator<Item = i64> + Clone,
        steps: &[Step],
        values: &Values<'_>,
    ) -> Result<Rows> {
        let mut values = values.clone();
        let mut rows = Rows::default();
        self.decided.insert(symbol, atoms.clone().collect());
        for atom in atoms {
            values.set(symbol, atom);
            let mut row = Actions::default();
            self.add(steps, &mut values, &mut row)?;
            rows.push(row)?;
        }
        self.decided.remove(&symbol);
        Ok(rows)
    }

    /// Values at which a loop that is not made at these has an iteration. Which sizes its kernels have does not matter then,
    /// but they have to be some.
    fn at_some<'v>(&self, count: &Dim, values: &Values<'v>) -> Values<'v> {
        for (symbol, atoms) in self.decided.iter().filter(|(symbol, _)| count.mentions(**symbol)) {
            let mut values = values.clone();
            for atom in atoms {
                values.set(*symbol, *atom);
                if count.eval(values.atoms()).is_ok_and(|n| n > 0) {
                    return values;
                }
            }
        }
        values.clone()
    }

    /// The range of a symbol that the run binds.
    fn range(&self, symbol: SymId) -> (i64, i64) {
        let symbol = self.layout.program().symbols.get(symbol);
        symbol.map_or((0, 0), |symbol| (symbol.lo, symbol.hi))
    }

    /// A kernel that brings one of the rows to where the actions have their sizes, and these; of a loop also a kernel after
    /// them.
    fn add_rows(&self, control: Control, rows: Rows, actions: &mut Actions) {
        let own = actions.sizes.len();
        let first = own + rows.length;
        let vectors = (rows.length / VECTOR) as u32;
        let control = Control { rows: first as u64, sizes: own as u64, vectors, ..control };
        actions.sizes.resize(first, 0);
        actions.sizes.extend(rows.sizes);
        actions.control(control);
        let each = rows.actions.into_iter().flatten();
        actions.actions.extend(each.map(|action| action.moved(own as u64)));
        if control.mode == Mode::Begin {
            actions.control(Control { mode: Mode::End, ..control });
        }
    }
}

/// By symbol: the atoms that it may have, of symbols that have one on the GPU only.
pub(super) type Decided = BTreeMap<SymId, Vec<i64>>;

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
