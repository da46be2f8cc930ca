//! Features of regions that are data.

use super::super::builder::{OpResult, Tensor, wrong};
use super::super::call::Call;
use super::generate::coordinates;
use super::region_samples::{Along, Pixels, both};
use super::resample::number;
use super::table::{Entry, onnx};
use aot_ir::op::{BinaryOp, ReduceOp, UnaryOp};
use aot_ir::{DType, Dim};

pub(super) const RULES: &[Entry] = &[onnx("RoiAlign", roi_align)];

/// Bins of regions `input 1 [regions, 4]` (left, top, right, bottom) of the images `input 2 [regions]`, each
/// the mean or the largest of bilinear samples: `[regions, channels, height, width]`.
fn roi_align(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (x, rois, batch) = (c.x(0)?, c.x(1)?, c.x(2)?);
    if c.rank(x) != 4 || c.rank(rois) != 2 || c.rank(batch) != 1 || !c.shape(rois)[1].is(4) {
        return wrong("the ranks of the inputs are not 4, 2 and 1, or regions have not 4 numbers");
    }
    let bins = |c: &Call<'_>, name: &str| match c.int(name, 1) {
        n @ 1..=4096 => Ok(n),
        n => wrong(format!("{name} is {n}")),
    };
    let (rows, columns) = (bins(c, "output_height")?, bins(c, "output_width")?);
    let ratio = match c.int("sampling_ratio", 0) {
        n @ 0..=64 => n,
        n => return wrong(format!("sampling_ratio is {n}")),
    };
    let scale = c.float("spatial_scale", 1.0);
    let default = if c.opset < 16 { "output_half_pixel" } else { "half_pixel" };
    let half_pixel = match c.text("coordinate_transformation_mode", default).as_str() {
        "half_pixel" => true,
        "output_half_pixel" => false,
        other => return wrong(format!("coordinate_transformation_mode is `{other}`")),
    };
    let largest = match c.text("mode", "avg").as_str() {
        "avg" => false,
        "max" => true,
        other => return wrong(format!("mode is `{other}`")),
    };
    let shape = c.shape(x).to_vec();
    let [_, channels, height, width] = shape.as_slice() else { return wrong("rank 4") };
    let regions = c.shape(rois)[0].clone();
    let edges = c.with(BinaryOp::Mul, rois, scale)?;
    let edges = c.with(BinaryOp::Sub, edges, if half_pixel { 0.5 } else { 0.0 })?;
    let along = |c: &mut Call<'_>, first: i64, bins: i64, extent: &Dim| -> OpResult<Along> {
        let mut ends = Vec::new();
        for column in [first, first + 2] {
            let edge = c.slice_axis(edges, 1, column.into(), Dim::ONE, 1)?;
            ends.push(c.unsqueeze(edge, &[2])?);
        }
        let mut size = c.difference(ends[1], ends[0])?;
        if !half_pixel {
            size = c.with(BinaryOp::Max, size, 1.0)?;
        }
        let bin = c.with(BinaryOp::Div, size, bins as f64)?;
        // As many as the bin has elements, where the ratio does not say.
        let count = match ratio {
            0 => c.unary(UnaryOp::Ceil, bin)?,
            n => c.scalar_like(n as f64, bin),
        };
        Ok(Along { start: ends[0], bin, bins, count, extent: extent.clone() })
    };
    let down = along(c, 1, rows, height)?;
    let across = along(c, 0, columns, width)?;
    let pixels = Pixels::new(c, x, batch, largest)?;
    let pooled = match ratio {
        0 => adaptive(c, &pixels, &down, &across)?,
        n => {
            let index = coordinates(c, &[Dim::ONE, Dim::ONE, n.into()], 2, DType::I64)?;
            let index = c.cast_like(index, down.bin)?;
            let (down, across) = (down.samples(c, index)?, across.samples(c, index)?);
            let all = pixels.at(c, &down, &across)?;
            let op = if largest { ReduceOp::Max } else { ReduceOp::Mean };
            c.reduce(op, all, &[2, 4], false)?
        }
    };
    let pooled = c.reshape(pooled, &[regions, rows.into(), columns.into(), channels.clone()])?;
    Ok(vec![c.transpose(pooled, &[0, 3, 1, 2])?])
}

/// Bins of as many samples as they have elements, a sample of every bin after the other:
/// `[regions, rows, 1, columns, 1, channels]`.
fn adaptive(c: &mut Call<'_>, pixels: &Pixels, down: &Along, across: &Along) -> OpResult {
    let (rows, columns) = (format!("{}_down", c.output(0)), format!("{}_across", c.output(0)));
    let (tall, wide) = (down.most(c, &rows)?, across.most(c, &columns)?);
    let firsts = (down.first(c)?, across.first(c)?);
    let lowest = c.scalar_like(if pixels.largest { f64::NEG_INFINITY } else { 0.0 }, pixels.flat);
    let (rows, columns) = (Dim::from(down.bins), Dim::from(across.bins));
    let regions = c.shape(down.bin)[0].clone();
    let shape = [regions, rows, Dim::ONE, columns, Dim::ONE, pixels.channels.clone()];
    let lowest = c.expand(lowest, &shape)?;
    let open = c.begin_loop(&(&tall * &wide), false, &[lowest]);
    let places = (c.scope().floor_div(&open.at(), &wide), c.scope().modulo(&open.at(), &wide));
    let so_far = open.carried()[0];
    let next =
        add_sample(c, pixels, (down, firsts.0, &places.0), (across, firsts.1, &places.1), so_far);
    let all = match next {
        Ok(next) => c.end_loop(open, None, &[lowest], &[next], &[])?[0],
        Err(error) => {
            c.abandon_loop(open);
            return Err(error);
        }
    };
    let down = c.with(BinaryOp::Max, down.count, 0.0)?;
    let across = c.with(BinaryOp::Max, across.count, 0.0)?;
    let count = c.product(down, across)?;
    let count = c.unsqueeze(count, &[3, 4, 5])?;
    if pixels.largest {
        let some = c.with(BinaryOp::Gt, count, 0.0)?;
        let zero = c.scalar_like(0.0, all);
        return c.select(some, all, zero);
    }
    let count = c.with(BinaryOp::Max, count, 1.0)?;
    let count = c.cast_like(count, all)?;
    c.quotient(all, count)
}

/// Samples along one axis, the first of each bin that may lie in the image, and which one from there on is meant.
type Chosen<'a> = (&'a Along, Tensor, &'a Dim);

/// What bins come to with one more sample, where they have that many.
fn add_sample(
    c: &mut Call<'_>,
    pixels: &Pixels,
    down: Chosen<'_>,
    across: Chosen<'_>,
    so_far: Tensor,
) -> OpResult {
    let mut samples = Vec::new();
    for (along, first, place) in [down, across] {
        let place = number(c, place)?;
        let place = c.cast_like(place, first)?;
        let index = c.sum(first, place)?;
        let exists = c.binary(BinaryOp::Lt, index, along.count)?;
        samples.push((along.samples(c, index)?, exists));
    }
    let value = pixels.at(c, &samples[0].0, &samples[1].0)?;
    let exists = both(c, samples[0].1, samples[1].1, BinaryOp::And)?;
    let exists = c.unsqueeze(exists, &[5])?;
    let next = match pixels.largest {
        true => c.binary(BinaryOp::Max, so_far, value)?,
        false => c.sum(so_far, value)?,
    };
    c.select(exists, next, so_far)
}
