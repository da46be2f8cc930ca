//! Samples of regions: where they lie, and what is there.

use super::super::builder::{Most, OpResult, Tensor, wrong};
use super::super::call::Call;
use super::generate::coordinates;
use aot_ir::op::{BinaryOp, ReduceOp, UnaryOp};
use aot_ir::{DType, Dim};

/// Regions along one axis of their images: equal bins, each with samples in the middle of equal parts.
pub(super) struct Along {
    /// Where regions begin: `[regions, 1, 1]`.
    pub(super) start: Tensor,
    /// Extents of bins: `[regions, 1, 1]`.
    pub(super) bin: Tensor,
    /// Bins of a region.
    pub(super) bins: i64,
    /// Samples of a bin, of which there may be none: a scalar or `[regions, 1, 1]`.
    pub(super) count: Tensor,
    /// The images' extent.
    pub(super) extent: Dim,
}

/// Samples along one axis, `[regions, bins, n]` each: the element below and above, the share of the one above, and
/// whether the sample lies in the image.
pub(super) struct Samples {
    low: Tensor,
    high: Tensor,
    share: Tensor,
    inside: Tensor,
}

impl Along {
    /// Where bins begin: `[regions, bins, 1]`.
    fn bins_begin(&self, c: &mut Call<'_>) -> OpResult {
        let bin = coordinates(c, &[Dim::ONE, self.bins.into(), Dim::ONE], 1, DType::I64)?;
        let bin = c.cast_like(bin, self.bin)?;
        let offset = c.product(bin, self.bin)?;
        c.sum(self.start, offset)
    }

    /// The samples at these places within bins, counted from 0: anything that broadcasts to `[regions, bins, n]`.
    pub(super) fn samples(&self, c: &mut Call<'_>, index: Tensor) -> OpResult<Samples> {
        let dtype = c.dtype(self.start);
        let count = c.with(BinaryOp::Max, self.count, 1.0)?;
        let at = c.with(BinaryOp::Add, index, 0.5)?;
        let at = c.product(at, self.bin)?;
        let at = c.quotient(at, count)?;
        let begin = self.bins_begin(c)?;
        let at = c.sum(begin, at)?;
        let extent = c.dims(std::slice::from_ref(&self.extent));
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
        Ok(Samples {
            low: c.cast(floor, DType::I64)?,
            high: c.cast(high, DType::I64)?,
            share,
            inside,
        })
    }

    /// The last sample of every bin that lies before its image, or the bin's first one: `[regions, bins, 1]`. Those
    /// before it come to nothing, as it does.
    pub(super) fn first(&self, c: &mut Call<'_>) -> OpResult {
        let count = c.with(BinaryOp::Max, self.count, 1.0)?;
        let step = c.quotient(self.bin, count)?;
        let step = c.with(BinaryOp::Max, step, 1e-30)?;
        let begin = self.bins_begin(c)?;
        let edge = c.scalar_like(-1.0, begin);
        let before = c.difference(edge, begin)?;
        let before = c.quotient(before, step)?;
        let before = c.with(BinaryOp::Sub, before, 0.5)?;
        let before = c.unary(UnaryOp::Ceil, before)?;
        let before = c.binary(BinaryOp::Min, before, count)?;
        let before = c.with(BinaryOp::Sub, before, 1.0)?;
        c.with(BinaryOp::Max, before, 0.0)
    }

    /// How many samples from [`Along::first`] on matter at most: as many as a bin has, or as may lie in an image (they
    /// are more than half an element apart where there is more than one), and one on either side of it.
    pub(super) fn most(&self, c: &mut Call<'_>, name: &str) -> OpResult<Dim> {
        let enough = self.extent.scaled(2) + 5;
        let most = c.reduce(ReduceOp::Max, self.count, &[0, 1, 2], false)?;
        let limit = c.dims(std::slice::from_ref(&enough));
        let limit = c.reshape(limit, &[])?;
        let limit = c.cast_like(limit, most)?;
        let most = c.binary(BinaryOp::Min, most, limit)?;
        let most = c.with(BinaryOp::Max, most, 1.0)?;
        let most = c.cast(most, DType::I64)?;
        c.size(most, name, 1, &Most::Proved(enough))
    }
}

/// Images, and which one each region is of.
pub(super) struct Pixels {
    /// Elements as rows: `[images · height · width, channels]`.
    pub(super) flat: Tensor,
    pub(super) channels: Dim,
    /// Row of the image's first pixel, in pixel rows: `[regions, 1, 1]`.
    first_row: Tensor,
    /// The width as a scalar.
    width: Tensor,
    /// A sample is the largest weighted corner, not their sum.
    pub(super) largest: bool,
}

impl Pixels {
    /// Of `images [images, channels, height, width]` and the number of each region's image, `[regions]`.
    pub(super) fn new(
        c: &mut Call<'_>,
        images: Tensor,
        of: Tensor,
        largest: bool,
    ) -> OpResult<Self> {
        let shape = c.shape(images).to_vec();
        let [count, channels, height, width] = shape.as_slice() else { return wrong("rank 4") };
        let flat = c.transpose(images, &[0, 2, 3, 1])?;
        let flat = c.reshape(flat, &[count * height * width, channels.clone()])?;
        let size = |c: &mut Call<'_>, dim: &Dim| -> OpResult {
            let t = c.dims(std::slice::from_ref(dim));
            c.reshape(t, &[])
        };
        let (tall, width) = (size(c, height)?, size(c, width)?);
        let of = c.cast(of, DType::I64)?;
        let of = c.unsqueeze(of, &[1, 2])?;
        let first_row = c.product(of, tall)?;
        Ok(Self { flat, channels: channels.clone(), first_row, width, largest })
    }

    /// Samples, 0 where they lie outside: `[regions, rows, n, columns, m, channels]`.
    pub(super) fn at(&self, c: &mut Call<'_>, down: &Samples, across: &Samples) -> OpResult {
        let mut total: Option<Tensor> = None;
        for corner in 0..4 {
            let (lower, right) = (corner / 2 == 1, corner % 2 == 1);
            let row = c.sum(self.first_row, if lower { down.high } else { down.low })?;
            let row = c.product(row, self.width)?;
            let column = if right { across.high } else { across.low };
            let place = both(c, row, column, BinaryOp::Add)?;
            let value = c.gather(self.flat, place, 0)?;
            let share = |c: &mut Call<'_>, share: Tensor, far: bool| -> OpResult {
                let one = c.scalar_like(1.0, share);
                if far { Ok(share) } else { c.difference(one, share) }
            };
            let (v, h) = (share(c, down.share, lower)?, share(c, across.share, right)?);
            let weight = both(c, v, h, BinaryOp::Mul)?;
            let weight = c.unsqueeze(weight, &[5])?;
            let weight = c.cast_like(weight, value)?;
            let part = c.product(value, weight)?;
            total = Some(match total {
                None => part,
                Some(total) if self.largest => c.binary(BinaryOp::Max, total, part)?,
                Some(total) => c.sum(total, part)?,
            });
        }
        let Some(total) = total else { return wrong("nothing to sample") };
        let inside = both(c, down.inside, across.inside, BinaryOp::And)?;
        let inside = c.unsqueeze(inside, &[5])?;
        let zero = c.scalar_like(0.0, total);
        c.select(inside, total, zero)
    }
}

/// What is `[regions, rows, n]` and what is `[regions, columns, m]` as one: `[regions, rows, n, columns, m]`.
pub(super) fn both(c: &mut Call<'_>, down: Tensor, across: Tensor, op: BinaryOp) -> OpResult {
    let (down, across) = (c.unsqueeze(down, &[3, 4])?, c.unsqueeze(across, &[1, 2])?);
    c.binary(op, down, across)
}
