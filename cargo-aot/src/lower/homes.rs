//! Where kept values live: buffers, layouts, parts of concatenations, converted copies.

use super::analysis::{Analysis, Role, is_movement, operand_type};
use super::fuse::Fusion;
use super::host;
use super::loops;
use super::padding::{Paddings, padded_to, source};
use super::plan::{BufferKind, Home, Padding, Plan};
use aot_ir::{DType, Def, Dim, Graph, NodeId, Op, ValueId};
use std::collections::HashMap;

/// Gives every input, constant and output a home that has none yet.
pub(super) fn interface(plan: &mut Plan<'_>) {
    let graph = plan.graph;
    for (i, &input) in graph.inputs.iter().enumerate() {
        if plan.homes.contains_key(&input) {
            continue;
        }
        add_row_major(plan, input, graph[input].dtype, BufferKind::Input(i as u32));
    }
    for (i, (_, value)) in graph.outputs.iter().enumerate() {
        let first = graph.outputs.iter().position(|(_, v)| v == value) == Some(i);
        if first && is_made_in_place(graph, *value) && !plan.homes.contains_key(value) {
            add_row_major(plan, *value, graph[*value].dtype, BufferKind::Output(i as u32));
        }
    }
    for (id, value) in graph.values() {
        if let Def::Const(c) = value.def {
            add_row_major(plan, id, value.dtype, BufferKind::Constant(c.0));
        }
    }
}

/// Whether what makes a value can put it where it is wanted.
pub(super) fn is_made_in_place(graph: &Graph, value: ValueId) -> bool {
    match graph[value].def {
        Def::Node(id, n) => match &graph[id].op {
            // What is carried lies where the next iteration would read it; the number of iterations is no data; how
            // long what is collected gets, and with it the caller's memory, may be known only after the loop.
            Op::Loop(attrs) => n as usize >= attrs.lead() + attrs.carried && attrs.turns.is_none(),
            // The host fills whole buffers.
            Op::Host(_) => false,
            _ => true,
        },
        Def::Input(_) | Def::Const(_) => false,
    }
}

/// Gives every kept value a home that has none yet.
pub(super) fn assign(paddings: &Paddings<'_, '_>, plan: &mut Plan<'_>) {
    let (a, fusion) = (paddings.a, paddings.fusion);
    let graph = a.graph;
    // Last to first, so that a concatenation has its home before its operands.
    for &node in a.order.iter().rev() {
        if let Op::Loop(attrs) = &graph[node].op {
            loops::assign(a, plan, node, attrs);
            continue;
        }
        if let Op::Host(_) = &graph[node].op {
            host::assign(a, plan, node);
            continue;
        }
        for &value in &graph[node].outputs {
            if !fusion.kept.contains(&value) {
                continue;
            }
            if !plan.homes.contains_key(&value) {
                let kind = if a.is_const[value.index()] {
                    BufferKind::Prepared
                } else {
                    BufferKind::Arena
                };
                let v = &graph[value];
                let order = order(v.shape.len(), paddings.channels_last[value.index()]);
                let padding = order.last().and_then(|axis| paddings.of(value, *axis));
                let what = (v.name.as_str(), a.storage(value), kind);
                let home = plan.add_home(what, &v.shape, &order, padding);
                plan.homes.insert(value, home);
            }
            if let Op::Concat { axis } = graph[node].op {
                place_operands(a, fusion, plan, node, axis);
            }
        }
    }
}

/// Operands of a kept concatenation are computed into their parts of it.
fn place_operands(
    a: &Analysis<'_>,
    fusion: &Fusion,
    plan: &mut Plan<'_>,
    concat: NodeId,
    axis: usize,
) {
    let graph = a.graph;
    let result = graph[concat].outputs[0];
    // Where a part lies may be known only after what is to be computed into it.
    if graph[result].shape.iter().any(|dim| graph.symbols.mentions_run(dim)) {
        return;
    }
    let Some(whole) = plan.homes.get(&result).cloned() else { return };
    let mut start = Dim::ZERO;
    for &operand in &graph[concat].inputs {
        let extent = &graph[operand].shape[axis];
        let free = fusion.kept.contains(&operand)
            && !plan.homes.contains_key(&operand)
            && is_made_in_place(graph, operand)
            && a.storage(operand) == plan.buffers[whole.buffer as usize].dtype
            && a.is_const[operand.index()] == a.is_const[result.index()];
        if free {
            plan.homes.insert(operand, whole.part(axis, &start, extent));
        }
        start = start + extent;
    }
}

fn add_row_major(plan: &mut Plan<'_>, value: ValueId, dtype: DType, kind: BufferKind) {
    let v = &plan.graph[value];
    let order: Vec<usize> = (0..v.shape.len()).collect();
    let home = plan.add_home((&v.name, dtype, kind), &v.shape, &order, None);
    plan.homes.insert(value, home);
}

/// Order of axes in memory, outermost first.
fn order(rank: usize, channels_last: bool) -> Vec<usize> {
    if channels_last && rank >= 3 {
        [0].into_iter().chain(2..rank).chain([1]).collect()
    } else {
        (0..rank).collect()
    }
}

/// Values that lie with axis 1 innermost: those that convolutions and pools touch, and what is
/// computed from them element by element.
pub(super) fn channels_last(a: &Analysis<'_>) -> Vec<bool> {
    let graph = a.graph;
    let count = graph.values().len();
    let mut class: Vec<usize> = (0..count).collect();
    fn find(class: &mut [usize], mut i: usize) -> usize {
        while class[i] != i {
            class[i] = class[class[i]];
            i = class[i];
        }
        i
    }
    let mut wanted = vec![false; count];
    for (_, node) in graph.nodes() {
        let out = node.outputs[0];
        let rank = graph[out].shape.len();
        let same_place = node.op.is_pointwise()
            || matches!(
                node.op,
                Op::Concat { .. } | Op::Slice { .. } | Op::Pad { .. } | Op::Resize(_)
            );
        let spatial = matches!(node.op, Op::Conv(_) | Op::ConvTranspose { .. } | Op::Pool(_));
        if same_place || spatial {
            let tied = if spatial { 1 } else { node.inputs.len() };
            for input in &node.inputs[..tied] {
                if graph[*input].shape.len() == rank && rank >= 3 {
                    let (x, y) = (find(&mut class, input.index()), find(&mut class, out.index()));
                    class[x] = y;
                }
            }
        }
        wanted[out.index()] |= spatial && rank >= 3;
    }
    let mut by_class = vec![false; count];
    for (i, wanted) in wanted.iter().enumerate() {
        let c = find(&mut class, i);
        by_class[c] |= wanted;
    }
    (0..count).map(|i| by_class[find(&mut class, i)]).collect()
}

/// A copy of a value in another type or layout.
#[derive(Debug)]
pub(super) struct Conversion {
    pub(super) value: ValueId,
    pub(super) to: DType,
}

/// How a copy is to lie: the order of its axes and their padding.
struct Layout {
    order: Vec<usize>,
    padding: Option<Padding>,
    /// It is worth a copy even in the type that the value has.
    relaid: bool,
}

/// Adds the copies that groups read instead of values, and lists them for groups to make: matrix operands
/// in the type that products take, those within loops included, and weights as those who read them go along them.
pub(super) fn conversions(paddings: &Paddings<'_, '_>, plan: &mut Plan<'_>) -> Vec<Conversion> {
    let a = paddings.a;
    let mut out = Vec::new();
    for &id in &a.order {
        let node = &a.graph[id];
        let operands = match (a.role(id), &node.op) {
            (Role::Contraction, _) => 2,
            (Role::Attention, _) => 3,
            (_, Op::Loop(attrs)) => {
                for (n, to) in loops::conversions(a.options, attrs) {
                    let value = node.inputs[n];
                    let Some(home) = plan.homes.get(&value) else { continue };
                    if plan.buffers[home.buffer as usize].dtype != to {
                        let order = relative_order(&home.strides);
                        let layout = Layout { order, padding: None, relaid: false };
                        convert(a, plan, value, to, &layout, &mut out);
                    }
                }
                continue;
            }
            _ => continue,
        };
        let to = operand_type(a.math(node));
        for (n, &operand) in node.inputs[..operands].iter().enumerate() {
            let Some(base) = base(a, plan, operand) else { continue };
            let Some(home) = plan.homes.get(&base) else { continue };
            let layout = operand_layout(paddings, plan, id, n, base, home);
            let stored = plan.buffers[home.buffer as usize].dtype;
            if stored != to || layout.relaid {
                convert(a, plan, base, to, &layout, &mut out);
            }
        }
    }
    depthwise_kernels(paddings, plan, &mut out);
    padded_vectors(paddings, plan, &mut out);
    out
}

/// Adds a copy unless there is one.
fn convert(
    a: &Analysis<'_>,
    plan: &mut Plan<'_>,
    value: ValueId,
    to: DType,
    layout: &Layout,
    out: &mut Vec<Conversion>,
) {
    if plan.converted.contains_key(&(value, to)) {
        return;
    }
    let v = &a.graph[value];
    let kind = if a.is_const[value.index()] { BufferKind::Prepared } else { BufferKind::Arena };
    let home = plan.add_home((&v.name, to, kind), &v.shape, &layout.order, layout.padding);
    plan.converted.insert((value, to), home);
    out.push(Conversion { value, to });
}

/// How a copy of the n-th operand of a node, whose elements are those of `base`, is to lie.
fn operand_layout(
    paddings: &Paddings<'_, '_>,
    plan: &Plan<'_>,
    id: NodeId,
    n: usize,
    base: ValueId,
    home: &Home,
) -> Layout {
    let a = paddings.a;
    let node = &a.graph[id];
    let shape = &a.graph[base].shape;
    let (direct, constant) = (base == node.inputs[n], a.is_const[base.index()]);
    let to = operand_type(a.math(node));
    match &node.op {
        Op::Conv(conv) if n == 1 && direct && constant => {
            let summed = plan.padding_of(node.inputs[0], 1, to).filter(|_| conv.groups == 1);
            let padding = padding(shape, 1, summed);
            let windowed = shape[2..].iter().any(|d| !d.is(1));
            let order = order(shape.len(), true);
            Layout { order, padding, relaid: windowed || padding.is_some() }
        }
        Op::ConvTranspose { conv, .. } if n == 1 && direct && constant => {
            let summed = plan.padding_of(node.inputs[0], 1, to).filter(|_| conv.groups == 1);
            let order = (1..shape.len()).chain([0]).collect();
            Layout { order, padding: padding(shape, 0, summed), relaid: true }
        }
        Op::Conv(_) | Op::ConvTranspose { .. }
            if n == 0 && direct && paddings.channels_last[base.index()] =>
        {
            let padding = paddings.by_extent(base, 1).filter(|p| p.from > 1);
            Layout { order: order(shape.len(), true), padding, relaid: false }
        }
        Op::MatMul => {
            let order = relative_order(&home.strides);
            let padding = order
                .last()
                .and_then(|inner| product_padding(paddings, plan, id, n, (base, *inner)));
            Layout { order, padding, relaid: constant && padding.is_some() }
        }
        _ => Layout { order: relative_order(&home.strides), padding: None, relaid: false },
    }
}

/// The padding of the innermost axis of a copy of a product's n-th operand.
fn product_padding(
    paddings: &Paddings<'_, '_>,
    plan: &Plan<'_>,
    id: NodeId,
    n: usize,
    inner: (ValueId, usize),
) -> Option<Padding> {
    let graph = paddings.a.graph;
    let node = &graph[id];
    let [left, right] = [node.inputs[0], node.inputs[1]];
    let lies = |operand: ValueId, axis: usize| {
        source(graph, operand, axis, &|v| plan.homes.contains_key(&v)) == Some(inner)
    };
    let summed = graph[left].shape.len() - 1;
    if n == 0 {
        return paddings.by_extent(inner.0, inner.1).filter(|p| p.from > 1 && lies(left, summed));
    }
    let rank = graph[right].shape.len();
    let to = if lies(right, rank - 2) {
        plan.padding_of(left, summed, operand_type(paddings.a.math(node)))
    } else if lies(right, rank - 1) {
        let result = &graph[node.outputs[0]].shape;
        padded_to(&paddings.of_anchor(plan, id), result.len() - 1)
    } else {
        None
    };
    padding(&graph[inner.0].shape, inner.1, to)
}

fn padding(shape: &[Dim], axis: usize, to: Option<i64>) -> Option<Padding> {
    let (from, to) = (shape[axis].as_const()?, to?);
    (to > from).then_some(Padding { axis, from, to })
}

/// Kernels of depthwise convolutions get the order of what they are multiplied with: channels last.
fn depthwise_kernels(paddings: &Paddings<'_, '_>, plan: &mut Plan<'_>, out: &mut Vec<Conversion>) {
    let a = paddings.a;
    let windows = a.order.iter().filter(|id| a.role(**id) == Role::Window);
    for &id in windows {
        let node = &a.graph[id];
        let (Op::Conv(_), Some(&kernel)) = (&node.op, node.inputs.get(1)) else { continue };
        let Some(stored) = constant_type(a, plan, kernel) else { continue };
        let shape = &a.graph[kernel].shape;
        let to = padded_to(&paddings.of_anchor(plan, id), 1);
        let order = (1..shape.len()).chain([0]).collect();
        let layout = Layout { order, padding: padding(shape, 0, to), relaid: true };
        convert(a, plan, kernel, stored, &layout, out);
    }
}

/// Constant vectors along an axis that is padded where they are added or multiplied are padded too.
fn padded_vectors(paddings: &Paddings<'_, '_>, plan: &mut Plan<'_>, out: &mut Vec<Conversion>) {
    let a = paddings.a;
    let mut extents: HashMap<i64, i64> = HashMap::new();
    for padding in plan.homes.values().filter_map(|h| h.padding) {
        let to = extents.entry(padding.from).or_default();
        *to = padding.to.max(*to);
    }
    for (_, node) in a.graph.nodes().filter(|(_, n)| n.op.is_pointwise()) {
        for &operand in &node.inputs {
            let Some(stored) = constant_type(a, plan, operand) else { continue };
            let shape = &a.graph[operand].shape;
            let mut long = (0..shape.len()).filter(|axis| !shape[*axis].is(1));
            let (Some(axis), None) = (long.next(), long.next()) else { continue };
            let to = shape[axis].as_const().and_then(|e| extents.get(&e).copied());
            if let Some(padding) = padding(shape, axis, to) {
                let order = (0..shape.len()).collect();
                let layout = Layout { order, padding: Some(padding), relaid: true };
                convert(a, plan, operand, stored, &layout, out);
            }
        }
    }
}

/// The type that floats are stored in that depend on constants alone; `None` of other values and of single
/// numbers.
fn constant_type(a: &Analysis<'_>, plan: &Plan<'_>, value: ValueId) -> Option<DType> {
    let home = plan.homes.get(&value).filter(|_| a.is_const[value.index()])?;
    let stored = plan.buffers[home.buffer as usize].dtype;
    (stored.is_float() && super::small_constant(a.graph, value).is_none()).then_some(stored)
}

/// Axes from the greatest to the least stride.
fn relative_order(strides: &[Dim]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..strides.len()).collect();
    let size = |d: &Dim| (d.terms().iter().map(|t| t.factors.len()).max(), d.as_const());
    order.sort_by(|x, y| size(&strides[*y]).cmp(&size(&strides[*x])));
    order
}

/// The value in memory that an operand's elements are, if only movement lies between.
fn base(a: &Analysis<'_>, plan: &Plan<'_>, mut value: ValueId) -> Option<ValueId> {
    loop {
        if plan.homes.contains_key(&value) {
            return super::small_constant(a.graph, value).is_none().then_some(value);
        }
        let node = &a.graph[a.graph.producer(value)?];
        if !is_movement(&node.op) && !matches!(node.op, Op::Pad { .. }) {
            return None;
        }
        value = node.inputs[0];
    }
}
