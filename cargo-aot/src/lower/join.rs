//! Kept values of one shape that one group computes together: the states of a recurrent layer.

use super::LowerError;
use super::analysis::{Analysis, Role};
use super::builder::{Builder, Made};
use super::fuse::Fusion;
use super::groups::placed_by_parts;
use super::plan::Plan;
use aot_ir::dim::Cond;
use aot_ir::{NodeId, Op, ValueId};
use aot_kernels::group::Anchor;
use std::collections::{BTreeSet, HashMap};

/// Sets of at least two kept results of inline nodes, each in order of execution, by the node of its last member. All of a
/// set have one shape, no padding, and come after the same anchors.
pub(super) fn sets(
    a: &Analysis<'_>,
    fusion: &Fusion,
    plan: &Plan<'_>,
) -> HashMap<NodeId, Vec<NodeId>> {
    let mut sets: Vec<Vec<NodeId>> = Vec::new();
    for &id in &a.order {
        let node = &a.graph[id];
        let joins = a.role(id) == Role::Inline
            && !matches!(node.op, Op::Concat { .. })
            && fusion.kept.contains(&node.outputs[0])
            && !fusion.fused.contains(&id)
            && !placed_by_parts(a, fusion, id)
            && !a.is_const[node.outputs[0].index()]
            && plan.homes.get(&node.outputs[0]).is_some_and(|home| home.padding.is_none());
        if !joins {
            continue;
        }
        let value = node.outputs[0];
        let fits = |set: &&mut Vec<NodeId>| {
            let first = a.graph[set[0]].outputs[0];
            a.same_shape(first, value)
                && a.last_anchor[first.index()] == a.last_anchor[value.index()]
                && a.last_size[first.index()] == a.last_size[value.index()]
        };
        match sets.iter_mut().find(fits) {
            Some(set) => set.push(id),
            None => sets.push(vec![id]),
        }
    }
    let several = sets.into_iter().filter(|set| set.len() > 1);
    several.filter_map(|set| Some((*set.last()?, set))).collect()
}

/// The group of a set; `None` where a member would be read elsewhere than where it is computed.
pub(super) fn make(
    a: &Analysis<'_>,
    plan: &Plan<'_>,
    set: &[NodeId],
) -> Result<Option<Made>, LowerError> {
    let values: Vec<ValueId> = set.iter().map(|id| a.graph[*id].outputs[0]).collect();
    let mut b = Builder::new(plan);
    let (space, coords) = b.space(&a.graph[values[0]].shape);
    for &value in &values {
        let result = b.computed_at(value, &coords)?;
        b.known.insert((value, coords.clone(), Cond::always()), result);
        b.store_all(value, &coords, result, true)?;
    }
    let name = a.graph[set[set.len() - 1]].name.clone();
    let writes = values.iter().map(|v| (*v, None)).collect();
    let made = b.finish(name, Anchor::Map { space }, writes);
    let read: BTreeSet<ValueId> = made.reads.iter().map(|(value, _)| *value).collect();
    Ok((!depends(a, &read, &values)).then_some(made))
}

/// Whether values are, or are made from, others.
fn depends(a: &Analysis<'_>, values: &BTreeSet<ValueId>, others: &[ValueId]) -> bool {
    let mut seen = vec![false; a.graph.values().len()];
    let mut pending: Vec<ValueId> = values.iter().copied().collect();
    while let Some(value) = pending.pop() {
        if others.contains(&value) {
            return true;
        }
        if !std::mem::replace(&mut seen[value.index()], true)
            && let Some(node) = a.graph.producer(value)
        {
            pending.extend(&a.graph[node].inputs);
        }
    }
    false
}
