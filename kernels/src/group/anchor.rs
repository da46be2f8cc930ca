//! What a group computes besides scalar expressions.

use super::OperandId;
use super::expr::{ExprId, FoldOp};
use aot_ir::dim::VarId;
use aot_ir::op::HostOp;
use serde::{Deserialize, Serialize};

/// The type that matrix units multiply in; sums are kept in `F32` (in `F64` for `F64`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum MathType {
    /// No matrix unit: fused multiply-add in binary32.
    F32,
    /// Operands rounded to TF32.
    Tf32,
    /// Operands rounded to binary16.
    F16,
    /// Operands rounded to bfloat16.
    Bf16,
    /// No matrix unit: binary64.
    F64,
    /// No matrix unit: 32-bit integers that wrap.
    I32,
}

/// The heart of a group. Every loop variable of a group belongs to its anchor or to a fold.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Anchor {
    /// Every place of the iteration space by itself. Stores may use all of `space`.
    Map {
        /// Outermost first.
        space: Vec<VarId>,
    },
    /// For every row, stages of reductions over the same elements.
    ///
    /// Stage `n`'s result is `Acc(n)`; its value may use the results of earlier stages. Stores with
    /// `per_element` are done at every element of every row, others once a row; both may use all
    /// results.
    Reduce {
        /// Variables that number the rows, outermost first.
        rows: Vec<VarId>,
        /// Variables that number a row's elements, outermost first.
        over: Vec<VarId>,
        /// Reductions in order.
        stages: Vec<Stage>,
    },
    /// For every row, the running combination along one variable, in order.
    ///
    /// `Acc(0)` is, at every element, the combination of the values up to it. Stores are done at every
    /// element.
    Scan {
        /// Variables that number the rows, outermost first.
        rows: Vec<VarId>,
        /// Numbers a row's elements.
        along: VarId,
        /// What combines; seeks no index.
        op: FoldOp,
        /// What is combined: uses `rows` and `along`.
        value: ExprId,
        /// The element itself is left out.
        exclusive: bool,
        /// From the last element to the first.
        reverse: bool,
    },
    /// `Acc(0)[batch, m, n] = Σ_k a[batch, m, k] · b[batch, k, n]`: matrix products, and
    /// convolutions as implicit matrix products (then `k` is kernel × channels and `a` is guarded).
    Contraction(Contraction),
    /// `Acc(1)[batch, q, e] = Σ_t softmax_t(score) · v`, where `score` is an expression of
    /// `Acc(0)[batch, q, t] = Σ_d q · k` and of the coordinates.
    Attention(Attention),
    /// What the host does: no kernel. The group has no loop variables, expressions or stores.
    Host(OnHost),
}

/// What the host does with whole buffers, which hold row-major tensors; see [`Anchor::Host`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OnHost {
    /// What it does.
    pub op: HostOp,
    /// Its operands, in order.
    pub operands: Vec<OperandId>,
    /// Where its result goes.
    pub result: OperandId,
}

/// One reduction over the elements of a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stage {
    /// What combines.
    pub op: FoldOp,
    /// What is combined.
    pub value: ExprId,
}

/// A matrix product; see [`Anchor::Contraction`]. Variable lists are outermost first and may be
/// empty (then that extent is 1).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Contraction {
    /// In both operands and the result.
    pub batch: Vec<VarId>,
    /// In the left operand and the result.
    pub m: Vec<VarId>,
    /// In the right operand and the result.
    pub n: Vec<VarId>,
    /// Summed over.
    pub k: Vec<VarId>,
    /// Left operand: uses `batch`, `m`, `k`.
    pub a: ExprId,
    /// Right operand: uses `batch`, `k`, `n`.
    pub b: ExprId,
    /// What products are computed in.
    pub math: MathType,
}

/// Attention; see [`Anchor::Attention`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Attention {
    /// Batch and heads, outermost first.
    pub batch: Vec<VarId>,
    /// Rows: queries.
    pub row: VarId,
    /// Columns: keys.
    pub col: VarId,
    /// Summed over in the scores; a constant extent.
    pub qk: VarId,
    /// Width of the result; a constant extent.
    pub width: VarId,
    /// Query element: uses `batch`, `row`, `qk`.
    pub q: ExprId,
    /// Key element: uses `batch`, `col`, `qk`.
    pub k: ExprId,
    /// Value element: uses `batch`, `col`, `width`.
    pub v: ExprId,
    /// Score as `F32`: uses `batch`, `row`, `col` and `Acc(0)`; -∞ excludes.
    pub score: ExprId,
    /// No column after `row + columns - rows` counts (the score says so too): tiles there may be
    /// skipped.
    pub causal: bool,
    /// A row whose scores are all -∞ gives zeros (else NaN).
    pub masked_row_is_zero: bool,
    /// What products are computed in.
    pub math: MathType,
}
