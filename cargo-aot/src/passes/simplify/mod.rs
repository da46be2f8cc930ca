//! Local rewrites: one node and what makes its operands.

mod arithmetic;
mod cast;
mod movement;
#[cfg(test)]
mod tests;

use super::rewriter::{Candidate, Rewritten, rewrite};
use aot_ir::{Graph, GraphError, Op, ValueId};

/// Applies every rule once to every node.
pub(super) fn run(source: &Graph) -> Result<Rewritten, GraphError> {
    rewrite(source, &mut |g, candidate| simplify(g, candidate))
}

fn simplify(g: &mut Graph, c: Candidate<'_>) -> Result<Option<ValueId>, GraphError> {
    match c.op {
        Op::Binary(op) => arithmetic::binary(g, *op, c),
        Op::Unary(op) => arithmetic::unary(g, *op, c),
        Op::Select => arithmetic::select(g, c),
        Op::Reduce { axes, keep_dims, .. } => arithmetic::reduce(g, axes, *keep_dims, c),
        Op::Cast(to) => cast::cast(g, *to, c),
        Op::Transpose { perm } => movement::transpose(g, perm, c),
        Op::Reshape { shape } => movement::reshape(g, shape, c),
        Op::Expand { shape } => movement::expand(g, shape, c),
        Op::Slice { starts, sizes, steps } => movement::slice(g, starts, sizes, steps, c),
        Op::Pad { low, high, .. } => movement::pad(low, high, c),
        Op::Concat { axis } => movement::concat(g, *axis, c),
        Op::Gather { axis } => movement::gather(g, *axis, c),
        _ => Ok(None),
    }
}
