//! Elements that data chooses: as many as there turn out to be.

use super::super::builder::{Most, OpResult, Tensor, unsupported, wrong};
use super::super::call::Call;
use super::super::known::{Content, Elem};
use super::generate::coordinates;
use super::reduction::MAX_RANKED;
use super::shape::product;
use super::table::{Entry, onnx};
use aot_ir::op::{BinaryOp, ReduceOp, ScanOp, ScatterReduction, UnaryOp};
use aot_ir::{DType, Dim, Op};

pub(super) const RULES: &[Entry] =
    &[onnx("Compress", compress), onnx("NonZero", non_zero), onnx("Unique", unique)];

/// Positions of the elements of a flat `Bool` that hold, ascending: `[count]`, where `name` is the count's.
pub(super) fn places(c: &mut Call<'_>, flags: Tensor, name: &str) -> OpResult {
    let n = c.shape(flags)[0].clone();
    if n.is(0) {
        return Ok(c.dims(&[]));
    }
    let ones = c.cast(flags, DType::I64)?;
    let scan = Op::Scan { op: ScanOp::Sum, axis: 0, exclusive: false, reverse: false };
    let running = c.op(scan, &[ones])?;
    let total = c.reduce(ReduceOp::Sum, ones, &[0], false)?;
    let count = c.size(total, name, 0, &Most::Proved(n.clone()))?;
    let place = c.with(BinaryOp::Sub, running, 1.0)?;
    let at = coordinates(c, std::slice::from_ref(&n), 0, DType::I64)?;
    at_places(c, flags, place, at, &n, count)
}

/// `out[place[i]] = x[i]` where `flags[i]` holds; all are `[n]`, the result is `[count]`.
fn at_places(
    c: &mut Call<'_>,
    flags: Tensor,
    place: Tensor,
    x: Tensor,
    n: &Dim,
    count: Dim,
) -> OpResult {
    // What does not hold goes to one place behind all others.
    let last = c.dims(std::slice::from_ref(n));
    let place = c.select(flags, place, last)?;
    let blank = c.scalar(0.0, DType::I64);
    let blank = c.expand(blank, &[n + 1])?;
    let scatter = Op::ScatterElements { axis: 0, reduction: ScatterReduction::None };
    let all = c.op(scatter, &[blank, place, x])?;
    c.slice_axis(all, 0, Dim::ZERO, count, 1)
}

fn compress(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (mut x, condition) = (c.x(0)?, c.x(1)?);
    let axis = match c.int_opt("axis") {
        Some(axis) => c.axis_of(axis, c.rank(x))?,
        None => {
            let flat = product(c.shape(x));
            x = c.reshape(x, &[flat])?;
            0
        }
    };
    if c.rank(condition) != 1 {
        return wrong("the condition has to be a vector");
    }
    let indices = match c.numbers(condition) {
        Some(keep) => {
            let kept = keep.iter().enumerate().filter(|(_, k)| **k != 0.0);
            let indices: Vec<Dim> = kept.map(|(i, _)| Dim::from(i as i64)).collect();
            c.dims(&indices)
        }
        None => {
            let length = c.scope().min(&c.shape(condition)[0], &c.shape(x)[axis]);
            let flags = c.slice_axis(condition, 0, Dim::ZERO, length, 1)?;
            let flags = c.cast(flags, DType::Bool)?;
            let name = c.extent_name(&c.output(0), axis);
            places(c, flags, &name)?
        }
    };
    Ok(vec![c.gather(x, indices, axis)?])
}

/// Coordinates of the elements that are not zero, one row per axis.
fn non_zero(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    if let Some(found) = known_non_zero(c, x) {
        return Ok(vec![found]);
    }
    let mut shape = c.shape(x).to_vec();
    if shape.is_empty() {
        shape.push(Dim::ONE);
    }
    let flat = c.reshape(x, &[product(&shape)])?;
    let flags = c.cast(flat, DType::Bool)?;
    let name = c.extent_name(&c.output(0), 1);
    let at = places(c, flags, &name)?;
    let at = c.unsqueeze(at, &[0])?;
    if shape.len() == 1 {
        return Ok(vec![at]);
    }
    let strides: Vec<Dim> = (1..=shape.len()).map(|axis| product(&shape[axis..])).collect();
    let (strides, extents) = (c.dims(&strides), c.dims(&shape));
    let (strides, extents) = (c.unsqueeze(strides, &[1])?, c.unsqueeze(extents, &[1])?);
    let at = c.quotient(at, strides)?;
    Ok(vec![c.binary(BinaryOp::Mod, at, extents)?])
}

/// Where all elements are known: their coordinates.
fn known_non_zero(c: &mut Call<'_>, x: Tensor) -> Option<Tensor> {
    let shape = c.shape(x).to_vec();
    let rank = shape.len() as i64;
    let content = c.content(x)?;
    if let Some(value) = content.uniform().and_then(Elem::as_const) {
        // All or none: as many results as elements, or none.
        let count = if value == 0.0 { Dim::ZERO } else { product(&shape) };
        let found = Content::make(&[rank.into(), count], c.symbols(), |at, scope| {
            let mut flat = at[1].clone();
            if rank == 1 {
                return Some(Elem::Int(flat));
            }
            let axis = usize::try_from(at[0].as_const()?).ok()?;
            let mut here = Dim::ZERO;
            for extent in shape[axis..].iter().rev() {
                here = scope.modulo(&flat, extent);
                flat = scope.floor_div(&flat, extent);
            }
            Some(Elem::Int(here))
        })?;
        return Some(c.known(DType::I64, found));
    }
    let values = c.numbers(x)?;
    let extents = shape.iter().map(Dim::as_const).collect::<Option<Vec<_>>>()?;
    let places: Vec<i64> =
        (0..values.len()).filter(|&i| values[i] != 0.0).map(|i| i as i64).collect();
    let mut rows = Vec::new();
    for axis in 0..extents.len() {
        let stride: i64 = extents[axis + 1..].iter().product();
        rows.extend(places.iter().map(|p| Dim::from(p / stride % extents[axis])));
    }
    let rows = c.dims(&rows);
    c.reshape(rows, &[rank.into(), Dim::from(places.len() as i64)]).ok()
}

/// Whether `a == b`, element by element; NaN is like NaN.
fn same(c: &mut Call<'_>, a: Tensor, b: Tensor) -> OpResult {
    let equal = c.binary(BinaryOp::Eq, a, b)?;
    if !c.dtype(a).is_float() {
        return Ok(equal);
    }
    let (a, b) = (c.unary(UnaryOp::IsNan, a)?, c.unary(UnaryOp::IsNan, b)?);
    let both = c.binary(BinaryOp::And, a, b)?;
    c.binary(BinaryOp::Or, equal, both)
}

/// Whether `a < b`, element by element; NaN comes last.
fn less(c: &mut Call<'_>, a: Tensor, b: Tensor) -> OpResult {
    let less = c.binary(BinaryOp::Lt, a, b)?;
    if !c.dtype(a).is_float() {
        return Ok(less);
    }
    let (a, b) = (c.unary(UnaryOp::IsNan, a)?, c.unary(UnaryOp::IsNan, b)?);
    let number = c.unary(UnaryOp::Not, a)?;
    let last = c.binary(BinaryOp::And, number, b)?;
    c.binary(BinaryOp::Or, less, last)
}

/// Every item is compared with every other one.
fn unique(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let mut x = c.x(0)?;
    let axis = match c.int_opt("axis") {
        Some(axis) => c.axis_of(axis, c.rank(x))?,
        None => {
            let flat = product(c.shape(x));
            x = c.reshape(x, &[flat])?;
            0
        }
    };
    // Items along the axis, [n, m].
    let mut perm: Vec<usize> = (0..c.rank(x)).collect();
    perm[..=axis].rotate_right(1);
    let items = c.transpose(x, &perm)?;
    let n = c.shape(items)[0].clone();
    let m = product(&c.shape(items)[1..]);
    let items = c.reshape(items, &[n.clone(), m.clone()])?;
    if c.scope().interval(&n).hi > MAX_RANKED {
        return unsupported(format!(
            "Unique over more than {MAX_RANKED} items is not supported yet"
        ));
    }
    // Item i is along axis 0, item j along axis 1.
    let (i, j) = (c.unsqueeze(items, &[1])?, c.unsqueeze(items, &[0])?);
    let alike = same(c, j, i)?;
    let equal = c.reduce(ReduceOp::Min, alike, &[2], false)?;
    let equal = c.cast(equal, DType::I64)?;
    let first = Op::ArgReduce { max: true, axis: 1, keep_dims: false, last: false };
    let first = c.op(first, &[equal])?;
    let own = coordinates(c, std::slice::from_ref(&n), 0, DType::I64)?;
    let is_first = c.binary(BinaryOp::Eq, first, own)?;
    let before = match c.flag("sorted", true) {
        true => {
            let unlike = c.unary(UnaryOp::Not, alike)?;
            lower(c, items, unlike, (i, j))?
        }
        false => {
            let (j, first) = (c.unsqueeze(own, &[0])?, c.unsqueeze(first, &[1])?);
            c.binary(BinaryOp::Lt, j, first)?
        }
    };
    // An item's place is the number of different ones that come before it.
    let others = c.unsqueeze(is_first, &[0])?;
    let before = c.binary(BinaryOp::And, before, others)?;
    let before = c.cast(before, DType::I64)?;
    let place = c.reduce(ReduceOp::Sum, before, &[1], false)?;
    let ones = c.cast(is_first, DType::I64)?;
    let total = c.reduce(ReduceOp::Sum, ones, &[0], false)?;
    let name = c.extent_name(&c.output(0), axis);
    let count = c.size(total, &name, 0, &Most::Proved(n.clone()))?;
    let indices = at_places(c, is_first, place, own, &n, count.clone())?;
    let values = c.gather(x, indices, axis)?;
    let (zero, one) = (c.scalar(0.0, DType::I64), c.scalar(1.0, DType::I64));
    let zeros = c.expand(zero, std::slice::from_ref(&n))?;
    let ones = c.expand(one, std::slice::from_ref(&n))?;
    let add = Op::ScatterElements { axis: 0, reduction: ScatterReduction::Add };
    let counts = c.op(add, &[zeros, place, ones])?;
    let counts = c.slice_axis(counts, 0, Dim::ZERO, count, 1)?;
    Ok(vec![values, indices, place, counts])
}

/// Whether item j is less than item i in the first element in which they differ: `[n, n]`.
fn lower(c: &mut Call<'_>, items: Tensor, unlike: Tensor, (i, j): (Tensor, Tensor)) -> OpResult {
    let shape = c.shape(items).to_vec();
    let [n, m] = shape.as_slice() else { return wrong("items are no matrix") };
    if m.is(1) {
        let less = less(c, j, i)?;
        return c.reshape(less, &[n.clone(), n.clone()]);
    }
    let unlike = c.cast(unlike, DType::I64)?;
    let at = Op::ArgReduce { max: true, axis: 2, keep_dims: false, last: false };
    let at = c.op(at, &[unlike])?;
    let flat = c.reshape(items, &[n * m])?;
    let square = [n.clone(), n.clone()];
    let width = c.dims(std::slice::from_ref(m));
    let mut found = Vec::new();
    for axis in [1, 0] {
        let item = coordinates(c, &square, axis, DType::I64)?;
        let row = c.product(item, width)?;
        let from = c.sum(row, at)?;
        found.push(c.gather(flat, from, 0)?);
    }
    less(c, found[0], found[1])
}
