//! Elements by index.

use super::super::builder::{OpResult, Tensor, wrong};
use super::super::call::Call;
use super::table::{Entry, onnx};
use aot_ir::op::{BinaryOp, ScatterReduction};
use aot_ir::{DType, Dim, Op};

pub(super) const RULES: &[Entry] = &[
    onnx("Gather", |c| {
        let (data, indices) = (c.x(0)?, c.x(1)?);
        let axis = c.axis(data, 0)?;
        Ok(vec![c.gather(data, indices, axis)?])
    }),
    onnx("GatherElements", |c| {
        let (data, indices) = (c.x(0)?, c.x(1)?);
        let axis = c.axis(data, 0)?;
        Ok(vec![c.gather_elements(data, indices, axis)?])
    }),
    onnx("GatherND", |c| {
        let (data, indices) = (c.x(0)?, c.x(1)?);
        let Ok(batch_dims) = usize::try_from(c.int("batch_dims", 0)) else {
            return wrong("batch_dims is negative");
        };
        Ok(vec![c.gather_nd(data, indices, batch_dims)?])
    }),
    onnx("Scatter", scatter_elements),
    onnx("ScatterElements", scatter_elements),
    onnx("ScatterND", |c| {
        let (data, indices, updates) = (c.x(0)?, c.x(1)?, c.x(2)?);
        let reduction = reduction(c)?;
        if let Some(known) = c.scatter_known(data, indices, updates, reduction) {
            return Ok(vec![known]);
        }
        Ok(vec![c.op(Op::ScatterNd { reduction }, &[data, indices, updates])?])
    }),
    onnx("TensorScatter", tensor_scatter),
    onnx("ReverseSequence", reverse_sequence),
];

fn reduction(c: &Call<'_>) -> OpResult<ScatterReduction> {
    Ok(match c.text("reduction", "none").as_str() {
        "none" => ScatterReduction::None,
        "add" => ScatterReduction::Add,
        "mul" => ScatterReduction::Mul,
        "max" => ScatterReduction::Max,
        "min" => ScatterReduction::Min,
        other => return wrong(format!("reduction is `{other}`")),
    })
}

fn scatter_elements(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (data, indices, updates) = (c.x(0)?, c.x(1)?, c.x(2)?);
    let axis = c.axis(data, 0)?;
    let reduction = reduction(c)?;
    if let Some(known) = c.scatter_known(data, indices, updates, reduction) {
        return Ok(vec![known]);
    }
    Ok(vec![c.op(Op::ScatterElements { axis, reduction }, &[data, indices, updates])?])
}

/// A cache updated from a position per batch on.
fn tensor_scatter(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (cache, update) = (c.x(0)?, c.x(1)?);
    let rank = c.rank(cache);
    let axis = c.axis_of(c.int("axis", -2), rank)?;
    let circular = c.text("mode", "linear") == "circular";
    let shape = c.shape(update).to_vec();
    if shape.len() != rank || axis == 0 {
        return wrong("cache and update have to have one rank, and the axis can't be the batch");
    }
    let mut places = shape.clone();
    let mut at = super::generate::coordinates(c, &shape, axis, DType::I64)?;
    if let Some(start) = c.opt(2) {
        let start = c.cast(start, DType::I64)?;
        places.iter_mut().skip(1).for_each(|d| *d = Dim::ONE);
        let start = c.reshape(start, &places)?;
        at = c.sum(at, start)?;
    }
    if circular {
        let extent = c.shape(cache)[axis].clone();
        let extent = c.dims(&[extent]);
        at = c.binary(BinaryOp::Mod, at, extent)?;
    }
    let at = c.expand(at, &shape)?;
    let reduction = ScatterReduction::None;
    Ok(vec![c.op(Op::ScatterElements { axis, reduction }, &[cache, at, update])?])
}

/// The first `lengths[b]` elements of every sequence in reverse order.
fn reverse_sequence(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (x, lengths) = (c.x(0)?, c.x(1)?);
    let rank = c.rank(x);
    let time = c.axis_of(c.int("time_axis", 0), rank)?;
    let batch = c.axis_of(c.int("batch_axis", 1), rank)?;
    let shape = c.shape(x).to_vec();
    let mut per_batch = vec![Dim::ONE; rank];
    per_batch[batch] = shape[batch].clone();
    let lengths = c.cast(lengths, DType::I64)?;
    let lengths = c.reshape(lengths, &per_batch)?;
    let at = super::generate::coordinates(c, &shape, time, DType::I64)?;
    let last = c.with(BinaryOp::Sub, lengths, 1.0)?;
    let mirrored = c.difference(last, at)?;
    let reversed = c.binary(BinaryOp::Lt, at, lengths)?;
    let from = c.select(reversed, mirrored, at)?;
    Ok(vec![c.gather_elements(x, from, time)?])
}
