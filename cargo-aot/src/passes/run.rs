//! The order of passes.

use super::{attention, cleanup, fold, loops, normalize, siblings, simplify, softmax, wide};
use aot_ir::{Graph, GraphError};

/// Which passes run; by default all do.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Recognise normalisation, softmax and attention that are written out.
    pub recognize: bool,
    /// Merge matrix products of one left operand with constants.
    pub merge_siblings: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { recognize: true, merge_siblings: true }
    }
}

/// Most rounds of local simplification: chains of rewrites are short.
const ROUNDS: usize = 12;

/// Applies the passes.
///
/// # Errors
/// When a node of the graph does not fit its operands, which a graph made by [`Graph::add`] can't have.
pub fn run(graph: &Graph, options: &Options) -> Result<Graph, GraphError> {
    let mut graph = tidy(cleanup::run(graph)?)?;
    if loops::any(&graph) {
        graph = loops::run(&graph)?;
        graph = loops::bodies(&graph, &|body| run(body, options))?;
        graph = tidy(loops::run(&graph)?)?;
    }
    if options.recognize {
        graph = tidy(normalize::run(&graph)?.graph)?;
        graph = tidy(softmax::run(&graph)?.graph)?;
        graph = tidy(attention::run(&graph)?.graph)?;
    }
    graph = tidy(wide::run(&graph)?.graph)?;
    if options.merge_siblings {
        graph = tidy(siblings::run(&graph)?)?;
    }
    if loops::any(&graph) {
        // What has become a part of something larger since is taken from it in the bodies.
        graph = tidy(loops::run(&graph)?)?;
    }
    cleanup::run(&graph)
}

/// Simplifies and folds until nothing changes.
fn tidy(mut graph: Graph) -> Result<Graph, GraphError> {
    for _ in 0..ROUNDS {
        let simplified = simplify::run(&graph)?;
        let folded = fold::run(&simplified.graph)?;
        graph = cleanup::run(&folded.graph)?;
        if !simplified.changed && !folded.changed {
            break;
        }
    }
    Ok(graph)
}
