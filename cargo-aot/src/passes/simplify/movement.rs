//! Rules for movement of elements.

use super::super::matching::{node, same_shape, scalar};
use super::super::rewriter::Candidate;
use aot_ir::dim::{Cmp, Scope};
use aot_ir::{Dim, Graph, GraphError, Op, Scalar, ValueId};
use std::ops::Range;

type Result = std::result::Result<Option<ValueId>, GraphError>;

pub(super) fn transpose(g: &mut Graph, perm: &[usize], c: Candidate<'_>) -> Result {
    let [x] = *c.inputs else { return Ok(None) };
    if perm.iter().enumerate().all(|(i, &axis)| i == axis) {
        return Ok(Some(x));
    }
    if let Some(inner) = node(g, x)
        && let Op::Transpose { perm: first } = &inner.op
    {
        let operand = inner.inputs[0];
        let both: Vec<usize> = perm.iter().map(|&axis| first[axis]).collect();
        if both.iter().enumerate().all(|(i, &axis)| i == axis) {
            return Ok(Some(operand));
        }
        return g.add1(Op::Transpose { perm: both }, &[operand], c.name).map(Some);
    }
    // Elements stay in order when only extents of 1 move.
    let moved: Vec<usize> = perm.iter().copied().filter(|&axis| !g[x].shape[axis].is(1)).collect();
    if moved.windows(2).all(|w| w[0] < w[1]) {
        let shape = perm.iter().map(|&axis| g[x].shape[axis].clone()).collect();
        return g.add1(Op::Reshape { shape }, &[x], c.name).map(Some);
    }
    Ok(None)
}

pub(super) fn reshape(g: &mut Graph, shape: &[Dim], c: Candidate<'_>) -> Result {
    let [x] = *c.inputs else { return Ok(None) };
    if same_shape(g, shape, &g[x].shape) {
        return Ok(Some(x));
    }
    let Some(inner) = node(g, x) else { return Ok(None) };
    match (inner.op.clone(), inner.inputs.first().copied()) {
        (Op::Reshape { .. }, Some(operand)) => {
            g.add1(Op::Reshape { shape: shape.to_vec() }, &[operand], c.name).map(Some)
        }
        (Op::Transpose { perm }, Some(operand)) => reshape_first(g, shape, operand, &perm, c),
        _ => Ok(None),
    }
}

/// A reshape of a transposed reshape that keeps the axes apart which were transposed: one reshape, then the transpose.
fn reshape_first(
    g: &mut Graph,
    shape: &[Dim],
    x: ValueId,
    perm: &[usize],
    c: Candidate<'_>,
) -> Result {
    let Some(inner) = node(g, x).filter(|n| matches!(n.op, Op::Reshape { .. })) else {
        return Ok(None);
    };
    let operand = inner.inputs[0];
    let before: Vec<Dim> = perm.iter().map(|&axis| g[x].shape[axis].clone()).collect();
    let Some(runs) = runs(g, shape, &before) else { return Ok(None) };
    // In the order that the axes have before they are transposed.
    let mut order: Vec<usize> = (0..perm.len()).collect();
    order.sort_by_key(|&i| perm[i]);
    let mut places = vec![0; shape.len()];
    let mut untransposed = Vec::with_capacity(shape.len());
    for i in order {
        for axis in runs[i].clone() {
            places[axis] = untransposed.len();
            untransposed.push(shape[axis].clone());
        }
    }
    let first = g.add1(Op::Reshape { shape: untransposed }, &[operand], c.name)?;
    g.add1(Op::Transpose { perm: places }, &[first], c.name).map(Some)
}

/// For each extent the axes of a shape, one after the other, that come to it.
fn runs(g: &Graph, shape: &[Dim], extents: &[Dim]) -> Option<Vec<Range<usize>>> {
    let mut runs = Vec::with_capacity(extents.len());
    let mut next = 0;
    for extent in extents {
        let start = next;
        let mut product = Dim::ONE;
        while !same_shape(g, std::slice::from_ref(&product), std::slice::from_ref(extent)) {
            product = product * shape.get(next)?.clone();
            next += 1;
        }
        runs.push(start..next);
    }
    // What is left are extents of 1.
    let rest = shape[next..].iter().all(|d| d.is(1));
    runs.last_mut().filter(|_| rest)?.end = shape.len();
    Some(runs)
}

pub(super) fn expand(g: &mut Graph, shape: &[Dim], c: Candidate<'_>) -> Result {
    let [x] = *c.inputs else { return Ok(None) };
    if same_shape(g, shape, &g[x].shape) {
        return Ok(Some(x));
    }
    let Some(producer) = node(g, x) else { return Ok(None) };
    match &producer.op {
        Op::Expand { .. } => {
            let operand = producer.inputs[0];
            g.add1(Op::Expand { shape: shape.to_vec() }, &[operand], c.name).map(Some)
        }
        Op::Fill { value, dtype, .. } => {
            let op = Op::Fill { shape: shape.to_vec(), value: *value, dtype: *dtype };
            g.add1(op, &[], c.name).map(Some)
        }
        _ => Ok(None),
    }
}

pub(super) fn slice(
    g: &mut Graph,
    starts: &[Dim],
    sizes: &[Dim],
    steps: &[i64],
    c: Candidate<'_>,
) -> Result {
    let [x] = *c.inputs else { return Ok(None) };
    let whole = starts.iter().all(|s| s.is(0)) && steps.iter().all(|&s| s == 1);
    if whole && same_shape(g, sizes, &g[x].shape) {
        return Ok(Some(x));
    }
    let Some(inner) = node(g, x) else { return Ok(None) };
    let operand = inner.inputs.first().copied();
    match (inner.op.clone(), operand) {
        (Op::Slice { starts: first, steps: before, .. }, Some(operand)) => {
            let mut all_starts = Vec::with_capacity(starts.len());
            let mut all_steps = Vec::with_capacity(starts.len());
            for axis in 0..starts.len() {
                let Some(step) = steps[axis].checked_mul(before[axis]) else { return Ok(None) };
                all_starts.push(&first[axis] + starts[axis].scaled(before[axis]));
                all_steps.push(step);
            }
            let op = Op::Slice { starts: all_starts, sizes: sizes.to_vec(), steps: all_steps };
            // Bounds that are no longer provable would add guards.
            let fits = op
                .infer(&[&g[operand]], &g.symbols)
                .is_ok_and(|inferred| inferred.guards.is_empty());
            if fits { g.add1(op, &[operand], c.name).map(Some) } else { Ok(None) }
        }
        (Op::Concat { axis }, _) => {
            let parts = inner.inputs.clone();
            slice_of_concat(g, (starts, sizes, steps), axis, &parts, c)
        }
        _ => Ok(None),
    }
}

/// A slice that lies in one part of a concatenation is a slice of that part.
fn slice_of_concat(
    g: &mut Graph,
    (starts, sizes, steps): (&[Dim], &[Dim], &[i64]),
    axis: usize,
    parts: &[ValueId],
    c: Candidate<'_>,
) -> Result {
    if steps[axis] != 1 {
        return Ok(None);
    }
    let mut offset = Dim::ZERO;
    for &part in parts {
        let scope = Scope::new(&g.symbols);
        let start = &starts[axis] - &offset;
        let extent = g[part].shape[axis].clone();
        let le = |a: &Dim, b: &Dim| scope.decide(Cmp::Le, a, b) == Some(true);
        if le(&Dim::ZERO, &start) && le(&(&start + &sizes[axis]), &extent) {
            let mut starts = starts.to_vec();
            starts[axis] = start;
            let op = Op::Slice { starts, sizes: sizes.to_vec(), steps: steps.to_vec() };
            let fits =
                op.infer(&[&g[part]], &g.symbols).is_ok_and(|inferred| inferred.guards.is_empty());
            return if fits { g.add1(op, &[part], c.name).map(Some) } else { Ok(None) };
        }
        offset = offset + extent;
    }
    Ok(None)
}

pub(super) fn pad(low: &[Dim], high: &[Dim], c: Candidate<'_>) -> Result {
    let [x] = *c.inputs else { return Ok(None) };
    let none = low.iter().chain(high).all(|d| d.is(0));
    Ok(none.then_some(x))
}

pub(super) fn concat(g: &mut Graph, axis: usize, c: Candidate<'_>) -> Result {
    if let [only] = c.inputs {
        return Ok(Some(*only));
    }
    // Parts without elements, and concatenations along the same axis, dissolve.
    let mut parts = Vec::with_capacity(c.inputs.len());
    for &part in c.inputs {
        match node(g, part) {
            Some(n) if n.op == (Op::Concat { axis }) => parts.extend(n.inputs.iter().copied()),
            _ if g[part].shape[axis].is(0) => {}
            _ => parts.push(part),
        }
    }
    if parts.is_empty() || parts == c.inputs {
        return Ok(None);
    }
    if let [only] = parts.as_slice() {
        return Ok(Some(*only));
    }
    g.add1(Op::Concat { axis }, &parts, c.name).map(Some)
}

/// One constant index is a slice.
pub(super) fn gather(g: &mut Graph, axis: usize, c: Candidate<'_>) -> Result {
    let [data, indices] = *c.inputs else { return Ok(None) };
    let single = g[indices].shape.iter().all(|d| d.is(1));
    let Some(Scalar::Int(index)) = scalar(g, indices).filter(|_| single) else { return Ok(None) };
    let shape = g[data].shape.clone();
    let start = if index < 0 { &shape[axis] + index } else { Dim::from(index) };
    let mut starts = vec![Dim::ZERO; shape.len()];
    let mut sizes = shape.clone();
    starts[axis] = start;
    sizes[axis] = Dim::ONE;
    let slice = Op::Slice { starts, sizes, steps: vec![1; shape.len()] };
    let fits =
        slice.infer(&[&g[data]], &g.symbols).is_ok_and(|inferred| inferred.guards.is_empty());
    if !fits {
        return Ok(None);
    }
    let element = g.add1(slice, &[data], c.name)?;
    let mut result = shape[..axis].to_vec();
    result.extend(g[indices].shape.iter().cloned());
    result.extend_from_slice(&shape[axis + 1..]);
    g.add1(Op::Reshape { shape: result }, &[element], c.name).map(Some)
}
