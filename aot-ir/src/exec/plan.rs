//! Which nodes run, and when each value is used last.

use crate::{Graph, NodeId, ValueId};

/// A node to run.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) node: NodeId,
    /// Values that no later step needs.
    pub(super) dead: Vec<ValueId>,
}

/// The nodes that the outputs and guards need, in order, without those whose results are `known`.
pub(super) fn steps(graph: &Graph, known: &dyn Fn(ValueId) -> bool) -> Vec<Step> {
    let mut needed = vec![false; graph.values().len()];
    for (_, value) in &graph.outputs {
        needed[value.index()] = true;
    }
    let mut used_later = needed.clone();
    for size in graph.sizes_of(graph.guards.iter().flat_map(|g| [&g.lhs, &g.rhs])) {
        needed[size.index()] = true;
    }
    let mut steps = Vec::new();
    for (id, node) in graph.nodes().rev() {
        let wanted = node.outputs.iter().any(|v| needed[v.index()] && !known(*v));
        if !wanted {
            continue;
        }
        for size in graph.sizes_needed(id) {
            needed[size.index()] = true;
        }
        let mut dead: Vec<ValueId> =
            node.outputs.iter().copied().filter(|v| !used_later[v.index()]).collect();
        for &input in &node.inputs {
            needed[input.index()] = true;
            if !std::mem::replace(&mut used_later[input.index()], true) {
                dead.push(input);
            }
        }
        steps.push(Step { node: id, dead });
    }
    steps.reverse();
    steps
}
