//! Features of regions that are data.

use super::super::builder::{OpResult, Tensor, unsupported, wrong};
use super::super::call::Call;
use super::generate::coordinates;
use super::table::{Entry, onnx};
use aot_ir::op::{BinaryOp, ReduceOp, UnaryOp};
use aot_ir::{DType, Dim};

pub(super) const RULES: &[Entry] = &[onnx("RoiAlign", roi_align)];

/// Samples along one axis of every region, `[regions, bins · samples]` each: the element below and above, the
/// share of the one above, and whether the sample counts.
struct Samples {
    low: Tensor,
    high: Tensor,
    share: Tensor,
    inside: Tensor,
}

impl Samples {
    /// Samples in the middle of equal parts of `start..start + size` (`[regions, 1]` each), `count` in
    /// all.
    fn new(
        c: &mut Call<'_>,
        start: Tensor,
        size: Tensor,
        count: i64,
        extent: &Dim,
    ) -> OpResult<Self> {
        let dtype = c.dtype(start);
        let at = coordinates(c, &[Dim::ONE, count.into()], 1, DType::I64)?;
        let at = c.cast(at, dtype)?;
        let at = c.with(BinaryOp::Add, at, 0.5)?;
        let step = c.with(BinaryOp::Div, size, count as f64)?;
        let at = c.product(at, step)?;
        let at = c.sum(at, start)?;
        let extent = c.dims(std::slice::from_ref(extent));
        let extent = c.reshape(extent, &[])?;
        let extent = c.cast(extent, dtype)?;
        let (above, below) = (c.with(BinaryOp::Ge, at, -1.0)?, c.binary(BinaryOp::Le, at, extent)?);
        let inside = c.binary(BinaryOp::And, above, below)?;
        let last = c.with(BinaryOp::Sub, extent, 1.0)?;
        let at = c.with(BinaryOp::Max, at, 0.0)?;
        let at = c.binary(BinaryOp::Min, at, last)?;
        let floor = c.unary(UnaryOp::Floor, at)?;
        let share = c.difference(at, floor)?;
        let high = c.with(BinaryOp::Add, floor, 1.0)?;
        let high = c.binary(BinaryOp::Min, high, last)?;
        Ok(Self { low: c.cast(floor, DType::I64)?, high: c.cast(high, DType::I64)?, share, inside })
    }
}

/// Bins of regions `input 1 [regions, 4]` (left, top, right, bottom) of the images `input 2 [regions]`, each
/// the mean or the largest of bilinear samples: `[regions, channels, height, width]`.
fn roi_align(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (x, rois, batch) = (c.x(0)?, c.x(1)?, c.x(2)?);
    if c.rank(x) != 4 || c.rank(rois) != 2 || c.rank(batch) != 1 || !c.shape(rois)[1].is(4) {
        return wrong("the ranks of the inputs are not 4, 2 and 1, or regions have not 4 numbers");
    }
    let one_bin = |c: &Call<'_>, name: &str| match c.int(name, 1) {
        n @ 1..=4096 => Ok(n),
        n => wrong(format!("{name} is {n}")),
    };
    let (rows, columns) = (one_bin(c, "output_height")?, one_bin(c, "output_width")?);
    let per_bin = match c.int("sampling_ratio", 0) {
        n @ 1..=64 => n,
        0 => {
            return unsupported(
                "as many samples as a region has elements (sampling_ratio 0); \
                 export the model with a sampling_ratio",
            );
        }
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
    let along = |c: &mut Call<'_>, first: i64, count: i64, extent: &Dim| -> OpResult<Samples> {
        let start = c.slice_axis(edges, 1, first.into(), Dim::ONE, 1)?;
        let end = c.slice_axis(edges, 1, Dim::from(first + 2), Dim::ONE, 1)?;
        let mut size = c.difference(end, start)?;
        if !half_pixel {
            size = c.with(BinaryOp::Max, size, 1.0)?;
        }
        Samples::new(c, start, size, count * per_bin, extent)
    };
    let across = along(c, 0, columns, width)?;
    let down = along(c, 1, rows, height)?;
    // Elements as rows [images · height · width, channels], gathered at [regions, down, across].
    let flat = c.transpose(x, &[0, 2, 3, 1])?;
    let all = &(&shape[0] * height) * width;
    let flat = c.reshape(flat, &[all, channels.clone()])?;
    let size = |c: &mut Call<'_>, d: &Dim| -> OpResult {
        let t = c.dims(std::slice::from_ref(d));
        c.reshape(t, &[])
    };
    let (tall, broad) = (size(c, height)?, size(c, width)?);
    let image = c.cast(batch, DType::I64)?;
    let image = c.reshape(image, &[regions.clone(), Dim::ONE])?;
    let image = c.product(image, tall)?;
    let inside_down = c.unsqueeze(down.inside, &[2])?;
    let inside_across = c.unsqueeze(across.inside, &[1])?;
    let inside = c.binary(BinaryOp::And, inside_down, inside_across)?;
    let inside = c.unsqueeze(inside, &[3])?;
    let mut total: Option<Tensor> = None;
    for corner in 0..4 {
        let (lower, right) = (corner / 2 == 1, corner % 2 == 1);
        let row = c.sum(image, if lower { down.high } else { down.low })?;
        let row = c.product(row, broad)?;
        let row = c.unsqueeze(row, &[2])?;
        let column = c.unsqueeze(if right { across.high } else { across.low }, &[1])?;
        let place = c.sum(row, column)?;
        let value = c.gather(flat, place, 0)?;
        let share = |c: &mut Call<'_>, share: Tensor, far: bool| -> OpResult {
            let one = c.scalar_like(1.0, share);
            if far { Ok(share) } else { c.difference(one, share) }
        };
        let (v, h) = (share(c, down.share, lower)?, share(c, across.share, right)?);
        let (v, h) = (c.unsqueeze(v, &[2])?, c.unsqueeze(h, &[1])?);
        let weight = c.product(v, h)?;
        let weight = c.unsqueeze(weight, &[3])?;
        let weight = c.cast_like(weight, value)?;
        let part = c.product(value, weight)?;
        total = Some(match total {
            None => part,
            // The largest of weighted corners is what the mode takes, not that of interpolated samples.
            Some(total) if largest => c.binary(BinaryOp::Max, total, part)?,
            Some(total) => c.sum(total, part)?,
        });
    }
    let Some(total) = total else { return wrong("nothing to sample") };
    let zero = c.scalar_like(0.0, total);
    let total = c.select(inside, total, zero)?;
    let split =
        [regions, rows.into(), per_bin.into(), columns.into(), per_bin.into(), channels.clone()];
    let total = c.reshape(total, &split)?;
    let op = if largest { ReduceOp::Max } else { ReduceOp::Mean };
    let pooled = c.reduce(op, total, &[2, 4], false)?;
    Ok(vec![c.transpose(pooled, &[0, 3, 1, 2])?])
}
