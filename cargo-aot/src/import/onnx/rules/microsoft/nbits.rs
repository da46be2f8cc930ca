//! Weights of a few bits with a scale per block.

use super::super::super::builder::{OpResult, Tensor, unsupported, wrong};
use super::super::super::call::Call;
use super::super::matmul::matmul;
use super::super::quantized::spread;
use super::super::table::{Entry, microsoft};
use super::with_bias;
use aot_ir::op::BinaryOp;
use aot_ir::{Constant, DType, Dim};

pub(in super::super) const RULES: &[Entry] =
    &[microsoft("MatMulNBits", matmul_nbits), microsoft("GatherBlockQuantized", gather)];

/// Unsigned integers of `bits` packed in bytes along the last axis, the first in the lowest bits, one by one.
fn unpacked(c: &mut Call<'_>, x: Tensor, bits: i64) -> OpResult {
    let dtype = match bits {
        8 => return Ok(x),
        4 => DType::U4,
        2 => DType::U2,
        other => return unsupported(format!("weights of {other} bits; 2, 4 and 8 are supported")),
    };
    let count = 8 / bits;
    let mut shape = c.shape(x).to_vec();
    let Some(last) = shape.last_mut() else { return wrong("packed weights without axes") };
    *last = last.scaled(count);
    if let Some(stored) = c.stored(x) {
        let extents: Option<Vec<usize>> =
            shape.iter().map(|d| usize::try_from(d.as_const()?).ok()).collect();
        let Some(shape) = extents else { return wrong("packed weights of a varying shape") };
        return Ok(c.constant(Constant { dtype, shape, ..stored }));
    }
    let axis = shape.len();
    let mut parts = Vec::new();
    for i in 0..count {
        let part = c.with(BinaryOp::Shr, x, (i * bits) as f64)?;
        let part = c.with(BinaryOp::BitAnd, part, ((1 << bits) - 1) as f64)?;
        parts.push(c.unsqueeze(part, &[axis])?);
    }
    let parts = c.concat(&parts, axis)?;
    c.reshape(parts, &shape)
}

/// `a · bᵀ` with `b [n, k]` stored as `[n, blocks, bytes]`.
fn matmul_nbits(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (a, b, scales) = (c.x(0)?, c.x(1)?, c.x(2)?);
    let (n, k) = (c.int("N", 0), c.int("K", 0));
    let (bits, block) = (c.int("bits", 4), c.int("block_size", 0));
    if n < 1 || k < 1 || block < 1 {
        return wrong(format!("N = {n}, K = {k}, block_size = {block}; all have to be positive"));
    }
    if c.int("weight_prepacked", 0) != 0 {
        return unsupported("weights that are packed for one GPU; export them as they are");
    }
    let dtype = c.dtype(a);
    let blocks = Dim::from((k + block - 1) / block);
    let n = Dim::from(n);
    let b = unpacked(c, b, bits)?;
    let b = c.cast(b, dtype)?;
    let zero = match c.opt(3) {
        None => c.scalar((1i64 << (bits - 1)) as f64, dtype),
        Some(zero) if c.dtype(zero).is_float() => c.reshape(zero, &[n.clone(), blocks.clone()])?,
        Some(zero) => {
            // Rows of whole bytes.
            let bytes = c.scope().ceil_div(&blocks.scaled(bits), &8.into());
            let zero = c.reshape(zero, &[n.clone(), bytes])?;
            let zero = unpacked(c, zero, bits)?;
            c.slice_axis(zero, 1, Dim::ZERO, blocks.clone(), 1)?
        }
    };
    let zero = c.cast(zero, dtype)?;
    let scales = c.reshape(scales, &[n.clone(), blocks.clone()])?;
    let scales = c.cast(scales, dtype)?;
    let whole = [n.clone(), blocks.scaled(block)];
    let b = match c.opt(4) {
        // Every column says which block's scale is its own.
        Some(order) => {
            let own = |c: &mut Call<'_>, t: Tensor| match c.rank(t) {
                0 => Ok(t),
                _ => c.gather(t, order, 1),
            };
            let (zero, scales) = (own(c, zero)?, own(c, scales)?);
            let b = c.reshape(b, &whole)?;
            let b = c.slice_axis(b, 1, Dim::ZERO, k.into(), 1)?;
            let b = c.difference(b, zero)?;
            c.product(b, scales)?
        }
        None => {
            let along = |c: &mut Call<'_>, t: Tensor| match c.rank(t) {
                0 => Ok(t),
                _ => c.unsqueeze(t, &[2]),
            };
            let (zero, scales) = (along(c, zero)?, along(c, scales)?);
            let b = c.reshape(b, &[n, blocks, block.into()])?;
            let b = c.difference(b, zero)?;
            let b = c.product(b, scales)?;
            let b = c.reshape(b, &whole)?;
            c.slice_axis(b, 1, Dim::ZERO, k.into(), 1)?
        }
    };
    let b = c.transpose_last(b)?;
    let y = matmul(c, a, b)?;
    Ok(vec![with_bias(c, y, c.opt(5))?])
}

/// Rows of a table of integers with scales and zero points per block of an axis.
fn gather(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (mut data, indices, scales) = (c.x(0)?, c.x(1)?, c.x(2)?);
    let (bits, block) = (c.int("bits", 4), c.int("block_size", 128));
    let rank = c.rank(data);
    let gathered = c.axis_of(c.int("gather_axis", 0), rank)?;
    let blocked = c.axis_of(c.int("quantize_axis", 1), rank)?;
    if gathered == blocked {
        return unsupported("blocks along the axis that is indexed");
    }
    let bytes = c.dtype(data) == DType::U8;
    let mut zero = c.opt(3);
    if bytes {
        data = unpacked(c, data, bits)?;
    }
    let dtype = c.dtype(scales);
    let mut parts = Vec::new();
    let table = c.shape(data).to_vec();
    let blocks = c.shape(scales)[blocked].clone();
    if let (Some(packed), true) = (zero, bytes) {
        let whole = unpacked(c, packed, bits)?;
        let extent = c.shape(scales)[rank - 1].clone();
        zero = Some(c.slice_axis(whole, rank - 1, Dim::ZERO, extent, 1)?);
    }
    for part in [Some(data), Some(scales), zero].into_iter().flatten() {
        let part = c.gather(part, indices, gathered)?;
        parts.push(c.cast(part, dtype)?);
    }
    let mut y = parts[0];
    let shape = c.shape(y).to_vec();
    // Axes behind the indexed one have moved.
    let shift = if blocked > gathered { shape.len() - table.len() } else { 0 };
    let axis = (blocked + shift) as i64;
    let block = if blocks.is(1) { table[blocked].as_const().unwrap_or(block) } else { block };
    let scale = spread(c, parts[1], &shape, axis, block)?;
    match parts.get(2) {
        Some(&zero) => {
            let zero = spread(c, zero, &shape, axis, block)?;
            y = c.difference(y, zero)?;
        }
        None if bytes => y = c.with(BinaryOp::Sub, y, (1i64 << (bits - 1)) as f64)?,
        None => {}
    }
    Ok(vec![c.product(y, scale)?])
}
