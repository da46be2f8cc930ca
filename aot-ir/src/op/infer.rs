//! Types and shapes of results: the dispatch to the families' rules.

use super::rule::Rule;
use super::{
    composite, contraction, host, indexing, loops, movement, pointwise, pool, reduce, resize,
    source,
};
use crate::{DType, Dim, Op, Symbols, Value};

/// What an operator's rule found.
#[derive(Clone, Debug, Default)]
pub struct Inferred {
    /// Type and shape of every result.
    pub outputs: Vec<(DType, Vec<Dim>)>,
    /// Pairs of dims that must be equal at run time and could not be proved so.
    ///
    /// An inequality that could not be proved, `a <= b`, stands here as `min(a, b)` and `a`.
    pub guards: Vec<(Dim, Dim)>,
}

/// Why operands do not fit an operator.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ShapeError(pub String);

impl Op {
    /// Types and shapes of the results for operands of these types and shapes.
    ///
    /// Extents that broadcast and can't be proved equal are taken to be equal (with a guard), unless
    /// they can't be; the result has the simpler one.
    ///
    /// # Errors
    /// When the operands or attributes do not fit: wrong number, types, ranks, axes, or extents that
    /// can't be equal.
    pub fn infer(&self, operands: &[&Value], symbols: &Symbols) -> Result<Inferred, ShapeError> {
        let rule = Rule::new(self, operands, symbols);
        match self {
            Self::Unary(op) => pointwise::unary(rule, *op),
            Self::Binary(op) => pointwise::binary(rule, *op),
            Self::Select => pointwise::select(rule),
            Self::Cast(dtype) => pointwise::cast(rule, *dtype),
            Self::Iota { shape, axis, dtype } => source::iota(rule, shape, *axis, *dtype),
            Self::Dims { dims, scalar } => source::dims(rule, dims, *scalar),
            Self::Fill { shape, value, dtype } => source::fill(rule, shape, *value, *dtype),
            Self::Reshape { shape } => movement::reshape(rule, shape),
            Self::Transpose { perm } => movement::transpose(rule, perm),
            Self::Slice { starts, sizes, steps } => movement::slice(rule, starts, sizes, steps),
            Self::Pad { low, high, mode } => movement::pad(rule, low, high, *mode),
            Self::Expand { shape } => movement::expand(rule, shape),
            Self::Concat { axis } => movement::concat(rule, *axis),
            Self::Gather { axis } => indexing::gather(rule, *axis),
            Self::GatherElements { axis } => indexing::gather_elements(rule, *axis),
            Self::GatherNd { batch_dims } => indexing::gather_nd(rule, *batch_dims),
            Self::ScatterElements { axis, reduction } => {
                indexing::scatter_elements(rule, *axis, *reduction)
            }
            Self::ScatterNd { reduction } => indexing::scatter_nd(rule, *reduction),
            Self::Reduce { op, axes, keep_dims } => reduce::reduce(rule, *op, axes, *keep_dims),
            Self::ArgReduce { axis, keep_dims, .. } => reduce::arg(rule, *axis, *keep_dims),
            Self::Scan { axis, .. } => reduce::scan(rule, *axis),
            Self::MatMul => contraction::matmul(rule),
            Self::Conv(attrs) => contraction::conv(rule, attrs),
            Self::ConvTranspose { conv, output_padding } => {
                contraction::conv_transpose(rule, conv, output_padding)
            }
            Self::Attention(attrs) => composite::attention(rule, attrs),
            Self::Softmax { axis, .. } => composite::softmax(rule, *axis),
            Self::Normalize { axes, epsilon, .. } => composite::normalize(rule, axes, *epsilon),
            Self::Pool(attrs) => pool::pool(rule, attrs),
            Self::Resize(attrs) => resize::resize(rule, attrs),
            Self::Loop(attrs) => loops::rule(rule, attrs),
            Self::Host(op) => host::rule(rule, op),
        }
    }
}
