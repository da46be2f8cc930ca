//! Which values have their innermost axis padded, and to what extent.
//!
//! A padded axis has more elements in memory than the value; those past its extent are zero. Whoever
//! computes the value writes them, so that the arena can be reused; whoever sums over the axis may
//! go through them. So rows of 18 channels, say, are aligned to 16 bytes.

use super::analysis::{Analysis, Role, is_movement};
use super::coords::reshape;
use super::fuse::Fusion;
use super::plan::{Padding, Plan};
use super::{LowerOptions, Precision};
use aot_ir::dim::{Atom, VarId};
use aot_ir::{Dim, Graph, Node, NodeId, Op, Scope, ValueId};
use std::collections::{HashMap, HashSet};

/// Bytes of the widest access.
const WIDEST: i64 = 16;
/// Bytes of the narrowest access that copies asynchronously.
const NARROWEST: i64 = 4;
/// What an access costs, in bytes moved.
const ACCESS: i64 = 8;

/// An axis of an anchor's result and the extent that it is computed for, zeros included.
pub(super) type Padded = (usize, i64);

/// The extent in memory of an innermost axis of elements of `bytes`: the one at which a row costs least,
/// counting its bytes (which products over it multiply, too) and the accesses to it, those that cannot be
/// asynchronous twice. Of equal ones the least.
///
/// In 2 bytes 3 become 4, 18 become 24, 50 become 56; 12 stay, since 8-byte accesses do.
pub(super) fn extent_in_memory(extent: i64, bytes: i64) -> i64 {
    let cost = |extent: i64| {
        let row = extent * bytes;
        let width = WIDEST.min(1 << row.trailing_zeros());
        let slow = if width < NARROWEST { 2 } else { 1 };
        row + ACCESS * slow * (row / width)
    };
    let multiples = (0..).map(|n| 1i64 << n).take_while(|m| m * bytes <= WIDEST);
    let extents = multiples.map(|m| (extent + m - 1) / m * m);
    extents.min_by_key(|e| (cost(*e), *e)).unwrap_or(extent)
}

/// Bytes of an activation.
fn activation_bytes(options: &LowerOptions) -> i64 {
    match options.precision {
        Precision::F16 | Precision::Bf16 => 2,
        Precision::F32 | Precision::Tf32 => 4,
    }
}

/// Decides about values.
pub(super) struct Paddings<'a, 'g> {
    pub(super) a: &'a Analysis<'g>,
    pub(super) fusion: &'a Fusion,
    /// Values that lie with axis 1 innermost.
    pub(super) channels_last: Vec<bool>,
    /// By value that an anchor's group writes.
    anchors: HashMap<ValueId, NodeId>,
    /// Kept values with the axis that a matrix product sums over.
    summed: HashSet<(ValueId, usize)>,
}

impl<'a, 'g> Paddings<'a, 'g> {
    pub(super) fn new(a: &'a Analysis<'g>, fusion: &'a Fusion, channels_last: Vec<bool>) -> Self {
        let written = fusion.epilogues.iter();
        let anchors = written.flat_map(|(id, e)| e.escapes.iter().map(|v| (*v, *id))).collect();
        let mut summed = HashSet::new();
        for (_, node) in a.graph.nodes().filter(|(_, n)| matches!(n.op, Op::MatMul)) {
            for (n, &operand) in node.inputs.iter().enumerate() {
                let axis = a.graph[operand].shape.len() - if n == 0 { 1 } else { 2 };
                summed.extend(source(a.graph, operand, axis, &|v| fusion.kept.contains(&v)));
            }
        }
        Self { a, fusion, channels_last, anchors, summed }
    }

    /// The padding of a kept value whose innermost axis is `axis`.
    pub(super) fn of(&self, value: ValueId, axis: usize) -> Option<Padding> {
        let wanted = (self.channels_last[value.index()] && axis == 1)
            || self.summed.contains(&(value, axis));
        let padding = self.by_extent(value, axis).filter(|p| wanted && p.from > 1)?;
        (!self.a.is_const[value.index()] && self.can_be_filled(value, axis)).then_some(padding)
    }

    /// What [`extent_in_memory`] says of an axis.
    pub(super) fn by_extent(&self, value: ValueId, axis: usize) -> Option<Padding> {
        let v = &self.a.graph[value];
        let from = v.shape[axis].as_const().filter(|e| *e > 0 && v.dtype.is_float())?;
        let to = extent_in_memory(from, activation_bytes(self.a.options));
        (to > from).then_some(Padding { axis, from, to })
    }

    /// Whether who computes a kept value can write more along an axis.
    fn can_be_filled(&self, value: ValueId, axis: usize) -> bool {
        let graph = self.a.graph;
        let Some(id) = graph.producer(value) else { return false };
        if let Some(&anchor) = self.anchors.get(&value) {
            let at = self.anchor_axis(anchor, value, axis);
            return at.is_some_and(|axis| self.extends(anchor, axis));
        }
        let Op::Concat { axis: along } = graph[id].op else {
            return self.a.role(id) == Role::Inline;
        };
        // Its operands are computed in place, or copied.
        let parts = graph[id].inputs.iter().filter(|v| !graph[**v].shape[along].is(0));
        let parts: Vec<ValueId> = parts.copied().collect();
        let first = if axis == along { parts.len().saturating_sub(1) } else { 0 };
        let in_place = parts[first..].iter().filter(|v| self.fusion.kept.contains(v));
        in_place.copied().all(|v| self.can_be_filled(v, axis))
    }

    /// Whether an anchor's group can compute more along an axis of its result.
    fn extends(&self, anchor: NodeId, axis: usize) -> bool {
        let node = &self.a.graph[anchor];
        match (&node.op, self.a.role(anchor)) {
            (_, Role::Window) => true,
            (Op::Conv(conv) | Op::ConvTranspose { conv, .. }, Role::Contraction) => {
                axis == 1 && conv.groups == 1
            }
            (Op::MatMul, _) => axis + 1 == self.a.graph[node.outputs[0]].shape.len(),
            (op, Role::Reduce) => row_axis(op, axis).is_some(),
            _ => false,
        }
    }

    /// The axis of an anchor's result that is `axis` of a value fused after it.
    fn anchor_axis(&self, anchor: NodeId, mut value: ValueId, mut axis: usize) -> Option<usize> {
        let graph = self.a.graph;
        let members = &self.fusion.epilogues.get(&anchor)?.members;
        loop {
            let id = graph.producer(value)?;
            if id == anchor {
                return Some(axis);
            }
            let node = &graph[id];
            let inside = |v: &&ValueId| {
                graph.producer(**v).is_some_and(|p| p == anchor || members.contains(&p))
            };
            let from = *node.inputs.iter().find(inside)?;
            axis = match &node.op {
                Op::Transpose { perm } => perm[axis],
                Op::Reshape { .. } => {
                    let coords = reshaped(graph, &graph[from].shape, &graph[value].shape);
                    match coords.get(axis)?.as_atom()? {
                        Atom::Var(v) => v.0 as usize,
                        _ => return None,
                    }
                }
                _ => axis,
            };
            value = from;
        }
    }

    /// The axes along which the group of an anchor computes more, for the homes that it writes.
    pub(super) fn of_anchor(&self, plan: &Plan<'_>, anchor: NodeId) -> Vec<Padded> {
        let mut out: Vec<Padded> = Vec::new();
        let Some(epilogue) = self.fusion.epilogues.get(&anchor) else { return out };
        for escape in &epilogue.escapes {
            let Some(padding) = plan.homes.get(escape).and_then(|h| h.padding) else { continue };
            let Some(axis) = self.anchor_axis(anchor, *escape, padding.axis) else { continue };
            match out.iter_mut().find(|(a, _)| *a == axis) {
                Some((_, to)) => *to = padding.to.max(*to),
                None => out.push((axis, padding.to)),
            }
        }
        out
    }
}

/// The extent that is computed along an axis, if it is not the axis' own.
pub(super) fn padded_to(padded: &[Padded], axis: usize) -> Option<i64> {
    padded.iter().find(|(a, _)| *a == axis).map(|(_, to)| *to)
}

/// The operand's axis that numbers rows along `axis` of a reduction's result, if that does.
pub(super) fn row_axis(op: &Op, axis: usize) -> Option<usize> {
    let (axes, same_rank) = match op {
        Op::Reduce { axes, keep_dims, .. } => (axes.as_slice(), *keep_dims),
        Op::ArgReduce { axis, keep_dims, .. } => (std::slice::from_ref(axis), *keep_dims),
        Op::Softmax { axis, .. } => (std::slice::from_ref(axis), true),
        Op::Normalize { axes, .. } => (axes.as_slice(), true),
        _ => return None,
    };
    match same_rank {
        true => (!axes.contains(&axis)).then_some(axis),
        false => (0..).filter(|a| !axes.contains(a)).nth(axis),
    }
}

/// Coordinates in shape `to` of an element whose coordinates in shape `from` are variables numbered as
/// the axes.
fn reshaped(graph: &Graph, from: &[Dim], to: &[Dim]) -> Vec<Dim> {
    let coords = from.iter().enumerate().map(|(i, extent)| match extent.is(1) {
        true => Dim::ZERO,
        false => Dim::var(VarId(i as u32)),
    });
    let coords: Vec<Dim> = coords.collect();
    reshape(&Scope { symbols: &graph.symbols, extents: from }, &coords, from, to)
}

/// The axis of a movement's operand whose coordinate is that along `axis` of its result, if there is one.
fn moved_axis(graph: &Graph, node: &Node, axis: usize) -> Option<usize> {
    let (from, to) = (&graph[*node.inputs.first()?].shape, &graph[node.outputs[0]].shape);
    match &node.op {
        Op::Transpose { perm } => Some(perm[axis]),
        Op::Reshape { .. } => {
            let here = Dim::var(VarId(axis as u32));
            reshaped(graph, to, from).iter().position(|c| *c == here)
        }
        Op::Slice { starts, steps, .. } => {
            (starts[axis].is(0) && steps[axis] == 1 && from[axis] == to[axis]).then_some(axis)
        }
        Op::Expand { .. } => {
            let axis = axis.checked_sub(to.len() - from.len())?;
            (!from[axis].is(1)).then_some(axis)
        }
        _ => None,
    }
}

/// The value that `stored` holds for, of which only movement lies before `value`, and its axis that is
/// `axis` of `value`.
pub(super) fn source(
    graph: &Graph,
    mut value: ValueId,
    mut axis: usize,
    stored: &dyn Fn(ValueId) -> bool,
) -> Option<(ValueId, usize)> {
    while !stored(value) {
        let node = &graph[graph.producer(value)?];
        if !is_movement(&node.op) {
            return None;
        }
        axis = moved_axis(graph, node, axis)?;
        value = node.inputs[0];
    }
    Some((value, axis))
}

#[cfg(test)]
mod tests {
    use super::extent_in_memory;

    #[test]
    fn rows_are_padded_where_wider_accesses_are_worth_it() {
        let halves: Vec<i64> = [1, 2, 3, 4, 5, 8, 12, 18, 22, 26, 33, 42, 50, 64]
            .map(|e| extent_in_memory(e, 2))
            .into();
        assert_eq!(halves, [2, 2, 4, 4, 8, 8, 12, 24, 24, 32, 40, 48, 56, 64]);
        let floats: Vec<i64> = [1, 3, 4, 5, 12, 18, 22, 50].map(|e| extent_in_memory(e, 4)).into();
        assert_eq!(floats, [1, 4, 4, 6, 12, 20, 24, 52]);
    }
}
