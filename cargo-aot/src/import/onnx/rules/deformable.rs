//! Convolution whose samples are moved by data.

use super::super::builder::{OpResult, Tensor, wrong};
use super::super::call::Call;
use super::convolution::{Window, add_bias, check_kernel, window};
use super::generate::coordinates;
use super::grid::{Axis, Outside, extent, sample};
use super::shape::product;
use super::table::{Entry, onnx};
use aot_ir::op::BinaryOp;
use aot_ir::{DType, Dim, Op};

pub(super) const RULES: &[Entry] = &[onnx("DeformConv", deform_conv)];

/// Columns of linear samples, times the mask, times the weights.
fn deform_conv(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (x, w, offset) = (c.x(0)?, c.x(1)?, c.x(2)?);
    let (bias, mask) = (c.opt(3), c.opt(4));
    let shape = c.shape(x).to_vec();
    let kernel = c.shape(w).get(2..).unwrap_or_default().to_vec();
    check_kernel(c, &kernel)?;
    let axes = kernel.len();
    let Window { strides, dilations, pads, .. } = window(c, x, kernel.clone())?;
    if c.rank(offset) != axes + 2 {
        return wrong(format!("offsets of rank {} for {axes} spatial axes", c.rank(offset)));
    }
    let positive = |c: &Call<'_>, name: &str| match c.int(name, 1) {
        n @ 1.. => Ok(n),
        n => wrong(format!("{name} is {n}")),
    };
    let (groups, shifted) = (positive(c, "group")?, positive(c, "offset_group")?);
    let out = c.shape(offset)[2..].to_vec();
    let (batch, channels) = (shape[0].clone(), shape[1].clone());
    let (volume, places) = (product(&kernel), product(&out));
    // One image per group of channels that move together.
    let images = batch.scaled(shifted);
    let per_image = c.scope().floor_div(&channels, &shifted.into());
    let mut split = vec![images.clone(), per_image];
    split.extend_from_slice(&shape[2..]);
    let apart = c.reshape(x, &split)?;
    // [images, kernel.., axes, out..]
    let mut moved = vec![images.clone()];
    moved.extend_from_slice(&kernel);
    moved.push(Dim::from(axes as i64));
    moved.extend_from_slice(&out);
    let offset = c.reshape(offset, &moved)?;
    let columns = [volume.clone(), places.clone()];
    let mut taps = Vec::new();
    for axis in 0..axes {
        let shift = c.pick(offset, axes + 1, Dim::from(axis as i64))?;
        let dtype = c.dtype(shift);
        let mut line = vec![Dim::ONE; 2 * axes];
        line[axis] = kernel[axis].clone();
        let tap = coordinates(c, &line, axis, DType::I64)?;
        let tap = c.with(BinaryOp::Mul, tap, dilations[axis] as f64)?;
        let mut line = vec![Dim::ONE; 2 * axes];
        line[axes + axis] = out[axis].clone();
        let start = coordinates(c, &line, axes + axis, DType::I64)?;
        let start = c.with(BinaryOp::Mul, start, strides[axis] as f64)?;
        let low = extent(c, &pads[axis].0)?;
        let start = c.difference(start, low)?;
        let at = c.sum(start, tap)?;
        let at = c.cast(at, dtype)?;
        let at = c.sum(shift, at)?;
        let at = c.reshape(at, &[images.clone(), columns[0].clone(), columns[1].clone()])?;
        let size = extent(c, &shape[2 + axis])?;
        let size = c.cast(size, dtype)?;
        let along = Axis { extent: size, outside: Outside::Zeros, corners: true };
        taps.push(along.taps(c, at, "linear")?);
    }
    // [images, channels, kernel, out]
    let mut samples = sample(c, apart, &taps, &columns)?;
    if let Some(mask) = mask {
        let [volume, places] = columns.clone();
        let mask = c.reshape(mask, &[images, Dim::ONE, volume, places])?;
        samples = c.product(samples, mask)?;
    }
    let group: Dim = groups.into();
    let filters = c.scope().floor_div(&c.shape(w)[0], &group);
    let inner = &c.shape(w)[1] * &volume;
    let samples = c.reshape(samples, &[batch.clone(), group.clone(), inner.clone(), places])?;
    let filters = c.reshape(w, &[group, filters, inner])?;
    let y = c.op(Op::MatMul, &[filters, samples])?;
    let mut result = vec![batch, c.shape(w)[0].clone()];
    result.extend(out);
    let y = c.reshape(y, &result)?;
    Ok(vec![add_bias(c, y, bias)?])
}
