//! State that runs append to: row-major tensors to and from its place.

use super::super::plan::{Appended, Home, Plan};
use super::{InterpretError, Memory};
use aot_ir::{Dim, ValueId};

type Result<T> = std::result::Result<T, InterpretError>;

/// Puts an input where it lies.
pub(super) fn put(
    plan: &Plan<'_>,
    memory: &mut Memory,
    atoms: &[i64],
    appended: &Appended,
    inputs: &[&[u8]],
) -> Result<()> {
    let input = appended.state.input as usize;
    let value = plan.graph.inputs[input];
    let tensor = inputs.get(input).copied().unwrap_or_default().to_vec();
    let tensor = Memory::of_buffers(vec![(plan.graph[value].dtype, tensor)]);
    let home = &plan.homes[&value];
    let places = places(plan, value, home, atoms)?;
    let elements = plan.buffers[home.buffer as usize].elements.eval(atoms)?;
    let malformed =
        || InterpretError::Malformed(plan.graph[value].name.clone(), "it has another size");
    for (n, place) in places.into_iter().enumerate() {
        let element = tensor.read(0, n as i64).ok_or_else(malformed)?;
        memory.write(home.buffer, elements, place, element).ok_or_else(malformed)?;
    }
    Ok(())
}

/// An output, row-major.
pub(super) fn take(
    plan: &Plan<'_>,
    memory: &Memory,
    atoms: &[i64],
    appended: &Appended,
) -> Result<Vec<u8>> {
    let value = plan.graph.outputs[appended.state.output as usize].1;
    let (dtype, home) = (plan.graph[value].dtype, &plan.homes[&value]);
    let places = places(plan, value, home, atoms)?;
    let count = places.len() as i64;
    let bytes = dtype.bytes_for(count as u64).unwrap_or(0) as usize;
    let mut tensor = Memory::of_buffers(vec![(dtype, vec![0; bytes])]);
    let malformed =
        || InterpretError::Malformed(plan.graph[value].name.clone(), "it has another size");
    for (n, place) in places.into_iter().enumerate() {
        let element = memory.read(home.buffer, place).ok_or_else(malformed)?;
        tensor.write(0, count, n as i64, element).ok_or_else(malformed)?;
    }
    Ok(tensor.bytes(0).to_vec())
}

/// Where the elements of a value lie, in row-major order.
fn places(plan: &Plan<'_>, value: ValueId, home: &Home, atoms: &[i64]) -> Result<Vec<i64>> {
    let mut places = vec![home.offset.eval(atoms)?];
    let extents: &[Dim] = &plan.graph[value].shape;
    for (extent, stride) in extents.iter().zip(&home.strides) {
        let (extent, stride) = (extent.eval(atoms)?, stride.eval(atoms)?);
        let along = |place: &i64| (0..extent).map(move |i| place + i * stride).collect::<Vec<_>>();
        places = places.iter().flat_map(along).collect();
    }
    Ok(places)
}
