//! Scalar expressions of a group.

use aot_ir::dim::{Cond, VarId};
use aot_ir::op::{BinaryOp, UnaryOp};
use aot_ir::{DType, Dim, Scalar};
use serde::{Deserialize, Serialize};

/// Index of an expression in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ExprId(pub u32);

/// Index of an operand (a buffer that is read or written) in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OperandId(pub u32);

impl ExprId {
    /// The index as `usize`.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl OperandId {
    /// The index as `usize`.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A scalar as a function of the group's loop variables.
///
/// Expressions are stored so that one's parts come before it. Arithmetic is done in the type of
/// the [`Typed`] node: `F32` for every float narrower than `F64`, whatever the storage type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Expr {
    /// A constant.
    Const(Scalar),
    /// An integer expression of loop variables and sizes, as a number.
    Coord(Dim),
    /// The element of a buffer at an offset, or `other` where the guard does not hold (then
    /// nothing is read). Storage types are widened: floats below `F64` to `F32`, integers and
    /// booleans keep their value.
    Load {
        /// The buffer.
        operand: OperandId,
        /// Elements from the buffer's start.
        offset: Dim,
        /// Where it may be read.
        guard: Cond,
        /// The value elsewhere.
        other: Scalar,
    },
    /// The n-th result of the group's anchor at the current place; see [`Anchor`](super::Anchor).
    Acc(u32),
    /// `f(x)`; semantics of [`UnaryOp`].
    Unary(UnaryOp, ExprId),
    /// `f(a, b)`; semantics of [`BinaryOp`].
    Binary(BinaryOp, ExprId, ExprId),
    /// The second where the first holds, else the third.
    Select(ExprId, ExprId, ExprId),
    /// Conversion to the type of this node, with the semantics of `Op::Cast`; to a storage type
    /// narrower than `F32` it rounds and widens again.
    Cast {
        /// What is converted.
        value: ExprId,
        /// The type that it is rounded to.
        to: DType,
    },
    /// A serial reduction over small extents, for windows.
    Fold {
        /// What combines.
        op: FoldOp,
        /// Variables that run over their extents, outermost first; bound in `body` only.
        vars: Vec<VarId>,
        /// What is combined.
        body: ExprId,
    },
}

/// How folds and reductions combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum FoldOp {
    /// Sum; 0 over nothing.
    Sum,
    /// Product; 1 over nothing.
    Prod,
    /// Largest, NaN wins; the type's lowest value (-∞ for floats) over nothing.
    Max,
    /// Smallest, NaN wins; the type's highest value (+∞ for floats) over nothing.
    Min,
    /// Row-major index (`I64`) of the largest element; NaN counts as largest.
    ArgMax {
        /// The last of equal elements (else the first).
        last: bool,
    },
    /// Row-major index (`I64`) of the smallest element; NaN counts as smallest.
    ArgMin {
        /// The last of equal elements (else the first).
        last: bool,
    },
}

/// An expression with the type it is computed in: `Bool`, `I32`, `U32`, `I64`, `U64`, `F32` or `F64`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Typed {
    /// The expression.
    pub expr: Expr,
    /// Its type.
    pub dtype: DType,
}

/// The type that arithmetic on elements of `storage` is done in.
pub fn compute_type(storage: DType) -> DType {
    match storage {
        DType::Bool => DType::Bool,
        DType::F64 => DType::F64,
        t if t.is_float() => DType::F32,
        DType::I64 => DType::I64,
        DType::U64 => DType::U64,
        DType::U32 => DType::U32,
        _ => DType::I32,
    }
}
