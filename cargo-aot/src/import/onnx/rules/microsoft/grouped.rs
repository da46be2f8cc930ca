//! Attention of a decoder whose heads share keys and values, with its cache.

use super::super::super::builder::{OpResult, Tensor, unsupported, wrong};
use super::super::super::call::Call;
use super::super::attention::{
    Capped, Heads, Rotation, attend, join_heads, rotate, spelled_out, split_heads,
};
use super::super::generate::coordinates;
use super::super::table::{Entry, microsoft};
use super::attention::scale_of;
use aot_ir::op::{BinaryOp, PadMode};
use aot_ir::{DType, Dim, Scalar};

pub(in super::super) const RULES: &[Entry] = &[microsoft("GroupQueryAttention", grouped)];

/// Where the new tokens of each row lie in the cache.
struct Rows {
    /// `I64 [n, 1, 1, 1]`: place of the first new token.
    start: Tensor,
    /// How many new tokens there are.
    count: Dim,
    /// Extent of the cache after the call.
    extent: Dim,
}

/// Inputs: q, k, v, past keys and values, lengths less one, the greatest length, cosines, sines, positions,
/// added bias, sinks. Without keys and values, `q` holds them side by side.
fn grouped(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (heads, shared) = (c.int("num_heads", 0), c.int("kv_num_heads", 0));
    if (12..=16).any(|n| c.opt(n).is_some()) {
        return unsupported("scales, norms or query lengths in GroupQueryAttention");
    }
    let (q, k, v) = separate(c, heads, shared)?;
    let mut q = split_heads(c, q, heads)?;
    let mut k = split_heads(c, k, shared)?;
    let v = split_heads(c, v, shared)?;
    let (past_k, past_v) = (c.opt(3), c.opt(4));
    let rows = rows(c, q, past_k)?;
    if c.flag("do_rotary", false) {
        let caches = [c.x(7)?, c.x(8)?];
        let positions = positions(c, &rows)?;
        let interleaved = c.flag("rotary_interleaved", false);
        let turn = |c: &mut Call<'_>, x: Tensor| -> OpResult {
            // The caches are half as wide as what they turn.
            let turned = c.shape(caches[0]).last().and_then(Dim::as_const).unwrap_or(0) * 2;
            let rotation = Rotation { heads: 0, turned, interleaved };
            rotate(c, &rotation, x, caches, Some(positions))
        };
        (q, k) = (turn(c, q)?, turn(c, k)?);
    }
    let k = cached(c, &rows, past_k, k)?;
    let v = cached(c, &rows, past_v, v)?;
    let seen = seen(c, &rows)?;
    let (scale, softcap) = (scale_of(c, q)?, c.float("softcap", 0.0));
    let sink = match c.opt(11) {
        Some(sink) => Some(c.reshape(sink, &[Dim::ONE, heads.into(), Dim::ONE, Dim::ONE])?),
        None if c.flag("smooth_softmax", false) => {
            let zero = c.scalar_like(0.0, q);
            Some(c.reshape(zero, &[Dim::ONE; 4])?)
        }
        None => None,
    };
    let mask = match c.opt(10) {
        Some(bias) => {
            let never = c.scalar_like(f64::NEG_INFINITY, bias);
            c.select(seen, bias, never)?
        }
        None => seen,
    };
    let heads = Heads { q, k, v, mask: Some(mask), scale, causal: None, empty_is_zero: false };
    let y = if softcap > 0.0 || sink.is_some() {
        spelled_out(c, heads, Capped { softcap, sink, mode: 0 })?.0
    } else {
        attend(c, heads)?
    };
    Ok(vec![join_heads(c, y)?, k, v])
}

fn separate(c: &mut Call<'_>, heads: i64, shared: i64) -> OpResult<(Tensor, Tensor, Tensor)> {
    let q = c.x(0)?;
    match (c.opt(1), c.opt(2)) {
        (Some(k), Some(v)) => Ok((q, k, v)),
        (None, None) if c.rank(q) == 3 && heads > 0 && shared > 0 => {
            let size = c.scope().floor_div(&c.shape(q)[2], &(heads + 2 * shared).into());
            let sizes = [size.scaled(heads), size.scaled(shared), size.scaled(shared)];
            let parts = c.split(q, 2, &sizes)?;
            Ok((parts[0], parts[1], parts[2]))
        }
        _ => wrong("queries, keys and values are neither separate nor packed"),
    }
}

fn rows(c: &mut Call<'_>, q: Tensor, past: Option<Tensor>) -> OpResult<Rows> {
    let (batch, count) = (c.shape(q)[0].clone(), c.shape(q)[2].clone());
    let greatest = match c.input_dims(6, "the total sequence length of GroupQueryAttention")? {
        Some(dims) if dims.len() == 1 => dims[0].clone(),
        _ => return wrong("the total sequence length has to be one number"),
    };
    let past = past.and_then(|past| c.shape(past).get(2).cloned()).unwrap_or_default();
    let extent = c.scope().max(&greatest, &past);
    let last = c.x(5)?;
    let last = c.cast(last, DType::I64)?;
    let last = c.reshape(last, &[batch, Dim::ONE, Dim::ONE, Dim::ONE])?;
    let shift = c.dims(&[Dim::ONE - &count]);
    let shift = c.reshape(shift, &[])?;
    let start = c.sum(last, shift)?;
    let start = c.with(BinaryOp::Max, start, 0.0)?;
    Ok(Rows { start, count, extent })
}

/// `I64 [n, s]`.
fn positions(c: &mut Call<'_>, rows: &Rows) -> OpResult {
    if let Some(given) = c.opt(9) {
        return Ok(given);
    }
    let at = coordinates(c, &[Dim::ONE, rows.count.clone()], 1, DType::I64)?;
    let start = c.squeeze(rows.start, &[2, 3])?;
    c.sum(at, start)
}

/// Past entries with the new ones behind them, each row at its own place: `[n, h, extent, d]`.
fn cached(c: &mut Call<'_>, rows: &Rows, past: Option<Tensor>, new: Tensor) -> OpResult {
    let filled = |c: &mut Call<'_>, x: Tensor| -> OpResult {
        let (low, mut high) = (vec![Dim::ZERO; 4], vec![Dim::ZERO; 4]);
        high[2] = &rows.extent - &c.shape(x)[2];
        c.pad(x, &low, &high, PadMode::Constant(Scalar::Float(0.0)))
    };
    let past = match past {
        Some(past) if !c.shape(past).get(2).is_some_and(|d| d.is(0)) => past,
        _ => return filled(c, new),
    };
    let past = filled(c, past)?;
    let at = [Dim::ONE, Dim::ONE, rows.extent.clone(), Dim::ONE];
    let at = coordinates(c, &at, 2, DType::I64)?;
    let from = c.difference(at, rows.start)?;
    let last = c.dims(&[&rows.count - 1]);
    let last = c.reshape(last, &[])?;
    let inside = c.with(BinaryOp::Max, from, 0.0)?;
    let inside = c.binary(BinaryOp::Min, inside, last)?;
    let mut shape = c.shape(new).to_vec();
    shape[2] = rows.extent.clone();
    let inside = c.expand(inside, &shape)?;
    let moved = c.gather_elements(new, inside, 2)?;
    let kept = c.with(BinaryOp::Lt, from, 0.0)?;
    let beyond = c.binary(BinaryOp::Gt, from, last)?;
    let zero = c.scalar_like(0.0, new);
    let moved = c.select(beyond, zero, moved)?;
    c.select(kept, past, moved)
}

/// `Bool [n, 1, s, extent]`: which places a new token sees.
fn seen(c: &mut Call<'_>, rows: &Rows) -> OpResult {
    let row = [Dim::ONE, Dim::ONE, rows.count.clone(), Dim::ONE];
    let row = coordinates(c, &row, 2, DType::I64)?;
    let own = c.sum(row, rows.start)?;
    let column = [Dim::ONE, Dim::ONE, Dim::ONE, rows.extent.clone()];
    let column = coordinates(c, &column, 3, DType::I64)?;
    let reach = if c.flag("causal", true) {
        own
    } else {
        let end = c.dims(&[&rows.count - 1]);
        let end = c.reshape(end, &[])?;
        c.sum(rows.start, end)?
    };
    let seen = c.binary(BinaryOp::Le, column, reach)?;
    match c.int("local_window_size", -1) {
        window @ 1.. => {
            let first = c.with(BinaryOp::Sub, own, window as f64)?;
            let near = c.binary(BinaryOp::Gt, column, first)?;
            c.binary(BinaryOp::And, seen, near)
        }
        _ => Ok(seen),
    }
}
