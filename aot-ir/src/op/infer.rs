//! Types and shapes of results.

use crate::{DType, Dim, Op, Symbols, Value};

/// What an operator's rule found.
#[derive(Clone, Debug, Default)]
pub struct Inferred {
    /// Type and shape of every result.
    pub outputs: Vec<(DType, Vec<Dim>)>,
    /// Pairs of dims that must be equal at run time and could not be proved so.
    pub guards: Vec<(Dim, Dim)>,
}

/// Why operands do not fit an operator.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ShapeError(pub String);

impl Op {
    /// Types and shapes of the results for operands of these types and shapes.
    ///
    /// # Errors
    /// When the operands do not fit: wrong number, types, ranks, or extents that can't be equal.
    pub fn infer(&self, _operands: &[&Value], _symbols: &Symbols) -> Result<Inferred, ShapeError> {
        Err(ShapeError(format!("no shape rule for {}", self.name())))
    }
}
