//! State that runs append to.
//!
//! Where an output is `concat(past, new, …)` and `past` the input that it is in the next run, both lie in one buffer:
//! row-major with the greatest extent that the result can have along the axis. What is new is stored behind the past, and
//! nothing of the past is copied. Every reader sees the buffer's strides.

use super::analysis::Analysis;
use super::plan::{Appended, BufferKind, Home, Plan, PlanBuffer, strides};
use aot_ir::{DType, Def, Dim, Op, State, ValueId};

/// Gives the inputs and outputs of state that is appended to their homes.
pub(super) fn assign(a: &Analysis<'_>, plan: &mut Plan<'_>) {
    for state in &a.graph.state {
        let Some((past, present, axis)) = concatenation(a, *state) else { continue };
        let graph = a.graph;
        let v = &graph[present];
        let capacity = a.scope().interval(&v.shape[axis]).hi;
        if !(1..=i64::from(i32::MAX)).contains(&capacity) {
            continue;
        }
        let mut extents = v.shape.clone();
        extents[axis] = capacity.into();
        let elements: Dim = extents.iter().product();
        let order: Vec<usize> = (0..extents.len()).collect();
        let dtype = stored_as(a, past, present);
        let kind = BufferKind::State(plan.appended.len() as u32);
        let name = graph[past].name.clone();
        let buffer = plan.add_buffer(PlanBuffer { name, dtype, elements, kind });
        let strides = strides(&extents, &order);
        let home = Home { buffer, offset: Dim::ZERO, strides, padding: None };
        plan.homes.insert(past, home.clone());
        plan.homes.insert(present, home);
        plan.appended.push(Appended { state: *state, axis, capacity });
    }
}

/// The input, the output, and the axis along which the one is followed by something to be the other.
fn concatenation(a: &Analysis<'_>, state: State) -> Option<(ValueId, ValueId, usize)> {
    let graph = a.graph;
    let past = *graph.inputs.get(state.input as usize)?;
    let present = graph.outputs.get(state.output as usize)?.1;
    let Def::Node(node, _) = graph[present].def else { return None };
    let Op::Concat { axis } = graph[node].op else { return None };
    let (first, rest) = graph[node].inputs.split_first()?;
    let names = |value| graph.outputs.iter().filter(|(_, v)| *v == value).count();
    let sized = |v: &ValueId| graph[*v].shape.iter().any(|d| graph.symbols.mentions_run(d));
    let fits = *first == past
        && !rest.contains(&past)
        && (names(past), names(present)) == (0, 1)
        && !rest.iter().any(sized)
        && graph[present].dtype.bits() >= 8;
    fits.then_some((past, present, axis))
}

/// The type of the buffer's elements: narrower than the value's where matrix products are all that read them, and take
/// them so.
fn stored_as(a: &Analysis<'_>, past: ValueId, present: ValueId) -> DType {
    let own = a.graph[present].dtype;
    let alone = a.uses[past.index()].len() == 1;
    match a.read_as(present) {
        Some(narrow) if alone && own == DType::F32 && narrow.is_float() => narrow,
        _ => own,
    }
}
