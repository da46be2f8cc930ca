//! Loops: memory of what is carried and collected, and the groups of bodies.
//!
//! A carried value has a buffer of twice its size: iteration `t` reads half `t % 2` and writes the other one, so that
//! nothing is overwritten that a group of the iteration still reads. Collected values are written where they are
//! wanted. Captured values are read where the graph around has them.

use super::LowerError;
use super::analysis::{Analysis, Role, is_movement, operand_type};
use super::builder::{LoopSteps, Made, Work};
use super::fuse::Fusion;
use super::groups::{copy_group, make_all, stores_further};
use super::homes::{self, is_made_in_place};
use super::options::LowerOptions;
use super::order;
use super::padding::Paddings;
use super::plan::{BufferKind, Home, LoopMemory, Padding, Plan, PlanBuffer, Repetition, strides};
use aot_ir::dim::Atom;
use aot_ir::op::LoopAttrs;
use aot_ir::{DType, Def, Dim, NodeId, Op, ValueId};
use std::collections::BTreeSet;

/// Gives a loop's results homes.
pub(super) fn assign(a: &Analysis<'_>, plan: &mut Plan<'_>, id: NodeId, attrs: &LoopAttrs) {
    let graph = a.graph;
    let mut memory = LoopMemory::default();
    for (i, &value) in graph[id].outputs.iter().enumerate().skip(attrs.lead()) {
        let shape = &graph[value].shape;
        let elements: Dim = shape.iter().product();
        let order: Vec<usize> = (0..shape.len()).collect();
        let carried = i < attrs.lead() + attrs.carried;
        if !carried && plan.homes.contains_key(&value) {
            continue;
        }
        let (dtype, elements) = match carried {
            true => (graph[value].dtype, elements.scaled(2)),
            false => (a.storage(value), elements),
        };
        let name = graph[value].name.clone();
        let buffer = plan.add_buffer(PlanBuffer { name, dtype, elements, kind: BufferKind::Arena });
        let strides = strides(shape, &order);
        let first = Home { buffer, offset: Dim::ZERO, strides, padding: None };
        let home = match carried {
            true => half(a, &first, shape, &attrs.made()),
            false => first.clone(),
        };
        plan.homes.insert(value, home);
        if carried {
            memory.carried.push(first);
        }
    }
    if attrs.is_conditional() {
        let buffer = plan.add_buffer(PlanBuffer {
            name: format!("{} goes on", graph[id].name),
            dtype: DType::Bool,
            elements: Dim::ONE,
            kind: BufferKind::Arena,
        });
        memory.condition =
            Some(Home { buffer, offset: Dim::ZERO, strides: Vec::new(), padding: None });
    }
    plan.states.insert(id, memory);
}

/// The half of a carried value's buffer that holds it before iteration `at`.
fn half(a: &Analysis<'_>, first: &Home, shape: &[Dim], at: &Dim) -> Home {
    let odd = a.scope().modulo(at, &Dim::from(2));
    let elements: Dim = shape.iter().product();
    Home { offset: &first.offset + odd * elements, ..first.clone() }
}

/// Operands of a loop of which matrix operands within it need copies in another type.
pub(super) fn conversions(options: &LowerOptions, attrs: &LoopAttrs) -> Vec<(usize, DType)> {
    let a = Analysis::new(&attrs.body, options);
    let graph = a.graph;
    let captured = |mut value: ValueId| loop {
        match graph[value].def {
            Def::Input(i) if i as usize >= attrs.carried => return Some(attrs.lead() + i as usize),
            Def::Node(id, _)
                if is_movement(&graph[id].op) || matches!(graph[id].op, Op::Pad { .. }) =>
            {
                value = graph[id].inputs[0];
            }
            _ => return None,
        }
    };
    let mut out = Vec::new();
    for (id, node) in graph.nodes() {
        let operands = match (a.role(id), &node.op) {
            (Role::Contraction, _) => 2,
            (Role::Attention, _) => 3,
            (_, Op::Loop(inner)) => {
                let inner = conversions(options, inner).into_iter();
                out.extend(inner.filter_map(|(n, to)| Some((captured(node.inputs[n])?, to))));
                continue;
            }
            _ => continue,
        };
        let to = operand_type(a.math(node));
        let found = node.inputs[..operands].iter().filter_map(|v| captured(*v));
        out.extend(found.map(|n| (n, to)));
    }
    out
}

/// The groups of a loop: what brings its carried values to their memory, and the loop itself.
pub(super) fn make(
    a: &Analysis<'_>,
    plan: &mut Plan<'_>,
    id: NodeId,
    attrs: &LoopAttrs,
    groups: &mut Vec<Made>,
) -> Result<(), LowerError> {
    let node = &a.graph[id];
    let memory = plan.states.get(&id).cloned().unwrap_or_default();
    let lead = attrs.lead();
    if let Some(condition) = &memory.condition {
        let writes = (node.outputs[0], None);
        groups.push(copy_group(plan, node.inputs[0], condition, writes)?);
    }
    for (i, first) in memory.carried.iter().enumerate() {
        let writes = (node.outputs[lead + i], None);
        groups.push(copy_group(plan, node.inputs[lead + i], first, writes)?);
    }
    let results: Vec<Home> = node.outputs[lead..].iter().map(|v| plan.homes[v].clone()).collect();
    let body = Analysis::new(&attrs.body, a.options);
    let mut inner = Plan { nested: true, ..Plan::new(&attrs.body) };
    let mut reads = BTreeSet::new();
    let at = Dim::atom(Atom::Sym(attrs.iteration));
    for (i, &input) in attrs.body.inputs.iter().enumerate() {
        let shape = &attrs.body[input].shape;
        if let Some(first) = memory.carried.get(i) {
            inner.homes.insert(input, half(&body, first, shape, &at));
            continue;
        }
        let operand = node.inputs[lead + i];
        let Some(home) = plan.homes.get(&operand) else {
            return Err(LowerError::internal(&node.name, "a captured value is not in memory"));
        };
        inner.homes.insert(input, home.clone());
        reads.insert((operand, None));
        for (&(value, to), copy) in &plan.converted {
            if value == operand {
                inner.converted.insert((input, to), copy.clone());
                reads.insert((operand, Some(to)));
            }
        }
    }
    let mut places: Vec<Home> = memory.condition.iter().cloned().collect();
    for (i, result) in results.iter().enumerate() {
        let value = attrs.body.outputs[lead + i].1;
        places.push(match memory.carried.get(i) {
            Some(first) => half(&body, first, &attrs.body[value].shape, &(&at + 1)),
            None => {
                let last = &attrs.count - 1 - &at;
                let row = if attrs.backward[i - attrs.carried] { last } else { at.clone() };
                let part = result.part(0, &row, &Dim::ONE);
                let padding = part.padding.filter(|p| p.axis > 0);
                let padding = padding.map(|p| Padding { axis: p.axis - 1, ..p });
                Home { strides: part.strides[1..].to_vec(), padding, ..part }
            }
        });
    }
    inner.buffers = std::mem::take(&mut plan.buffers);
    let made = body_groups(&body, &mut inner, attrs, &places);
    plan.buffers = std::mem::take(&mut inner.buffers);
    made?;
    let whole = Repetition {
        steps: 0..inner.steps.len(),
        iteration: attrs.iteration,
        count: attrs.count.clone(),
        turns: attrs.turns,
        condition: memory.condition.map(|home| home.buffer),
        guards: attrs.body.guards.clone(),
    };
    let Plan { steps, readings, loops, .. } = inner;
    // The copies of what is carried come first.
    let writes: Vec<_> = node.outputs.iter().map(|v| (*v, None)).collect();
    reads.extend(writes.iter().copied());
    let steps = LoopSteps { whole, groups: steps, readings, loops };
    groups.push(Made { work: Work::Loop(Box::new(steps)), reads, writes });
    Ok(())
}

/// The groups of a body whose outputs go to `places`, in order.
fn body_groups(
    a: &Analysis<'_>,
    plan: &mut Plan<'_>,
    attrs: &LoopAttrs,
    places: &[Home],
) -> Result<(), LowerError> {
    let graph = a.graph;
    let fusion = super::fuse::fuse(a);
    let mut copies: Vec<(ValueId, &Home)> = Vec::new();
    for ((_, value), place) in attrs.body.outputs.iter().zip(places) {
        if is_made_in_place(graph, *value) && !plan.homes.contains_key(value) {
            plan.homes.insert(*value, place.clone());
        } else if writes_itself(a, &fusion, *value) {
            plan.also.entry(*value).or_default().push(place.clone());
        } else {
            copies.push((*value, place));
        }
    }
    let paddings = Paddings::new(a, &fusion, homes::channels_last(a));
    let mut groups = make_all(&paddings, plan)?;
    for (value, place) in copies {
        let mut made = copy_group(plan, value, place, (value, None))?;
        made.writes.clear();
        groups.push(made);
    }
    order::arrange(plan, groups)
}

/// Whether the group that makes a value can write it to several places.
fn writes_itself(a: &Analysis<'_>, fusion: &Fusion, value: ValueId) -> bool {
    match a.graph[value].def {
        Def::Node(id, _) => {
            !matches!(a.role(id), Role::Scatter | Role::Loop | Role::Host)
                && stores_further(a, fusion, id)
        }
        Def::Input(_) | Def::Const(_) => false,
    }
}
