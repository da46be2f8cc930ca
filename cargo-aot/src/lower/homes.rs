//! Where kept values live: buffers, layouts, parts of concatenations, converted copies.

use super::LowerError;
use super::analysis::{Analysis, is_movement, operand_type};
use super::fuse::Fusion;
use super::plan::{BufferKind, Home, Plan, PlanBuffer, strides};
use aot_ir::{DType, Def, Dim, NodeId, Op, ValueId};

/// Gives every input, constant, output and kept value a home.
pub(super) fn assign(a: &Analysis<'_>, fusion: &Fusion, plan: &mut Plan<'_>) {
    let graph = a.graph;
    let last_channels = channels_last(a);
    for (i, &input) in graph.inputs.iter().enumerate() {
        add_row_major(plan, input, graph[input].dtype, BufferKind::Input(i as u32));
    }
    for (i, (_, value)) in graph.outputs.iter().enumerate() {
        let first = graph.outputs.iter().position(|(_, v)| v == value) == Some(i);
        let computed = matches!(graph[*value].def, Def::Node(..));
        if first && computed {
            add_row_major(plan, *value, graph[*value].dtype, BufferKind::Output(i as u32));
        }
    }
    for (id, value) in graph.values() {
        if let Def::Const(c) = value.def {
            add_row_major(plan, id, value.dtype, BufferKind::Constant(c.0));
        }
    }
    // Last to first, so that a concatenation has its home before its operands.
    for &node in a.order.iter().rev() {
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
                let dtype = a.storage(value);
                let shape = &graph[value].shape;
                let order = order(shape.len(), last_channels[value.index()]);
                let home = Home {
                    buffer: plan.add_buffer(PlanBuffer {
                        name: graph[value].name.clone(),
                        dtype,
                        elements: shape.iter().product(),
                        kind,
                    }),
                    offset: Dim::ZERO,
                    strides: strides(shape, &order),
                };
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
    let Some(whole) = plan.homes.get(&result).cloned() else { return };
    let mut start = Dim::ZERO;
    for &operand in &graph[concat].inputs {
        let free = fusion.kept.contains(&operand)
            && !plan.homes.contains_key(&operand)
            && a.storage(operand) == plan.buffers[whole.buffer as usize].dtype
            && a.is_const[operand.index()] == a.is_const[result.index()];
        if free {
            plan.homes.insert(operand, whole.part(axis, &start));
        }
        start = start + &graph[operand].shape[axis];
    }
}

fn add_row_major(plan: &mut Plan<'_>, value: ValueId, dtype: DType, kind: BufferKind) {
    let v = &plan.graph[value];
    let order: Vec<usize> = (0..v.shape.len()).collect();
    let home_strides = strides(&v.shape, &order);
    let buffer =
        PlanBuffer { name: v.name.clone(), dtype, elements: v.shape.iter().product(), kind };
    let buffer = plan.add_buffer(buffer);
    plan.homes.insert(value, Home { buffer, offset: Dim::ZERO, strides: home_strides });
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
fn channels_last(a: &Analysis<'_>) -> Vec<bool> {
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

/// A copy of a value that a matrix operand needs in another type or layout.
#[derive(Debug)]
pub(super) struct Conversion {
    pub(super) value: ValueId,
    pub(super) to: DType,
}

/// Adds the copies that matrix operands need, and lists them for groups to make.
pub(super) fn conversions(
    a: &Analysis<'_>,
    plan: &mut Plan<'_>,
) -> Result<Vec<Conversion>, LowerError> {
    let graph = a.graph;
    let mut out = Vec::new();
    for &id in &a.order {
        let node = &graph[id];
        let operands = match a.role(id) {
            super::analysis::Role::Contraction => 2,
            super::analysis::Role::Attention => 3,
            _ => continue,
        };
        let to = operand_type(a.math(node));
        for (n, &operand) in node.inputs[..operands].iter().enumerate() {
            let Some(base) = base(a, plan, operand) else { continue };
            let Some(home) = plan.homes.get(&base) else { continue };
            let source = &plan.buffers[home.buffer as usize];
            let kernel = n == 1
                && matches!(node.op, Op::Conv(_))
                && base == operand
                && a.is_const[base.index()];
            let shape = &graph[base].shape;
            let windowed = kernel && shape[2..].iter().any(|d| !d.is(1));
            if (source.dtype == to && !windowed) || plan.converted.contains_key(&(base, to)) {
                continue;
            }
            let kind =
                if a.is_const[base.index()] { BufferKind::Prepared } else { BufferKind::Arena };
            let same_order = relative_order(&home.strides);
            let order = if kernel { order(shape.len(), true) } else { same_order };
            let buffer = PlanBuffer {
                name: graph[base].name.clone(),
                dtype: to,
                elements: shape.iter().product(),
                kind,
            };
            let strides = strides(shape, &order);
            let buffer = plan.add_buffer(buffer);
            plan.converted.insert((base, to), Home { buffer, offset: Dim::ZERO, strides });
            out.push(Conversion { value: base, to });
        }
    }
    Ok(out)
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
