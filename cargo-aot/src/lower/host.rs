//! What the host does: tensors go in and out in buffers of their own, row-major, which are copied as they are.

use super::LowerError;
use super::analysis::Analysis;
use super::builder::{Made, Work};
use super::groups::copy_group;
use super::plan::{BufferKind, Home, Plan, strides};
use aot_ir::op::HostOp;
use aot_ir::{Dim, Graph, NodeId, ValueId};
use aot_kernels::group::{Anchor, Group, OnHost, Operand, OperandId};
use std::collections::BTreeSet;

/// Gives the result of a node of the host its home.
pub(super) fn assign(a: &Analysis<'_>, plan: &mut Plan<'_>, id: NodeId) {
    let result = a.graph[id].outputs[0];
    let home = own_home(plan, a.graph, result);
    plan.homes.insert(result, home);
}

/// A buffer in the arena for a value.
fn own_home(plan: &mut Plan<'_>, graph: &Graph, value: ValueId) -> Home {
    let v = &graph[value];
    let order: Vec<usize> = (0..v.shape.len()).collect();
    plan.add_home((&v.name, v.dtype, BufferKind::Arena), &v.shape, &order, None)
}

/// The group of a node of the host, and those that bring operands to buffers of their own which have none.
pub(super) fn make(
    a: &Analysis<'_>,
    plan: &mut Plan<'_>,
    id: NodeId,
    op: &HostOp,
    groups: &mut Vec<Made>,
) -> Result<(), LowerError> {
    let node = &a.graph[id];
    let result = (node.outputs[0], None);
    let mut reads = BTreeSet::new();
    let mut buffers = Vec::new();
    for &input in &node.inputs {
        match plan.homes.get(&input).filter(|home| is_whole(plan, input, home)) {
            Some(home) => {
                buffers.push(home.buffer);
                reads.insert((input, None));
            }
            None => {
                let home = own_home(plan, a.graph, input);
                groups.push(copy_group(plan, input, &home, result)?);
                buffers.push(home.buffer);
                // Copies write what this group is said to read.
                reads.insert(result);
            }
        }
    }
    buffers.push(plan.homes[&node.outputs[0]].buffer);
    let mut operands: Vec<Operand> = Vec::new();
    let mut operand = |buffer: u32| {
        let known = operands.iter().position(|o| o.buffer == buffer);
        OperandId(known.unwrap_or_else(|| {
            let of = &plan.buffers[buffer as usize];
            operands.push(of.operand(buffer));
            operands.len() - 1
        }) as u32)
    };
    let mut ids: Vec<OperandId> = buffers.into_iter().map(&mut operand).collect();
    let Some(to) = ids.pop() else {
        return Err(LowerError::internal(&node.name, "it has no result"));
    };
    let group = Group {
        label: node.name.clone(),
        origin: vec![node.name.clone()],
        extents: Vec::new(),
        exprs: Vec::new(),
        operands,
        anchor: Anchor::Host(OnHost { op: op.clone(), operands: ids, result: to }),
        stores: Vec::new(),
    };
    groups.push(Made { work: Work::Group(Box::new(group)), reads, writes: vec![result] });
    Ok(())
}

/// Whether a value is all that its buffer holds, as it is, row-major.
fn is_whole(plan: &Plan<'_>, value: ValueId, home: &Home) -> bool {
    let v = &plan.graph[value];
    let buffer = &plan.buffers[home.buffer as usize];
    let order: Vec<usize> = (0..v.shape.len()).collect();
    let elements: Dim = v.shape.iter().product();
    buffer.dtype == v.dtype
        && buffer.elements == elements
        && home.offset.is(0)
        && home.padding.is_none()
        && home.strides == strides(&v.shape, &order)
}
