//! Graph → Graph.
//!
//! [`run()`] applies the passes in a fixed order: local simplification and folding of constants until nothing
//! changes, then recognition of what exporters spell out (normalisation, softmax, attention), then
//! merging of matrix products that share an operand. Bodies of loops get the same passes, after what does not vary
//! has left them. Every pass computes what the graph computed before, up to
//! rounding, and keeps the names of the source model's nodes.

mod attention;
mod cleanup;
mod fold;
mod loops;
mod mask;
mod matching;
mod normalize;
mod rewriter;
mod run;
mod siblings;
mod simplify;
mod softmax;
#[cfg(test)]
mod testing;
mod wide;

pub use run::{Options, run};
