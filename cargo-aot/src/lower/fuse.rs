//! What is computed together and what is kept in memory: the one place where it is decided.

use super::analysis::{Analysis, Role, is_movement};
use aot_ir::op::ResizeMode;
use aot_ir::{NodeId, Op, ValueId};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Most work that is repeated rather than kept when several groups read a value.
const REPEATABLE_COST: u32 = 6;
/// Most work that is repeated for every element that a value is broadcast over.
const BROADCASTABLE_COST: u32 = 16;
/// Most operands of a concatenation that is read by choosing among them.
const SELECTABLE_OPERANDS: usize = 4;

/// What follows an anchor within its group.
#[derive(Debug, Default)]
pub(super) struct Epilogue {
    /// Fused nodes in order of execution.
    pub(super) members: Vec<NodeId>,
    /// Values that something outside the group reads.
    pub(super) escapes: Vec<ValueId>,
}

/// The decisions.
#[derive(Debug)]
pub(super) struct Fusion {
    /// By anchor.
    pub(super) epilogues: HashMap<NodeId, Epilogue>,
    /// Nodes that are fused after an anchor.
    pub(super) fused: HashSet<NodeId>,
    /// Values that are kept in memory, results of anchors included.
    pub(super) kept: HashSet<ValueId>,
}

/// How a value's readers use it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Demand {
    /// Element by element.
    #[default]
    Elements,
    /// Every element several times.
    Repeatedly,
    /// As a matrix operand, which is copied as it lies in memory.
    Direct,
    /// From within a loop, or by the host: they take it from memory.
    Captured,
}

pub(super) fn fuse(a: &Analysis<'_>) -> Fusion {
    let mut epilogues = HashMap::new();
    let mut owner: HashMap<NodeId, NodeId> = HashMap::new();
    let mut kept: HashSet<ValueId> = HashSet::new();
    for &id in &a.order {
        if !a.role(id).is_anchor() {
            continue;
        }
        let epilogue = grow(a, id);
        owner.extend(epilogue.members.iter().map(|m| (*m, id)));
        kept.extend(&epilogue.escapes);
        epilogues.insert(id, epilogue);
    }
    keep_inline(a, &owner, &mut kept);
    let fused = owner.into_keys().collect();
    Fusion { epilogues, fused, kept }
}

/// Takes in what follows an anchor and needs nothing that comes later.
fn grow(a: &Analysis<'_>, anchor: NodeId) -> Epilogue {
    let graph = a.graph;
    let here = a.position[anchor.index()] + 1;
    let mut inside: HashSet<ValueId> = graph[anchor].outputs.iter().copied().collect();
    let mut members = Vec::new();
    let mut frontier: BTreeSet<(usize, NodeId)> = BTreeSet::new();
    let reach = |value: ValueId, frontier: &mut BTreeSet<(usize, NodeId)>| {
        frontier.extend(a.uses[value.index()].iter().map(|n| (a.position[n.index()], *n)));
    };
    let fusable = !matches!(a.role(anchor), Role::Scatter | Role::Loop | Role::Host);
    if fusable {
        graph[anchor].outputs.iter().for_each(|v| reach(*v, &mut frontier));
    }
    while let Some((_, id)) = frontier.pop_first() {
        let node = &graph[id];
        let result = node.outputs[0];
        if a.role(id) != Role::Inline
            || a.last_anchor[result.index()] != here
            || a.last_size[result.index()] >= here
            || a.is_const[result.index()] != a.is_const[graph[anchor].outputs[0].index()]
        {
            continue;
        }
        let fits = if node.op.is_pointwise() {
            node.inputs.iter().all(|v| {
                if inside.contains(v) {
                    a.same_shape(*v, result)
                } else {
                    a.last_anchor[v.index()] < here
                }
            })
        } else if matches!(node.op, Op::Reshape { .. } | Op::Transpose { .. }) {
            let x = node.inputs[0];
            inside.contains(&x) && a.uses[x.index()].len() == 1 && !a.is_output[x.index()]
        } else {
            false
        };
        if fits {
            inside.insert(result);
            members.push(id);
            reach(result, &mut frontier);
        }
    }
    let member_set: HashSet<NodeId> = members.iter().copied().collect();
    let mut escapes: Vec<ValueId> = inside
        .into_iter()
        .filter(|v| {
            a.is_output[v.index()] || a.uses[v.index()].iter().any(|n| !member_set.contains(n))
        })
        .collect();
    escapes.sort();
    Epilogue { members, escapes }
}

/// Decides, last to first, which results of inline nodes are kept.
fn keep_inline(a: &Analysis<'_>, owner: &HashMap<NodeId, NodeId>, kept: &mut HashSet<ValueId>) {
    let graph = a.graph;
    let costs = costs(a);
    let count = graph.values().len();
    let mut demands = vec![Demand::Elements; count];
    // Groups that read a value: the anchor, or the kept value that a group is made for.
    let mut readers: Vec<BTreeSet<Reader>> = vec![BTreeSet::new(); count];
    for &id in a.order.iter().rev() {
        let node = &graph[id];
        if a.role(id) == Role::Inline && !owner.contains_key(&id) {
            let result = node.outputs[0];
            let i = result.index();
            let keep = a.is_output[i]
                || demands[i] == Demand::Captured
                || match &node.op {
                    Op::Iota { .. } | Op::Dims { .. } | Op::Fill { .. } => {
                        demands[i] == Demand::Direct
                    }
                    op if is_movement(op) || a.widens_state(node) => false,
                    Op::Concat { .. } => {
                        demands[i] > Demand::Elements
                            || node.inputs.len() > SELECTABLE_OPERANDS
                            || readers[i].len() > 1
                    }
                    _ => {
                        demands[i] > Demand::Elements && costs[i] > 0
                            || demands[i] == Demand::Direct
                    }
                }
                || (readers[i].len() > 1 && costs[i] > REPEATABLE_COST)
                || (is_broadcast(a, result) && costs[i] > BROADCASTABLE_COST)
                || (a.is_const[i] && costs[i] > 0 && read_at_run_time(a, result));
            if keep {
                kept.insert(result);
            }
            if keep && matches!(node.op, Op::Concat { .. }) {
                // Operands are computed in place.
                for v in &node.inputs {
                    if graph.producer(*v).is_some_and(|p| a.role(p) == Role::Inline)
                        && !owner.contains_key(&graph.producer(*v).unwrap_or(id))
                    {
                        kept.insert(*v);
                    }
                }
            }
        }
        let reader = match owner.get(&id) {
            Some(anchor) => Some(Reader::Anchor(*anchor)),
            None if a.role(id).is_anchor() => Some(Reader::Anchor(id)),
            None if kept.contains(&node.outputs[0]) => Some(Reader::Kept(node.outputs[0])),
            None => None,
        };
        let passed = match reader {
            Some(_) => Demand::Elements,
            None => demands[node.outputs[0].index()],
        };
        for (n, v) in node.inputs.iter().enumerate() {
            let demand = own_demand(a, id, n).max(match node.op {
                _ if reader.is_some() => Demand::Elements,
                _ if is_movement(&node.op) || a.widens_state(node) => passed,
                _ => passed.min(Demand::Repeatedly),
            });
            demands[v.index()] = demands[v.index()].max(demand);
            match reader {
                Some(r) => {
                    readers[v.index()].insert(r);
                }
                None => {
                    let more = readers[node.outputs[0].index()].clone();
                    readers[v.index()].extend(more);
                }
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reader {
    Anchor(NodeId),
    Kept(ValueId),
}

fn read_at_run_time(a: &Analysis<'_>, value: ValueId) -> bool {
    a.uses[value.index()].iter().any(|n| !a.is_const[a.graph[*n].outputs[0].index()])
}

/// What a node itself asks of its n-th operand.
fn own_demand(a: &Analysis<'_>, id: NodeId, n: usize) -> Demand {
    match (&a.graph[id].op, a.role(id)) {
        (_, Role::Contraction) => Demand::Direct,
        (_, Role::Attention) if n < 3 => Demand::Direct,
        (_, Role::Window) => Demand::Repeatedly,
        (_, Role::Host) => Demand::Captured,
        (Op::Loop(attrs), _) if n >= attrs.lead() + attrs.carried => Demand::Captured,
        (Op::Resize(attrs), _) if !matches!(attrs.mode, ResizeMode::Nearest(_)) => {
            Demand::Repeatedly
        }
        _ => Demand::Elements,
    }
}

/// Whether some reader reads every element for several of its own.
fn is_broadcast(a: &Analysis<'_>, value: ValueId) -> bool {
    let shape = &a.graph[value].shape;
    a.uses[value.index()].iter().any(|n| {
        let node = &a.graph[*n];
        let out = &a.graph[node.outputs[0]].shape;
        let spreads = node.op.is_pointwise() || matches!(node.op, Op::Expand { .. });
        spreads
            && (shape.len() < out.len() || shape.iter().zip(out).any(|(d, o)| d.is(1) && !o.is(1)))
    })
}

/// Work per element of every value that is computed in place: arithmetic and data-dependent loads.
fn costs(a: &Analysis<'_>) -> Vec<u32> {
    let graph = a.graph;
    let mut costs = vec![0u32; graph.values().len()];
    for &id in &a.order {
        if a.role(id).is_anchor() {
            continue;
        }
        let node = &graph[id];
        let own = match &node.op {
            op if is_movement(op) => 0,
            Op::Iota { .. } | Op::Dims { .. } | Op::Fill { .. } | Op::Pad { .. } => 0,
            Op::Cast(_) | Op::Select | Op::Binary(_) => 1,
            Op::Unary(_) => 2,
            Op::Concat { .. } => 2 * node.inputs.len() as u32,
            Op::Resize(attrs) if matches!(attrs.mode, ResizeMode::Nearest(_)) => 0,
            Op::Resize(_) => 16,
            _ => 3,
        };
        let parts = node.inputs.iter().fold(0u32, |sum, v| sum.saturating_add(costs[v.index()]));
        costs[node.outputs[0].index()] = parts.saturating_add(own);
    }
    costs
}
