//! Tensors from nothing: constants, ranges, masks, windows.

use super::super::builder::{Builder, Element, Most, OpResult, Tensor, unsupported, wrong};
use super::super::call::{Call, depends};
use super::super::known::{Content, Elem};
use super::super::tensor::Texts;
use super::table::{Entry, onnx};
use aot_ir::dim::{Cmp, Cond};
use aot_ir::op::{BinaryOp, UnaryOp};
use aot_ir::{Bytes, Constant, DType, Dim, Op};
use std::f64::consts::PI;

pub(super) const RULES: &[Entry] = &[
    onnx("Constant", constant),
    onnx("ConstantOfShape", constant_of_shape),
    onnx("Range", range),
    onnx("EyeLike", eye_like),
    onnx("Trilu", trilu),
    onnx("OneHot", one_hot),
    onnx("HannWindow", |c| window(c, &[0.5, 0.5])),
    onnx("HammingWindow", |c| window(c, &[25.0 / 46.0, 21.0 / 46.0])),
    onnx("BlackmanWindow", |c| window(c, &[0.42, 0.5, 0.08])),
];

/// The coordinate along an axis, over a shape.
pub(super) fn coordinates(b: &mut Builder, shape: &[Dim], axis: usize, dtype: DType) -> OpResult {
    match Content::make(shape, b.symbols(), |at, _| at.get(axis).cloned().map(Elem::Int)) {
        Some(content) => {
            let t = b.known(DType::I64, content);
            b.cast(t, dtype)
        }
        None => wrong(format!("axis {axis} is out of range")),
    }
}

fn constant(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    if let Some(texts) = c.stored_texts("value")? {
        return Ok(vec![c.text_constant(texts)?]);
    }
    if let Some(mut value) = c.tensor_attr("value")? {
        value.name.clear();
        return Ok(vec![c.constant(value)]);
    }
    let floats =
        |values: &[f32]| -> Vec<u8> { values.iter().flat_map(|v| v.to_le_bytes()).collect() };
    let ints =
        |values: &[i64]| -> Vec<u8> { values.iter().flat_map(|v| v.to_le_bytes()).collect() };
    let (dtype, shape, bytes) = if c.has("value_float") {
        (DType::F32, vec![], floats(&[c.float("value_float", 0.0) as f32]))
    } else if c.has("value_int") {
        (DType::I64, vec![], ints(&[c.int("value_int", 0)]))
    } else if let Some(list) = c.floats_attr("value_floats") {
        (DType::F32, vec![list.len()], floats(&list))
    } else if let Some(list) = c.ints_attr("value_ints") {
        (DType::I64, vec![list.len()], ints(&list))
    } else if let Some(sparse) = c
        .node
        .attribute
        .iter()
        .find(|a| a.name == "sparse_value")
        .and_then(|a| a.sparse_tensor.as_ref())
    {
        return match super::super::tensor::dense(sparse, c.files) {
            Ok(constant) => Ok(vec![c.constant(constant)]),
            Err(reason) => wrong(reason),
        };
    } else if c.has("value_string") {
        let elements = vec![c.text("value_string", "")];
        return Ok(vec![c.text_constant(Texts { elements, shape: Vec::new() })?]);
    } else if let Some(elements) = c.texts("value_strings") {
        let shape = vec![elements.len()];
        return Ok(vec![c.text_constant(Texts { elements, shape })?]);
    } else {
        return wrong("a Constant without value");
    };
    let bytes = Bytes::from(bytes);
    Ok(vec![c.constant(Constant { name: String::new(), dtype, shape, bytes })])
}

fn constant_of_shape(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let Some(shape) = c.output_sizes(0, "the shape of ConstantOfShape")? else {
        return wrong("the shape is missing");
    };
    let value = match c.tensor_attr("value")? {
        Some(mut value) => {
            value.name.clear();
            if value.shape.iter().product::<usize>() != 1 {
                return wrong("the value has to be one element");
            }
            value.shape.clear();
            c.constant(value)
        }
        None => c.scalar(0.0, DType::F32),
    };
    Ok(vec![c.expand(value, &shape)?])
}

fn range(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let bounds = [c.x(0)?, c.x(1)?, c.x(2)?];
    let dtype = c.dtype(bounds[0]);
    let known = |c: &mut Call<'_>, t: Tensor| match dtype.is_float() {
        true => c.numbers(t).is_some(),
        false => c.ints(t).is_some(),
    };
    let step = c.numbers(bounds[2]).is_some();
    if !step || !known(c, bounds[0]) || !known(c, bounds[1]) {
        return data_range(c, bounds, dtype);
    }
    if dtype.is_float() {
        let one = |c: &mut Call<'_>, n: usize| -> OpResult<Option<Vec<f64>>> {
            c.input_numbers(n, "the bounds of Range")
        };
        let bounds = (one(c, 0)?, one(c, 1)?, one(c, 2)?);
        let (Some(a), Some(b), Some(d)) = bounds else { return wrong("a bound is missing") };
        let ([start], [limit], [delta]) = (a.as_slice(), b.as_slice(), d.as_slice()) else {
            return wrong("the bounds have to be scalars");
        };
        let count = ((limit - start) / delta).ceil().max(0.0);
        if !count.is_finite() || count > f64::from(u32::MAX) {
            return wrong("a step of 0, or too many elements");
        }
        let at = coordinates(c, &[Dim::from(count as i64)], 0, DType::I64)?;
        let at = c.cast(at, dtype)?;
        let at = c.with(BinaryOp::Mul, at, *delta)?;
        return Ok(vec![c.with(BinaryOp::Add, at, *start)?]);
    }
    let mut bounds = Vec::new();
    for n in 0..3 {
        match c.input_dims(n, "a bound of Range")?.as_deref() {
            Some([one]) => bounds.push(one.clone()),
            _ => return wrong("the bounds have to be scalars"),
        }
    }
    let [start, limit, delta] = &bounds[..] else { return wrong("a bound is missing") };
    let Some(step) = delta.as_const() else { return depends("the step of Range") };
    let scope = c.scope();
    let count = match step {
        0 | i64::MIN => return wrong("the step of Range is 0 or too far"),
        1.. => scope.ceil_div(&(limit - start), delta),
        _ => scope.ceil_div(&(start - limit), &(-step).into()),
    };
    let count = scope.max(&count, &Dim::ZERO);
    let start = start.clone();
    let content =
        Content::make(&[count], c.symbols(), |at, _| Some(Elem::Int(&start + &at[0].scaled(step))));
    match content {
        Some(content) => {
            let t = c.known(DType::I64, content);
            Ok(vec![c.cast(t, dtype)?])
        }
        None => depends("a bound of Range"),
    }
}

/// A range of which data gives a bound or the step.
fn data_range(
    c: &mut Call<'_>,
    [start, limit, step]: [Tensor; 3],
    dtype: DType,
) -> OpResult<Vec<Tensor>> {
    let length = c.difference(limit, start)?;
    let (length, by) = (c.cast(length, DType::F64)?, c.cast(step, DType::F64)?);
    let count = c.quotient(length, by)?;
    let count = c.unary(UnaryOp::Ceil, count)?;
    let count = c.with(BinaryOp::Max, count, 0.0)?;
    let count = c.cast(count, DType::I64)?;
    let name = c.extent_name(&c.output(0), 0);
    let count = c.size(count, &name, 0, &Most::Unknown)?;
    let at = coordinates(c, &[count], 0, DType::I64)?;
    let at = c.cast(at, dtype)?;
    let at = c.product(at, step)?;
    Ok(vec![c.sum(at, start)?])
}

/// A known `Bool` tensor of a condition on coordinates.
fn mask(c: &mut Call<'_>, shape: &[Dim], f: impl Fn(&[Dim]) -> (Cmp, Dim, Dim)) -> OpResult {
    let content = Content::make(shape, c.symbols(), |at, scope| {
        let (cmp, a, b) = f(at);
        let cond: Cond = scope.cond(cmp, &a, &b);
        Some(Elem::Bool(cond))
    });
    match content {
        Some(content) => Ok(c.known(DType::Bool, content)),
        None => unsupported("the mask is too complicated"),
    }
}

fn eye_like(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let shape = c.shape(x).to_vec();
    if shape.len() != 2 {
        return wrong(format!("rank {}, expected 2", shape.len()));
    }
    let dtype = c.dtype_attr("dtype")?.unwrap_or(c.dtype(x));
    let k = c.int("k", 0);
    let here = mask(c, &shape, |at| (Cmp::Eq, at[1].clone(), &at[0] + k))?;
    Ok(vec![c.cast(here, dtype)?])
}

fn trilu(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let rank = c.rank(x);
    if rank < 2 {
        return wrong(format!("rank {rank}, expected at least 2"));
    }
    let upper = c.flag("upper", true);
    let shape = c.shape(x)[rank - 2..].to_vec();
    let k = match c.input_elements(1, "k of Trilu")?.as_deref() {
        None => Dim::ZERO,
        Some([Element::Known(k)]) => k.clone(),
        Some([k @ Element::Data(_)]) => {
            let k = c.element(k)?;
            let keep = data_triangle(c, &shape, k, upper)?;
            let zero = c.scalar_like(0.0, x);
            return Ok(vec![c.select(keep, x, zero)?]);
        }
        Some(_) => return wrong("k has to be a scalar"),
    };
    let keep = mask(c, &shape, |at| {
        let diagonal = &at[0] + &k;
        if upper { (Cmp::Le, diagonal, at[1].clone()) } else { (Cmp::Le, at[1].clone(), diagonal) }
    })?;
    let zero = c.scalar_like(0.0, x);
    Ok(vec![c.select(keep, x, zero)?])
}

/// The triangle from a diagonal on that data gives.
fn data_triangle(c: &mut Call<'_>, shape: &[Dim], k: Tensor, upper: bool) -> OpResult {
    let row = coordinates(c, &[shape[0].clone(), Dim::ONE], 0, DType::I64)?;
    let column = coordinates(c, &[Dim::ONE, shape[1].clone()], 1, DType::I64)?;
    let diagonal = c.sum(row, k)?;
    let order = if upper { BinaryOp::Le } else { BinaryOp::Ge };
    c.binary(order, diagonal, column)
}

/// Indices outside `-depth..depth` give a row of off-values.
fn one_hot(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (indices, values) = (c.x(0)?, c.x(2)?);
    let rank = c.rank(indices) + 1;
    let axis = c.axis_of(c.int("axis", -1), rank)?;
    let depth = {
        let t = c.x(1)?;
        let t = c.cast(t, DType::I64)?;
        match c.elements(t, "the depth of OneHot")?.as_slice() {
            [Element::Known(depth)] => depth.clone(),
            [Element::Data(t)] => {
                let name = c.extent_name(&c.output(0), axis);
                c.size(*t, &name, 0, &Most::Unknown)?
            }
            _ => return wrong("the depth has to be a scalar"),
        }
    };
    let indices = c.cast(indices, DType::I64)?;
    let negative = c.with(BinaryOp::Lt, indices, 0.0)?;
    let size = c.dims(std::slice::from_ref(&depth));
    let size = c.reshape(size, &[])?;
    let wrapped = c.sum(indices, size)?;
    let indices = c.select(negative, wrapped, indices)?;
    let indices = c.unsqueeze(indices, &[axis])?;
    let mut shape = vec![Dim::ONE; rank];
    shape[axis] = depth;
    let at = coordinates(c, &shape, axis, DType::I64)?;
    let here = c.binary(BinaryOp::Eq, at, indices)?;
    let off = c.pick(values, 0, Dim::ZERO)?;
    let on = c.pick(values, 0, Dim::ONE)?;
    Ok(vec![c.select(here, on, off)?])
}

/// `Σ ±a[k] cos(2πk n / N)`, signs alternating.
fn window(c: &mut Call<'_>, terms: &[f64]) -> OpResult<Vec<Tensor>> {
    let Some(size) = c.output_sizes(0, "the size of a window")? else {
        return wrong("the size is missing");
    };
    let [size] = size.as_slice() else { return wrong("the size has to be a scalar") };
    let dtype = c.dtype_attr("output_datatype")?.unwrap_or(DType::F32);
    let period = if c.flag("periodic", true) { size.clone() } else { size - 1 };
    let at = coordinates(c, std::slice::from_ref(size), 0, DType::I64)?;
    let at = c.op(Op::Cast(DType::F64), &[at])?;
    let period = c.dims(&[period]);
    let period = c.cast(period, DType::F64)?;
    let turn = c.quotient(at, period)?;
    let mut out = c.scalar(terms[0], DType::F64);
    for (k, &a) in terms.iter().enumerate().skip(1) {
        let wave = c.with(BinaryOp::Mul, turn, 2.0 * PI * k as f64)?;
        let wave = c.unary(UnaryOp::Cos, wave)?;
        let wave = c.with(BinaryOp::Mul, wave, if k % 2 == 1 { -a } else { a })?;
        out = c.sum(out, wave)?;
    }
    Ok(vec![c.cast(out, dtype)?])
}
