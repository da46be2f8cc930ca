//! Elements by index.

use super::super::builder::{OpResult, Tensor, unsupported, wrong};
use super::super::call::{Call, depends};
use super::super::known::{Content, Elem};
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
        Ok(vec![c.op(Op::ScatterNd { reduction }, &[data, indices, updates])?])
    }),
    onnx("TensorScatter", tensor_scatter),
    onnx("ReverseSequence", reverse_sequence),
    onnx("Compress", compress),
    onnx("NonZero", non_zero),
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

fn compress(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (mut x, condition) = (c.x(0)?, c.x(1)?);
    let Some(keep) = c.numbers(condition) else { return depends("the condition of Compress") };
    let axis = match c.int_opt("axis") {
        Some(axis) => c.axis_of(axis, c.rank(x))?,
        None => {
            let flat = super::shape::product(c.shape(x));
            x = c.reshape(x, &[flat])?;
            0
        }
    };
    let kept = keep.iter().enumerate().filter(|(_, k)| **k != 0.0);
    let indices: Vec<Dim> = kept.map(|(i, _)| Dim::from(i as i64)).collect();
    let indices = c.dims(&indices);
    Ok(vec![c.gather(x, indices, axis)?])
}

/// Where all elements are known: their coordinates, one row per axis.
fn non_zero(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let shape = c.shape(x).to_vec();
    let rank = shape.len() as i64;
    let Some(content) = c.content(x) else { return depends("the number of results of NonZero") };
    if let Some(value) = content.uniform().and_then(Elem::as_const) {
        // All or none: as many results as elements, or none.
        let count = if value == 0.0 { Dim::ZERO } else { super::shape::product(&shape) };
        let found = Content::make(&[rank.into(), count], c.symbols(), |at, scope| {
            let axis = usize::try_from(at[0].as_const()?).ok()?;
            let mut flat = at[1].clone();
            let mut here = Dim::ZERO;
            for extent in shape[axis..].iter().rev() {
                here = scope.modulo(&flat, extent);
                flat = scope.floor_div(&flat, extent);
            }
            Some(Elem::Int(here))
        });
        if rank == 1 && found.is_none() {
            return match Content::make(
                &[Dim::ONE, super::shape::product(&shape)],
                c.symbols(),
                |at, _| Some(Elem::Int(at[1].clone())),
            ) {
                Some(content) => Ok(vec![c.known(DType::I64, content)]),
                None => depends("the number of results of NonZero"),
            };
        }
        return match found {
            Some(content) => Ok(vec![c.known(DType::I64, content)]),
            None => unsupported("the places that NonZero finds are too complicated"),
        };
    }
    let values = c.numbers(x);
    let (Some(values), Some(extents)) =
        (values, shape.iter().map(Dim::as_const).collect::<Option<Vec<_>>>())
    else {
        return depends("the number of results of NonZero");
    };
    let places: Vec<i64> =
        (0..values.len()).filter(|&i| values[i] != 0.0).map(|i| i as i64).collect();
    let mut rows = Vec::new();
    for axis in 0..extents.len() {
        let stride: i64 = extents[axis + 1..].iter().product();
        rows.extend(places.iter().map(|p| Dim::from(p / stride % extents[axis])));
    }
    let rows = c.dims(&rows);
    Ok(vec![c.reshape(rows, &[rank.into(), Dim::from(places.len() as i64)])?])
}
