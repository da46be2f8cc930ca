//! Checking of equalities at run time.

use crate::{DimError, Guard, Symbols};

/// Why a guard does not let a run pass.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GuardError {
    /// The two sizes differ.
    #[error("`{node}` needs {lhs} = {rhs}, but they are {left} and {right}")]
    Unequal {
        /// Name of the node that needs it.
        node: String,
        /// One side.
        lhs: String,
        /// The other side.
        rhs: String,
        /// Value of `lhs`.
        left: i64,
        /// Value of `rhs`.
        right: i64,
    },
    /// A side has no value.
    #[error(transparent)]
    Dim(#[from] DimError),
}

impl Guard {
    /// Whether the equality can be checked before a run: it mentions no symbol that the run binds.
    pub fn before_run(&self, symbols: &Symbols) -> bool {
        !symbols.mentions_run(&self.lhs) && !symbols.mentions_run(&self.rhs)
    }

    /// Checks the equality for these atoms of symbols, by id.
    ///
    /// # Errors
    /// When it does not hold.
    pub fn check(&self, symbols: &Symbols, atoms: &[i64]) -> Result<(), GuardError> {
        let (left, right) = (self.lhs.eval(atoms)?, self.rhs.eval(atoms)?);
        if left == right {
            return Ok(());
        }
        Err(GuardError::Unequal {
            node: self.node.clone(),
            lhs: symbols.show(&self.lhs),
            rhs: symbols.show(&self.rhs),
            left,
            right,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dim, Symbol};

    #[test]
    fn errors_name_both_sides() {
        let mut symbols = Symbols::default();
        let n = symbols.add(Symbol::new("n", 1, 64, 1));
        let guard = Guard { lhs: symbols.dim(n), rhs: Dim::from(7), node: "add".into() };
        assert_eq!(guard.check(&symbols, &[7]), Ok(()));
        let error = guard.check(&symbols, &[8]).unwrap_err();
        assert_eq!(error.to_string(), "`add` needs n = 7, but they are 8 and 7");
    }
}
