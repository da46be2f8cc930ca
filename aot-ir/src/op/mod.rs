//! Operators.
//!
//! A small orthogonal set that importers lower to. Conventions that hold for all of them:
//! axes are non-negative and in range; lists over axes (`perm`, `low`, `starts` …) have one entry per
//! axis; pointwise operators broadcast as NumPy does; there are no optional operands except where an
//! operator says so, and then they are the last ones.

mod attributes;
mod composite;
mod contraction;
mod dims;
mod host;
mod indexing;
mod infer;
mod loops;
mod movement;
mod pointwise;
mod pool;
mod reduce;
mod resize;
mod rule;
mod source;
mod window;

pub use attributes::*;
pub use host::{HostOp, PixelFormat};
pub use infer::{Inferred, ShapeError};
pub use loops::LoopAttrs;

use crate::{DType, Dim, Scalar};
use serde::{Deserialize, Serialize};

/// An operator with its attributes. Operand and result shapes are written `[a, b]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Op {
    // Pointwise.
    /// `f(x)`, same type (predicates give `Bool`).
    Unary(UnaryOp),
    /// `f(a, b)` of one type, broadcast (comparisons give `Bool`).
    Binary(BinaryOp),
    /// `(condition: Bool, a, b)`: `a` where the condition holds, else `b`; all three broadcast.
    Select,
    /// Conversion. Float to integer truncates, out-of-range values saturate, NaN gives 0; integers to
    /// narrower integers wrap; anything to `Bool` is `!= 0`.
    Cast(DType),

    // Sources without operands.
    /// `i64` or other numeric type: the coordinate along `axis` of a tensor of shape `shape`.
    Iota {
        /// Shape of the result.
        shape: Vec<Dim>,
        /// Axis whose coordinate is the value.
        axis: usize,
        /// Type of the result.
        dtype: DType,
    },
    /// Run-time sizes as data: `I64`, shape `[dims.len()]`, or a scalar `[]` when `scalar`.
    Dims {
        /// The elements.
        dims: Vec<Dim>,
        /// Whether the result has rank 0 (then there is exactly one element).
        scalar: bool,
    },
    /// A tensor of shape `shape` filled with one value.
    Fill {
        /// Shape of the result.
        shape: Vec<Dim>,
        /// Every element.
        value: Scalar,
        /// Type of the result.
        dtype: DType,
    },

    // Movement.
    /// Same elements in row-major order, another shape of as many elements.
    Reshape {
        /// Shape of the result.
        shape: Vec<Dim>,
    },
    /// Result axis `i` is operand axis `perm[i]`.
    Transpose {
        /// A permutation of the axes.
        perm: Vec<usize>,
    },
    /// Result coordinate `i` along an axis is operand coordinate `start + i * step`.
    Slice {
        /// First coordinate per axis (of the last element taken first when the step is negative).
        starts: Vec<Dim>,
        /// Extent of the result per axis.
        sizes: Vec<Dim>,
        /// Step per axis, not zero.
        steps: Vec<i64>,
    },
    /// Grows every axis at both ends; negative amounts crop.
    Pad {
        /// Elements added before, per axis.
        low: Vec<Dim>,
        /// Elements added after, per axis.
        high: Vec<Dim>,
        /// What the added elements are.
        mode: PadMode,
    },
    /// Broadcasts to `shape`, aligned at the last axis as NumPy does.
    Expand {
        /// Shape of the result.
        shape: Vec<Dim>,
    },
    /// One or more operands joined along `axis`.
    Concat {
        /// The axis.
        axis: usize,
    },

    // Indexed movement. Negative indices count from the end.
    /// `(data, indices)`: `data` with axis `axis` replaced by the axes of `indices`.
    Gather {
        /// The axis that is indexed.
        axis: usize,
    },
    /// `(data, indices)` of one rank: `out[.., i, ..] = data[.., indices[.., i, ..], ..]`.
    GatherElements {
        /// The axis that is indexed.
        axis: usize,
    },
    /// `(data, indices [.., k])`: the last axis of `indices` addresses `k` axes of `data`
    /// after `batch_dims` shared leading ones.
    GatherNd {
        /// Leading axes shared by both operands.
        batch_dims: usize,
    },
    /// `(data, indices, updates)`: `data` with elements replaced or combined, the inverse of
    /// `GatherElements`.
    ScatterElements {
        /// The axis that is indexed.
        axis: usize,
        /// How an update meets what is there.
        reduction: ScatterReduction,
    },
    /// `(data, indices [.., k], updates)`: the inverse of `GatherNd`.
    ScatterNd {
        /// How an update meets what is there.
        reduction: ScatterReduction,
    },

    // Reductions.
    /// Reduces `axes`; reduced axes stay with extent 1 when `keep_dims`. Over no elements the result
    /// is the operator's neutral element. `Mean` of integers truncates. `Bool` takes `Max` (any)
    /// and `Min` (all).
    Reduce {
        /// What combines elements.
        op: ReduceOp,
        /// Axes, ascending, without repetition.
        axes: Vec<usize>,
        /// Whether reduced axes stay with extent 1.
        keep_dims: bool,
    },
    /// Index (`I64`) of the largest or smallest element along an axis.
    ArgReduce {
        /// Largest (else smallest).
        max: bool,
        /// The axis.
        axis: usize,
        /// Whether the axis stays with extent 1.
        keep_dims: bool,
        /// The last of equal elements (else the first).
        last: bool,
    },
    /// Running combination along an axis; same shape.
    Scan {
        /// What combines elements.
        op: ScanOp,
        /// The axis.
        axis: usize,
        /// Leave out the element itself.
        exclusive: bool,
        /// From the end to the beginning.
        reverse: bool,
    },

    // Contractions.
    /// `(a [.., m, k], b [.., k, n]) -> [.., m, n]`, leading axes broadcast.
    MatMul,
    /// `(x [n, c, spatial..], w [o, c/groups, kernel..]) -> [n, o, spatial..]`, a cross-correlation.
    Conv(ConvAttrs),
    /// `(x [n, c, spatial..], w [c, o/groups, kernel..]) -> [n, o, spatial..]`, the transpose of a
    /// convolution: extent `(in - 1) * stride - pad_begin - pad_end + dilation * (kernel - 1) + 1 +
    /// output_padding`.
    ConvTranspose {
        /// Strides, pads, dilations, groups.
        conv: ConvAttrs,
        /// Added to the extent at the end, per spatial axis.
        output_padding: Vec<i64>,
    },

    // Composites kept whole.
    /// `(q [.., s, d], k [.., t, d], v [.., t, e], mask?) -> [.., s, e]`:
    /// `softmax(scale * q kᵀ + mask) v`. Leading axes broadcast. The mask broadcasts to `[.., s, t]` and
    /// is added, or, when `Bool`, false excludes.
    Attention(AttentionAttrs),
    /// `exp(x - max) / sum` along an axis, or its logarithm.
    Softmax {
        /// The axis.
        axis: usize,
        /// Give the logarithm.
        log: bool,
    },
    /// `(x - mean) / sqrt(variance + epsilon)` over `axes` (population variance); without centering
    /// `x / sqrt(mean(x²) + epsilon)`.
    Normalize {
        /// Axes, ascending.
        axes: Vec<usize>,
        /// Added to the variance: a [`Scalar::Float`].
        epsilon: Scalar,
        /// Subtract the mean.
        centered: bool,
    },
    /// `[n, c, spatial..] -> [n, c, spatial..]`.
    Pool(PoolAttrs),
    /// Interpolation; see [`ResizeAttrs`].
    Resize(ResizeAttrs),

    // Control.
    /// A graph again and again, with values carried from one iteration to the next; see [`LoopAttrs`].
    ///
    /// Operands: with a condition, whether there is a first iteration (`Bool`, rank 0); then the carried values
    /// as the first iteration gets them; then captured values, which are the same for all iterations. Results:
    /// with a condition, the number of iterations that were made (`I64`, rank 0); then the carried values after
    /// the last iteration (the operands if there is none); then for every further result of the body what it was
    /// in each iteration, `[iterations, ..]`.
    Loop(Box<LoopAttrs>),

    // Files.
    /// What the host does, whatever device the rest is on; see [`HostOp`].
    Host(HostOp),
}

impl Op {
    /// A short name for messages and listings.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unary(op) => op.name(),
            Self::Binary(op) => op.name(),
            Self::Select => "select",
            Self::Cast(_) => "cast",
            Self::Iota { .. } => "iota",
            Self::Dims { .. } => "dims",
            Self::Fill { .. } => "fill",
            Self::Reshape { .. } => "reshape",
            Self::Transpose { .. } => "transpose",
            Self::Slice { .. } => "slice",
            Self::Pad { .. } => "pad",
            Self::Expand { .. } => "expand",
            Self::Concat { .. } => "concat",
            Self::Gather { .. } => "gather",
            Self::GatherElements { .. } => "gather_elements",
            Self::GatherNd { .. } => "gather_nd",
            Self::ScatterElements { .. } => "scatter_elements",
            Self::ScatterNd { .. } => "scatter_nd",
            Self::Reduce { op, .. } => op.name(),
            Self::ArgReduce { max: true, .. } => "arg_max",
            Self::ArgReduce { max: false, .. } => "arg_min",
            Self::Scan { .. } => "scan",
            Self::MatMul => "matmul",
            Self::Conv(_) => "conv",
            Self::ConvTranspose { .. } => "conv_transpose",
            Self::Attention(_) => "attention",
            Self::Softmax { .. } => "softmax",
            Self::Normalize { .. } => "normalize",
            Self::Pool(_) => "pool",
            Self::Resize(_) => "resize",
            Self::Loop(_) => "loop",
            Self::Host(op) => op.name(),
        }
    }

    /// Whether every result element depends on the operand elements at the same (broadcast) place only.
    pub fn is_pointwise(&self) -> bool {
        matches!(self, Self::Unary(_) | Self::Binary(_) | Self::Select | Self::Cast(_))
    }

    /// Whether every result element is computed from coordinates and from at most one element of each operand: as part
    /// of what reads it, it takes no kernel and no memory of its own.
    pub fn is_elementwise(&self) -> bool {
        self.is_pointwise()
            || matches!(
                self,
                Self::Iota { .. }
                    | Self::Dims { .. }
                    | Self::Fill { .. }
                    | Self::Reshape { .. }
                    | Self::Transpose { .. }
                    | Self::Slice { .. }
                    | Self::Pad { .. }
                    | Self::Expand { .. }
                    | Self::Gather { .. }
                    | Self::GatherElements { .. }
                    | Self::GatherNd { .. }
            )
    }
}
