//! Fusion groups: the unit of fusion and of kernels.
//!
//! A [`Group`] is an [`Anchor`] with scalar expressions and index maps on its loads and stores. Loop
//! variables are numbered by [`VarId`](aot_ir::dim::VarId); index maps are [`Dim`](aot_ir::Dim)s over
//! variables, symbols and, for data-dependent coordinates, `Atom::Value(n)`: the value of the group's
//! expression `n`.

mod anchor;
mod expr;
mod group_type;
mod in_place;
mod merge;

pub use anchor::{Anchor, Attention, Contraction, MathType, OnHost, Stage};
pub use expr::{Expr, ExprId, FoldOp, OperandId, Typed, compute_type};
pub use group_type::{Group, Operand, Store};
