//! Rebuilding a graph with some nodes replaced.

use aot_ir::{Binding, Def, Graph, GraphError, NodeId, Op, ValueId};
use std::collections::HashSet;

/// A rewritten graph, and whether anything was replaced.
#[derive(Debug)]
pub(super) struct Rewritten {
    pub(super) graph: Graph,
    pub(super) changed: bool,
}

/// A node about to be added: its operands are values of the new graph.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate<'a> {
    pub(super) op: &'a Op,
    pub(super) inputs: &'a [ValueId],
    pub(super) name: &'a str,
}

/// The new graph, and where the old one's values are in it.
#[derive(Debug)]
pub(super) struct Rewriter<'s> {
    pub(super) source: &'s Graph,
    pub(super) graph: Graph,
    values: Vec<Option<ValueId>>,
}

impl<'s> Rewriter<'s> {
    /// A graph with the symbols, inputs, guards and state of `source`, and no nodes yet.
    pub(super) fn new(source: &'s Graph) -> Self {
        let mut graph = Graph::new(source.name.clone());
        graph.symbols = source.symbols.clone();
        graph.guards = source.guards.clone();
        graph.state = source.state.clone();
        let mut values = vec![None; source.values().len()];
        for &input in &source.inputs {
            let value = &source[input];
            let new = graph.add_input(value.name.clone(), value.dtype, value.shape.clone());
            values[input.index()] = Some(new);
        }
        Self { source, graph, values }
    }

    /// The new value of an old one; constants are brought over when they are first asked for.
    pub(super) fn value(&mut self, old: ValueId) -> Result<ValueId, GraphError> {
        if let Some(new) = self.values[old.index()] {
            return Ok(new);
        }
        let new = match self.source[old].def {
            Def::Const(id) => {
                let new = self.graph.add_constant(self.source[id].clone())?;
                self.graph.set_name(new, self.source[old].name.clone());
                new
            }
            // Nodes are visited in topological order, so this is a bug of the caller or a broken graph;
            // copying the node makes either harmless.
            Def::Node(node, _) => {
                self.copy(node)?;
                return self.value(old);
            }
            Def::Input(_) => {
                let value = &self.source[old];
                self.graph.add_input(value.name.clone(), value.dtype, value.shape.clone())
            }
        };
        self.values[old.index()] = Some(new);
        Ok(new)
    }

    /// Says where an old value is in the new graph. A value made for it gets its name.
    pub(super) fn bind(&mut self, old: ValueId, new: ValueId, made_for_it: bool) {
        self.values[old.index()] = Some(new);
        if made_for_it && self.graph.producer(new).is_some() {
            self.graph.set_name(new, self.source[old].name.clone());
        }
    }

    /// New values of a node's operands.
    pub(super) fn operands(&mut self, node: NodeId) -> Result<Vec<ValueId>, GraphError> {
        let source = self.source;
        source[node].inputs.iter().map(|&v| self.value(v)).collect()
    }

    /// Adds a node as it is.
    pub(super) fn copy(&mut self, node: NodeId) -> Result<(), GraphError> {
        let inputs = self.operands(node)?;
        let source = self.source;
        let node = &source[node];
        let outputs = self.graph.add(node.op.clone(), &inputs, node.name.clone())?;
        for (&old, new) in node.outputs.iter().zip(outputs) {
            self.bind(old, new, true);
        }
        Ok(())
    }

    /// The finished graph.
    pub(super) fn finish(mut self) -> Result<Graph, GraphError> {
        for (name, old) in &self.source.outputs {
            let new = self.value(*old)?;
            self.graph.outputs.push((name.clone(), new));
        }
        let (_, sizes) = live(self.source);
        for binding in self.source.bindings.iter().filter(|b| sizes.contains(&b.size)) {
            let size = self.value(binding.size)?;
            self.graph.bindings.push(Binding { size, ..*binding });
        }
        Ok(self.graph)
    }
}

/// The nodes that outputs and guards depend on, through operands and sizes.
pub(super) fn live_nodes(graph: &Graph) -> Vec<bool> {
    live(graph).0
}

/// The live nodes, and the sizes that they and the guards mention.
pub(super) fn live(graph: &Graph) -> (Vec<bool>, HashSet<ValueId>) {
    let mut live = vec![false; graph.nodes().len()];
    let mut sizes: HashSet<ValueId> =
        graph.sizes_of(graph.guards.iter().flat_map(|g| [&g.lhs, &g.rhs])).into_iter().collect();
    let mut pending: Vec<ValueId> = graph.outputs.iter().map(|(_, v)| *v).collect();
    pending.extend(&sizes);
    while let Some(value) = pending.pop() {
        if let Some(node) = graph.producer(value)
            && !std::mem::replace(&mut live[node.index()], true)
        {
            pending.extend(&graph[node].inputs);
            let needed = graph.sizes_needed(node);
            pending.extend(&needed);
            sizes.extend(needed);
        }
    }
    (live, sizes)
}

/// Gives another value for a node's result, or `None` to keep the node.
pub(super) type Replace<'f> =
    dyn FnMut(&mut Graph, Candidate<'_>) -> Result<Option<ValueId>, GraphError> + 'f;

/// Rebuilds a graph, where `replace` may give another value for a node's single result. Values given must have
/// the type and the extents of the result. Nodes that no output needs are left out.
pub(super) fn rewrite(source: &Graph, replace: &mut Replace<'_>) -> Result<Rewritten, GraphError> {
    let live = live_nodes(source);
    let mut rewriter = Rewriter::new(source);
    let mut changed = false;
    for (id, node) in source.nodes() {
        if !live[id.index()] {
            continue;
        }
        let inputs = rewriter.operands(id)?;
        let before = rewriter.graph.values().len();
        let candidate = Candidate { op: &node.op, inputs: &inputs, name: &node.name };
        let replacement = match node.outputs.as_slice() {
            [_] => replace(&mut rewriter.graph, candidate)?,
            _ => None,
        };
        match (replacement, node.outputs.first()) {
            (Some(new), Some(&old)) => {
                debug_assert_eq!(rewriter.graph[new].dtype, source[old].dtype, "{}", node.name);
                debug_assert_eq!(
                    rewriter.graph[new].shape.len(),
                    source[old].shape.len(),
                    "{}",
                    node.name
                );
                rewriter.bind(old, new, new.index() >= before);
                changed = true;
            }
            _ => rewriter.copy(id)?,
        }
    }
    Ok(Rewritten { graph: rewriter.finish()?, changed })
}
