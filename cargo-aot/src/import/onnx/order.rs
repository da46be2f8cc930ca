//! The order of nodes, and which of them are needed.

use super::proto::{GraphProto, NodeProto};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Nodes that are needed, in an order in which every node follows what it reads.
pub(super) struct Order {
    /// Indices of nodes.
    pub(super) nodes: Vec<usize>,
    /// Every name that a needed node, a graph inside it, or an output reads.
    pub(super) read: HashSet<String>,
}

/// Why nodes have no order.
pub(super) enum OrderError {
    /// Nodes (by index) on a cycle.
    Cycle(Vec<usize>),
    /// Reader (a node's index, or none for an output) and name.
    Undefined(Vec<(Option<usize>, String)>),
    /// Two nodes make this value.
    Twice(String),
}

/// All names that a node reads, those of graphs inside it included.
pub(super) fn reads(node: &NodeProto, f: &mut dyn FnMut(&str)) {
    node.input.iter().filter(|n| !n.is_empty()).for_each(|n| f(n));
    for graph in node.attribute.iter().filter_map(|a| a.g.as_deref()) {
        free_names(graph, f);
    }
}

/// Names that a graph reads and does not make.
fn free_names(graph: &GraphProto, f: &mut dyn FnMut(&str)) {
    let mut own: HashSet<&str> = HashSet::new();
    own.extend(graph.input.iter().map(|i| i.name.as_str()));
    own.extend(graph.initializer.iter().map(|t| t.name.as_str()));
    own.extend(
        graph.sparse_initializer.iter().filter_map(|s| Some(s.values.as_ref()?.name.as_str())),
    );
    own.extend(graph.node.iter().flat_map(|n| &n.output).map(String::as_str));
    let mut outer = |name: &str| {
        if !own.contains(name) {
            f(name);
        }
    };
    graph.node.iter().for_each(|node| reads(node, &mut outer));
    graph.output.iter().for_each(|o| outer(&o.name));
}

/// Orders `nodes` so that `outputs` can be made; `given` says which other names exist.
pub(super) fn order(
    nodes: &[NodeProto],
    outputs: &[String],
    given: &dyn Fn(&str) -> bool,
) -> Result<Order, OrderError> {
    let mut makers: HashMap<&str, usize> = HashMap::new();
    for (i, node) in nodes.iter().enumerate() {
        for name in node.output.iter().filter(|n| !n.is_empty()) {
            if makers.insert(name, i).is_some() {
                return Err(OrderError::Twice(name.clone()));
            }
        }
    }
    let mut undefined = Vec::new();
    let mut needs: Vec<Vec<usize>> = Vec::with_capacity(nodes.len());
    for (i, node) in nodes.iter().enumerate() {
        let mut needed = BTreeSet::new();
        reads(node, &mut |name| match makers.get(name) {
            Some(&maker) => {
                needed.insert(maker);
            }
            None if given(name) => {}
            None => undefined.push((Some(i), name.to_owned())),
        });
        needs.push(needed.into_iter().collect());
    }
    for name in outputs {
        if !makers.contains_key(name.as_str()) && !given(name) {
            undefined.push((None, name.clone()));
        }
    }
    if !undefined.is_empty() {
        return Err(OrderError::Undefined(undefined));
    }
    let sorted = sort(&needs)?;
    // Backwards from the outputs.
    let mut needed = vec![false; nodes.len()];
    outputs.iter().filter_map(|o| makers.get(o.as_str())).for_each(|&i| needed[i] = true);
    for &i in sorted.iter().rev() {
        if needed[i] {
            needs[i].iter().for_each(|&n| needed[n] = true);
        }
    }
    let mut read: HashSet<String> = outputs.iter().cloned().collect();
    let kept: Vec<usize> = sorted.into_iter().filter(|&i| needed[i]).collect();
    for &i in &kept {
        reads(&nodes[i], &mut |name| {
            read.insert(name.to_owned());
        });
    }
    Ok(Order { nodes: kept, read })
}

/// A topological order that keeps the given one where it can.
fn sort(needs: &[Vec<usize>]) -> Result<Vec<usize>, OrderError> {
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); needs.len()];
    let mut waits: Vec<usize> = needs.iter().map(Vec::len).collect();
    for (i, needed) in needs.iter().enumerate() {
        needed.iter().for_each(|&n| readers[n].push(i));
    }
    let mut ready: BTreeSet<usize> = (0..needs.len()).filter(|&i| waits[i] == 0).collect();
    let mut sorted = Vec::with_capacity(needs.len());
    while let Some(i) = ready.pop_first() {
        sorted.push(i);
        for &reader in &readers[i] {
            waits[reader] -= 1;
            if waits[reader] == 0 {
                ready.insert(reader);
            }
        }
    }
    if sorted.len() == needs.len() {
        return Ok(sorted);
    }
    // Every node that still waits needs another that waits: walking back must come round.
    let waiting = |i: &usize| waits[*i] > 0;
    let mut path = Vec::new();
    let mut at = (0..needs.len()).find(waiting);
    while let Some(i) = at {
        if let Some(start) = path.iter().position(|&p| p == i) {
            let mut cycle = path.split_off(start);
            cycle.reverse();
            return Err(OrderError::Cycle(cycle));
        }
        path.push(i);
        at = needs[i].iter().copied().find(|n| waiting(n));
    }
    Err(OrderError::Cycle(path))
}
