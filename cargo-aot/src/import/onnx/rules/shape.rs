//! Shapes as data, and rearrangements that keep every element.

use super::super::builder::{Element, Most, OpResult, Tensor, wrong};
use super::super::call::{Call, depends};
use super::table::{Entry, onnx, since};
use aot_ir::dim::{Cmp, Cond};
use aot_ir::op::{BinaryOp, UnaryOp};
use aot_ir::{DType, Dim};

pub(super) const RULES: &[Entry] = &[
    onnx("Shape", shape),
    onnx("Size", |c| {
        let x = c.x(0)?;
        let size = product(c.shape(x));
        let size = c.dims(&[size]);
        Ok(vec![c.reshape(size, &[])?])
    }),
    onnx("Reshape", reshape),
    onnx("Flatten", flatten),
    onnx("Squeeze", squeeze),
    onnx("Unsqueeze", unsqueeze),
    onnx("Transpose", transpose),
    onnx("Expand", expand),
    onnx("Tile", tile),
    onnx("DepthToSpace", depth_to_space),
    onnx("SpaceToDepth", space_to_depth),
    since(1, "AffineGrid", affine_grid),
];

/// The number of elements.
pub(super) fn product(shape: &[Dim]) -> Dim {
    shape.iter().fold(Dim::ONE, |p, d| p * d)
}

fn shape(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let rank = c.rank(x) as i64;
    let clamp = |v: i64| (if v < 0 { v.saturating_add(rank) } else { v }).clamp(0, rank) as usize;
    let (start, end) = (clamp(c.int("start", 0)), clamp(c.int("end", rank)));
    let dims = c.shape(x).get(start..end).unwrap_or_default().to_vec();
    Ok(vec![c.dims(&dims)])
}

fn reshape(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let target: Option<Vec<Element>> = if c.opset < 5 {
        let known = |d: i64| Element::Known(d.into());
        c.ints_attr("shape").map(|s| s.into_iter().map(known).collect())
    } else {
        c.input_elements(1, "the shape of Reshape")?
    };
    let Some(target) = target else { return wrong("the new shape is missing") };
    let known: Option<Vec<Dim>> = target.iter().map(|e| e.known().cloned()).collect();
    let Some(mut target) = known else {
        let target = data_shape(c, x, &target)?;
        return Ok(vec![c.reshape(x, &target)?]);
    };
    if target.len() > super::super::tensor::MAX_RANK {
        return wrong(format!("the new shape has {} axes", target.len()));
    }
    let old = c.shape(x).to_vec();
    let keep_zeros = c.flag("allowzero", false);
    let mut free = None;
    for (axis, dim) in target.iter_mut().enumerate() {
        if dim.is(0) && !keep_zeros {
            match old.get(axis) {
                Some(d) => *dim = d.clone(),
                None => return wrong(format!("axis {axis} of the new shape copies none")),
            }
        } else if dim.is(-1) && free.replace(axis).is_some() {
            return wrong("the new shape has -1 twice");
        }
    }
    if let Some(axis) = free {
        target[axis] = Dim::ONE;
        let scope = c.scope();
        // Dims that stand on both sides cancel, so that the quotient need not be found.
        let (mut left, mut right) = (old, target.clone());
        right.retain(|d| match left.iter().position(|l| l == d) {
            Some(i) if !d.is(0) => {
                left.remove(i);
                false
            }
            _ => true,
        });
        let (all, rest) = (product(&left), product(&right));
        if rest.is(0) || scope.decide(Cmp::Le, &rest, &Dim::ZERO) == Some(true) {
            return wrong("-1 in the new shape is not determined: another dim is 0");
        }
        target[axis] = scope.floor_div(&all, &rest);
    }
    Ok(vec![c.reshape(x, &target)?])
}

/// The new shape where data gives some of it; its elements are at most as many as the tensor's.
fn data_shape(c: &mut Call<'_>, x: Tensor, target: &[Element]) -> OpResult<Vec<Dim>> {
    let old = c.shape(x).to_vec();
    let keep_zeros = c.flag("allowzero", false);
    let (output, total) = (c.output(0), product(&old));
    // Of nothing, extents may be anything beside one of 0.
    let most = if total.is(0) { Most::Unknown } else { Most::Valid(total.clone()) };
    // Extents as data, -1 where one is to be found.
    let (mut extents, mut all, mut free) = (Vec::new(), None, None);
    for (axis, element) in target.iter().enumerate() {
        let extent = match (element, old.get(axis)) {
            (Element::Known(d), Some(copied)) if d.is(0) && !keep_zeros => {
                c.element(&Element::Known(copied.clone()))?
            }
            (Element::Data(_), Some(copied)) if !keep_zeros => {
                let given = c.element(element)?;
                let zero = c.with(BinaryOp::Eq, given, 0.0)?;
                let copied = c.element(&Element::Known(copied.clone()))?;
                c.select(zero, copied, given)?
            }
            _ => c.element(element)?,
        };
        if element.known().is_some_and(|d| d.is(-1)) && free.replace(axis).is_some() {
            return wrong("the new shape has -1 twice");
        }
        all = Some(match all {
            None => extent,
            Some(all) => c.product(all, extent)?,
        });
        extents.push(extent);
    }
    // With one of -1, the others make up the product's opposite.
    let Some(all) = all else { return Ok(Vec::new()) };
    let others = c.unary(UnaryOp::Neg, all)?;
    let others = c.with(BinaryOp::Max, others, 1.0)?;
    let elements = c.element(&Element::Known(total.clone()))?;
    let found = c.quotient(elements, others)?;
    let mut shape = Vec::with_capacity(extents.len());
    for (axis, (extent, element)) in extents.into_iter().zip(target).enumerate() {
        let extent = match element {
            Element::Known(d) if d.is(-1) => found,
            Element::Known(_) => extent,
            Element::Data(_) if free.is_some() => extent,
            Element::Data(_) => {
                let open = c.with(BinaryOp::Eq, extent, -1.0)?;
                c.select(open, found, extent)?
            }
        };
        let name = c.extent_name(&output, axis);
        shape.push(c.size(extent, &name, 0, &most)?);
    }
    Ok(shape)
}

fn flatten(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let rank = c.rank(x);
    let axis = match c.int("axis", 1) {
        a if a == rank as i64 => rank,
        a => c.axis_of(a, rank)?,
    };
    let shape = c.shape(x).to_vec();
    Ok(vec![c.reshape(x, &[product(&shape[..axis]), product(&shape[axis..])])?])
}

fn squeeze(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let axes = match c.ints_moved("axes", 1, 13)? {
        Some(axes) => c.axes_of(&axes, c.rank(x))?,
        None => single_axes(c, x)?,
    };
    Ok(vec![c.squeeze(x, &axes)?])
}

/// The axes of extent 1. How many axes a result has is decided at build: a run makes sure that no other extent is 1.
fn single_axes(c: &mut Call<'_>, x: Tensor) -> OpResult<Vec<usize>> {
    let mut single = Vec::new();
    for (axis, extent) in c.shape(x).to_vec().iter().enumerate() {
        match c.scope().decide(Cmp::Eq, extent, &Dim::ONE) {
            Some(true) => single.push(axis),
            Some(false) => {}
            None => {
                // Of sizes from 1 on this is easier to read.
                let (two, is_one) = (Dim::from(2), Cond::Cmp(Cmp::Eq, extent.clone(), Dim::ONE));
                let (found, expected) = match c.scope().interval(extent).lo >= 1 {
                    true => (extent.clone(), c.scope().max(extent, &two)),
                    false => (c.scope().select(&is_one, &Dim::ZERO, &Dim::ONE), Dim::ONE),
                };
                c.guard(found, expected);
                let shown = c.symbols().show(extent);
                c.warn(&format!(
                    "it drops the axes of extent 1, and axis {axis} stays: runs in which its extent `{shown}` is 1 are \
                     refused; where it always is 1, say so in `dims`"
                ));
            }
        }
    }
    Ok(single)
}

fn unsqueeze(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let Some(axes) = c.ints_moved("axes", 1, 13)? else { return wrong("axes are missing") };
    let axes = c.axes_of(&axes, c.rank(x) + axes.len())?;
    Ok(vec![c.unsqueeze(x, &axes)?])
}

fn transpose(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let rank = c.rank(x);
    let perm = match c.ints_attr("perm") {
        Some(perm) => perm.iter().map(|&p| c.axis_of(p, rank)).collect::<OpResult<_>>()?,
        None => (0..rank).rev().collect::<Vec<_>>(),
    };
    Ok(vec![c.transpose(x, &perm)?])
}

fn expand(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let Some(target) = c.input_elements(1, "the shape of Expand")? else {
        return wrong("the shape is missing");
    };
    let (old, output) = (c.shape(x).to_vec(), c.output(0));
    let rank = target.len().max(old.len());
    let mut elements = Vec::new();
    for (i, element) in target.iter().enumerate() {
        let axis = rank - target.len() + i;
        let own = (axis + old.len()).checked_sub(rank).and_then(|i| old.get(i));
        elements.push(match (element, own) {
            // Data can only say 1, or what the extent is.
            (Element::Data(_), Some(own)) if !own.is(1) => Element::Known(own.clone()),
            _ => element.clone(),
        });
    }
    let axes = rank - target.len()..rank;
    let names: Vec<String> = axes.map(|axis| c.extent_name(&output, axis)).collect();
    let target = c.sizes(&elements, 0, &Most::Unknown, &names)?;
    let shape = c.broadcast(&old, &target)?;
    Ok(vec![c.expand(x, &shape)?])
}

fn tile(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let mut x = c.x(0)?;
    let Some(repeats) = c.input_sizes(1, "the repeats of Tile", 0, &Most::Unknown)? else {
        return wrong("repeats are missing");
    };
    let old = c.shape(x).to_vec();
    if repeats.len() != old.len() {
        return wrong(format!("{} repeats for rank {}", repeats.len(), old.len()));
    }
    if repeats.iter().all(|r| r.is(1)) {
        return Ok(vec![x]);
    }
    // [a, b] → [1, a, 1, b] → [r, a, s, b] → [r·a, s·b]
    let pairs = |first: &dyn Fn(usize) -> Dim| -> Vec<Dim> {
        (0..old.len()).flat_map(|i| [first(i), old[i].clone()]).collect()
    };
    let (split, grown) = (pairs(&|_| Dim::ONE), pairs(&|i| repeats[i].clone()));
    x = c.reshape(x, &split)?;
    x = c.expand(x, &grown)?;
    let shape: Vec<Dim> = old.iter().zip(&repeats).map(|(d, r)| d * r).collect();
    Ok(vec![c.reshape(x, &shape)?])
}

fn block(c: &mut Call<'_>) -> OpResult<(Tensor, [Dim; 4], Dim)> {
    let x = c.x(0)?;
    let shape = <[Dim; 4]>::try_from(c.shape(x).to_vec());
    let (Ok(shape), size @ 1..=4096) = (shape, c.int("blocksize", 0)) else {
        return wrong("rank 4 and a positive blocksize are needed");
    };
    Ok((x, shape, size.into()))
}

fn depth_to_space(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (x, [n, ch, h, w], b) = block(c)?;
    let depth = c.scope().floor_div(&ch, &(&b * &b));
    let crd = c.text("mode", "DCR") == "CRD";
    let (split, perm) = if crd {
        ([&n, &depth, &b, &b, &h, &w].map(Dim::clone), [0, 1, 4, 2, 5, 3])
    } else {
        ([&n, &b, &b, &depth, &h, &w].map(Dim::clone), [0, 3, 4, 1, 5, 2])
    };
    let x = c.reshape(x, &split)?;
    let x = c.transpose(x, &perm)?;
    Ok(vec![c.reshape(x, &[n, depth, &h * &b, &w * &b])?])
}

fn space_to_depth(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (x, [n, ch, h, w], b) = block(c)?;
    let (rows, columns) = (c.scope().floor_div(&h, &b), c.scope().floor_div(&w, &b));
    let split = [&n, &ch, &rows, &b, &columns, &b].map(Dim::clone);
    let x = c.reshape(x, &split)?;
    let x = c.transpose(x, &[0, 3, 5, 1, 2, 4])?;
    let shape = [n, &(&ch * &b) * &b, rows, columns];
    Ok(vec![c.reshape(x, &shape)?])
}

/// `grid[n, .., d] = theta[n, d, :] · (x, y, .., 1)`, coordinates over -1..1.
fn affine_grid(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    use aot_ir::Op;
    let theta = c.x(0)?;
    let Some(size) = c.input_sizes(1, "the size of AffineGrid", 0, &Most::Unknown)? else {
        return depends("the size of AffineGrid");
    };
    if !matches!(size.len(), 4 | 5) {
        return wrong("size has to have 4 or 5 elements");
    }
    let corners = c.flag("align_corners", false);
    let spatial = &size[2..];
    let mut columns = Vec::new();
    let mut full = spatial.to_vec();
    full.push(Dim::ONE);
    let float = c.dtype(theta);
    for axis in (0..spatial.len()).rev() {
        let mut shape = vec![Dim::ONE; full.len()];
        shape[axis] = spatial[axis].clone();
        let at = super::generate::coordinates(c, &shape, axis, DType::I64)?;
        let at = c.cast(at, float)?;
        let extent = c.dims(std::slice::from_ref(&spatial[axis]));
        let extent = c.cast(extent, float)?;
        let at = if corners {
            let last = c.with(BinaryOp::Sub, extent, 1.0)?;
            let last = c.with(BinaryOp::Max, last, 1.0)?;
            let at = c.with(BinaryOp::Mul, at, 2.0)?;
            let at = c.quotient(at, last)?;
            c.with(BinaryOp::Sub, at, 1.0)?
        } else {
            let at = c.with(BinaryOp::Mul, at, 2.0)?;
            let at = c.with(BinaryOp::Add, at, 1.0)?;
            let at = c.quotient(at, extent)?;
            c.with(BinaryOp::Sub, at, 1.0)?
        };
        columns.push(c.expand(at, &full)?);
    }
    let one = c.scalar(1.0, float);
    columns.push(c.expand(one, &full)?);
    let points = c.concat(&columns, full.len() - 1)?;
    let flat = [product(spatial), Dim::from(columns.len() as i64)];
    let points = c.reshape(points, &flat)?;
    let turned = c.transpose_last(theta)?;
    let grid = c.op(Op::MatMul, &[points, turned])?;
    let mut shape = vec![size[0].clone()];
    shape.extend_from_slice(spatial);
    shape.push(Dim::from(spatial.len() as i64));
    Ok(vec![c.reshape(grid, &shape)?])
}
