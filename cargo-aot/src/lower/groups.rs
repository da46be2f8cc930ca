//! Makes the groups.

use super::LowerError;
use super::analysis::{Analysis, Role};
use super::anchors::{self, Anchored};
use super::builder::{Builder, Made, Stored};
use super::coords::{broadcast, reshape};
use super::fuse::{Epilogue, Fusion, fuse};
use super::homes;
use super::host;
use super::join;
use super::lifetimes::in_place;
use super::loops;
use super::options::LowerOptions;
use super::order;
use super::padding::{Padded, Paddings};
use super::plan::{BufferKind, Home, Plan};
use super::scan;
use super::state;
use aot_ir::dim::Cond;
use aot_ir::op::ScatterReduction;
use aot_ir::{Dim, Graph, Node, NodeId, Op, ValueId};
use aot_kernels::group::{Anchor, ExprId};
use std::collections::{HashMap, HashSet};

/// Lowers a graph.
///
/// # Errors
/// Lists all nodes that have no kernel.
pub fn lower<'g>(graph: &'g Graph, options: &'g LowerOptions) -> Result<Plan<'g>, LowerError> {
    let analysis = Analysis::new(graph, options);
    let mut unsupported = Vec::new();
    without_kernels(&analysis, &mut unsupported);
    if !unsupported.is_empty() {
        return Err(LowerError::Unsupported(unsupported));
    }
    let fusion = fuse(&analysis);
    let mut plan = Plan::new(graph);
    state::assign(&analysis, &mut plan);
    homes::interface(&mut plan);
    let paddings = Paddings::new(&analysis, &fusion, homes::channels_last(&analysis));
    let mut groups = make_all(&paddings, &mut plan)?;
    copy_outputs(&mut plan, &mut groups)?;
    order::arrange(&mut plan, groups)?;
    plan.in_place = in_place(&plan);
    Ok(plan)
}

/// Names nodes that have no kernel, those of bodies included.
fn without_kernels(a: &Analysis<'_>, out: &mut Vec<String>) {
    for (id, node) in a.graph.nodes() {
        match &node.op {
            Op::Loop(attrs) => without_kernels(&Analysis::new(&attrs.body, a.options), out),
            _ if a.role(id) == Role::Unsupported => {
                out.push(format!("`{}` ({})", node.name, node.op.name()));
            }
            _ => {}
        }
    }
}

/// The groups of a graph or body, in no particular order; homes of what goes in and out are given.
pub(super) fn make_all(
    paddings: &Paddings<'_, '_>,
    plan: &mut Plan<'_>,
) -> Result<Vec<Made>, LowerError> {
    let (a, fusion) = (paddings.a, paddings.fusion);
    homes::assign(paddings, plan);
    let conversions = homes::conversions(paddings, plan);
    let mut groups = Vec::new();
    for conversion in &conversions {
        let home = &plan.converted[&(conversion.value, conversion.to)];
        let writes = (conversion.value, Some(conversion.to));
        groups.push(copy_group(plan, conversion.value, home, writes)?);
    }
    let mut joined = if plan.nested { join::sets(a, fusion, plan) } else { HashMap::new() };
    let waiting: HashSet<NodeId> = joined.values().flatten().copied().collect();
    for &id in &a.order {
        if let Op::Loop(attrs) = &a.graph[id].op {
            loops::make(a, plan, id, attrs, &mut groups)?;
        } else if let Op::Host(op) = &a.graph[id].op {
            host::make(a, plan, id, op, &mut groups)?;
        } else if let Some(set) = joined.remove(&id) {
            match join::make(a, plan, &set)? {
                Some(made) => groups.push(made),
                None => {
                    for id in set {
                        make(paddings, plan, id, &mut groups)?;
                    }
                }
            }
        } else if !waiting.contains(&id) {
            make(paddings, plan, id, &mut groups)?;
        }
    }
    copy_operands(a, fusion, plan, &mut groups)?;
    Ok(groups)
}

/// Whether a node is a concatenation whose parts are written by what makes them.
pub(super) fn placed_by_parts(a: &Analysis<'_>, fusion: &Fusion, id: NodeId) -> bool {
    let node = &a.graph[id];
    matches!(node.op, Op::Concat { .. })
        && fusion.kept.contains(&node.outputs[0])
        && !fusion.fused.contains(&id)
}

/// Whether one group makes the results of a node that is no scatter or loop, and so can write them to several places.
pub(super) fn stores_further(a: &Analysis<'_>, fusion: &Fusion, id: NodeId) -> bool {
    !placed_by_parts(a, fusion, id)
}

/// The groups of one node, if it heads any.
fn make(
    paddings: &Paddings<'_, '_>,
    plan: &Plan<'_>,
    id: NodeId,
    groups: &mut Vec<Made>,
) -> Result<(), LowerError> {
    let (a, fusion) = (paddings.a, paddings.fusion);
    let node = &a.graph[id];
    let role = a.role(id);
    if role == Role::Inline {
        let value = node.outputs[0];
        if fusion.kept.contains(&value)
            && !fusion.fused.contains(&id)
            && !placed_by_parts(a, fusion, id)
        {
            let home = &plan.homes[&value];
            let mut b = Builder::new(plan);
            let (space, coords) = b.padded_space(&a.graph[value].shape, &of_home(home));
            let result = b.computed_at(value, &coords)?;
            b.store_all(value, &coords, result, true)?;
            groups.push(b.finish(node.name.clone(), Anchor::Map { space }, vec![(value, None)]));
        }
        return Ok(());
    }
    let Some(epilogue) = fusion.epilogues.get(&id) else { return Ok(()) };
    if epilogue.escapes.is_empty() {
        return Ok(());
    }
    if role == Role::Scatter {
        groups.push(scatter_copy(plan, node)?);
        groups.push(scatter(plan, node)?);
        return Ok(());
    }
    let mut b = Builder::new(plan);
    b.note(&node.name);
    let padded = paddings.of_anchor(plan, id);
    let anchored = match role {
        Role::Reduce => anchors::reduce(&mut b, node, &padded)?,
        Role::Scan => scan::scan(&mut b, node)?,
        Role::Contraction => match node.op {
            Op::MatMul => anchors::matmul(&mut b, node, a.math(node), &padded)?,
            _ => anchors::conv(&mut b, node, a.math(node), &padded)?,
        },
        Role::Attention => match &node.op {
            Op::Attention(attrs) => anchors::attention(&mut b, node, attrs, a.math(node))?,
            _ => return Err(LowerError::internal(&node.name, "it is no attention")),
        },
        _ => {
            let value = node.outputs[0];
            let (space, coords) = b.padded_space(&a.graph[value].shape, &padded);
            let result = b.computed_at(value, &coords)?;
            Anchored { anchor: Anchor::Map { space }, coords, result, per_element: true }
        }
    };
    let Anchored { anchor, coords, result, per_element } = anchored;
    let values = fused(a, &mut b, node, epilogue, coords, result)?;
    for escape in &epilogue.escapes {
        let (coords, value) = &values[escape];
        b.store_all(*escape, coords, *value, per_element)?;
    }
    let writes = epilogue.escapes.iter().map(|v| (*v, None)).collect();
    groups.push(b.finish(node.name.clone(), anchor, writes));
    Ok(())
}

/// The axis along which the group of a home computes more.
fn of_home(home: &Home) -> Vec<Padded> {
    home.padding.iter().map(|p| (p.axis, p.to)).collect()
}

/// Coordinates and expressions of the anchor's result and of everything fused after it.
fn fused(
    a: &Analysis<'_>,
    b: &mut Builder<'_>,
    anchor: &Node,
    epilogue: &Epilogue,
    coords: Vec<Dim>,
    result: ExprId,
) -> Result<HashMap<ValueId, (Vec<Dim>, ExprId)>, LowerError> {
    let graph = a.graph;
    let mut values = HashMap::from([(anchor.outputs[0], (coords, result))]);
    for &id in &epilogue.members {
        let node = &graph[id];
        b.note(&node.name);
        let inner = node.inputs.iter().find_map(|v| values.get(v)).cloned();
        let Some((coords, expr)) = inner else {
            return Err(LowerError::internal(&node.name, "it is fused after nothing"));
        };
        let x = node.inputs[0];
        let entry = match &node.op {
            Op::Reshape { .. } => {
                let (from, to) = (&graph[x].shape, &graph[node.outputs[0]].shape);
                (reshape(&b.scope(), &coords, from, to), expr)
            }
            Op::Transpose { perm } => {
                (perm.iter().map(|&axis| coords[axis].clone()).collect(), expr)
            }
            _ => {
                let mut operands = Vec::with_capacity(3);
                for input in &node.inputs {
                    operands.push(match values.get(input) {
                        Some((_, expr)) => *expr,
                        None => b.value_at(*input, &broadcast(&coords, &graph[*input].shape))?,
                    });
                }
                let out = b.pointwise(id, &operands)?;
                (coords, out)
            }
        };
        values.insert(node.outputs[0], entry);
    }
    Ok(values)
}

/// Copies a value from where it is to `home`.
pub(super) fn copy_group(
    plan: &Plan<'_>,
    value: ValueId,
    home: &Home,
    writes: Stored,
) -> Result<Made, LowerError> {
    let v = &plan.graph[value];
    let mut b = Builder::of_originals(plan);
    b.note(&v.name);
    let (space, coords) = b.padded_space(&v.shape, &of_home(home));
    let element = b.value_at(value, &coords)?;
    b.store(home, &coords, element, true)?;
    Ok(b.finish(format!("copy {}", v.name), Anchor::Map { space }, vec![writes]))
}

/// Operands of kept concatenations that are not computed in place are copied there.
fn copy_operands(
    a: &Analysis<'_>,
    fusion: &Fusion,
    plan: &Plan<'_>,
    groups: &mut Vec<Made>,
) -> Result<(), LowerError> {
    for (id, node) in a.graph.nodes() {
        let Op::Concat { axis } = node.op else { continue };
        if !fusion.kept.contains(&node.outputs[0]) || fusion.fused.contains(&id) {
            continue;
        }
        let whole = &plan.homes[&node.outputs[0]];
        let mut start = Dim::ZERO;
        let mut placed = HashSet::new();
        for &operand in &node.inputs {
            let extent = &a.graph[operand].shape[axis];
            let part = whole.part(axis, &start, extent);
            let in_place = plan.homes.get(&operand) == Some(&part) && placed.insert(operand);
            if !in_place && !extent.is(0) {
                let writes = (node.outputs[0], None);
                groups.push(copy_group(plan, operand, &part, writes)?);
            }
            start = start + extent;
        }
    }
    Ok(())
}

/// Outputs that are inputs, constants, made by the host, carried by a loop, collected by one that ends by a condition, or
/// further names of an output are copies.
fn copy_outputs(plan: &mut Plan<'_>, groups: &mut Vec<Made>) -> Result<(), LowerError> {
    let graph = plan.graph;
    for (i, (name, value)) in graph.outputs.iter().enumerate() {
        let v = &graph[*value];
        let first = graph.outputs.iter().position(|(_, o)| o == value) == Some(i);
        if first && homes::is_made_in_place(graph, *value) {
            continue;
        }
        let order: Vec<usize> = (0..v.shape.len()).collect();
        let what = (name.as_str(), v.dtype, BufferKind::Output(i as u32));
        let home = plan.add_home(what, &v.shape, &order, None);
        groups.push(copy_output(plan, *value, &home)?);
    }
    Ok(())
}

fn copy_output(plan: &Plan<'_>, value: ValueId, home: &Home) -> Result<Made, LowerError> {
    let mut made = copy_group(plan, value, home, (value, None))?;
    made.writes.clear();
    Ok(made)
}

/// Brings a scatter's data to where its result will be.
fn scatter_copy(plan: &Plan<'_>, node: &Node) -> Result<Made, LowerError> {
    let graph = plan.graph;
    let (data, result) = (node.inputs[0], node.outputs[0]);
    let mut b = Builder::new(plan);
    b.note(&node.name);
    let (space, coords) = b.space(&graph[result].shape);
    let element = b.value_at(data, &coords)?;
    b.store(&plan.homes[&result], &coords, element, true)?;
    Ok(b.finish(format!("{} data", node.name), Anchor::Map { space }, vec![(result, None)]))
}

/// Writes a scatter's updates.
fn scatter(plan: &Plan<'_>, node: &Node) -> Result<Made, LowerError> {
    let graph = plan.graph;
    let [data, indices, updates] = [node.inputs[0], node.inputs[1], node.inputs[2]];
    let home = &plan.homes[&node.outputs[0]];
    let shape = &graph[data].shape;
    let mut b = Builder::new(plan);
    b.note(&node.name);
    let (space, coords) = b.space(&graph[updates].shape);
    let (target, reduction): (Vec<Dim>, ScatterReduction) = match &node.op {
        Op::ScatterElements { axis, reduction } => {
            let at = b.value_at(indices, &coords)?;
            let mut target = coords.clone();
            target[*axis] = b.wrapped(at, &shape[*axis]);
            (target, *reduction)
        }
        Op::ScatterNd { reduction } => {
            let dims = &graph[indices].shape;
            let depth = dims.last().and_then(|d| d.as_const()).ok_or_else(|| {
                LowerError::unsupported(node, "the last extent of the indices is not constant")
            })?;
            let mut target = Vec::new();
            for i in 0..depth {
                let mut place = coords[..dims.len() - 1].to_vec();
                place.push(i.into());
                let at = b.value_at(indices, &place)?;
                target.push(b.wrapped(at, &shape[i as usize]));
            }
            target.extend_from_slice(&coords[dims.len() - 1..]);
            (target, *reduction)
        }
        op => return Err(LowerError::internal(&node.name, op.name())),
    };
    let value = b.value_at(updates, &coords)?;
    let mut guard = Cond::always();
    for (at, extent) in target.iter().zip(shape) {
        guard = guard.and(b.within(at, extent));
    }
    let offset = home.offset_of(&target);
    b.store_at(home.buffer, offset, value, reduction, guard);
    let writes = vec![(node.outputs[0], None)];
    Ok(b.finish(node.name.clone(), Anchor::Map { space }, writes))
}
