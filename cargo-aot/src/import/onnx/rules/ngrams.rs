//! How often sequences of integers occur.

use super::super::builder::{OpResult, Tensor, unsupported, wrong};
use super::super::call::Call;
use super::table::{Entry, onnx};
use aot_ir::op::{BinaryOp, ReduceOp};
use aot_ir::{Bytes, Constant, DType, Dim};

pub(super) const RULES: &[Entry] = &[onnx("TfIdfVectorizer", vectorizer)];

/// Most gaps that are tried: each is compared on its own.
const MAX_SKIPS: i64 = 64;

/// The n-grams of one length.
struct Grams {
    length: usize,
    /// One gram behind another.
    items: Vec<i64>,
}

/// The pool by length, from length 1 on.
fn pool(c: &Call<'_>) -> OpResult<Vec<Grams>> {
    let Some(pool) = c.ints_attr("pool_int64s").filter(|p| !p.is_empty()) else {
        return unsupported("n-grams of strings; export the model with integers");
    };
    let starts = c.ints_attr("ngram_counts").unwrap_or_default();
    let mut grams = Vec::new();
    for (i, &start) in starts.iter().enumerate() {
        let end = starts.get(i + 1).copied().unwrap_or(pool.len() as i64);
        let range = usize::try_from(start).unwrap_or(usize::MAX)..usize::try_from(end).unwrap_or(0);
        match pool.get(range) {
            Some(items) if items.len() % (i + 1) == 0 => {
                grams.push(Grams { length: i + 1, items: items.to_vec() });
            }
            _ => return wrong(format!("ngram_counts is {starts:?} for {} integers", pool.len())),
        }
    }
    Ok(grams)
}

fn vector(c: &mut Call<'_>, values: &[i64]) -> Tensor {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let (name, shape) = (String::new(), vec![values.len()]);
    c.constant(Constant { name, dtype: DType::I64, shape, bytes: Bytes::from(bytes) })
}

/// Of `[l]` or `[n, l]`: how often each n-gram of the pool occurs, with gaps of equal size up to a limit.
fn vectorizer(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let x = c.x(0)?;
    let (rank, shape) = (c.rank(x), c.shape(x).to_vec());
    if !c.dtype(x).is_int() || !(1..=2).contains(&rank) {
        return unsupported("inputs other than integers of rank 1 or 2");
    }
    let Some(length) = shape[rank - 1].as_const() else {
        return unsupported("a run-time number of items; fix that dim to a constant");
    };
    let x = c.cast(x, DType::I64)?;
    let x = c.unsqueeze(x, &[rank])?;
    let (least, most) = (c.int("min_gram_length", 1), c.int("max_gram_length", 1));
    let skips = c.int("max_skip_count", 0).clamp(0, length);
    if skips > MAX_SKIPS {
        return unsupported(format!("max_skip_count {skips}; up to {MAX_SKIPS} is supported"));
    }
    let mut parts = Vec::new();
    for Grams { length: n, items } in pool(c)? {
        let count = items.len() / n;
        let mut total = {
            let zero = c.scalar(0.0, DType::F32);
            let mut shape = shape.clone();
            shape[rank - 1] = Dim::from(count as i64);
            c.expand(zero, &shape)?
        };
        let wanted = (least..=most).contains(&(n as i64)) && count > 0;
        let gaps = if n == 1 { 0 } else { skips };
        for gap in 0..if wanted { gaps + 1 } else { 0 } {
            let places = length - (n as i64 - 1) * (gap + 1);
            if places < 1 {
                break;
            }
            let mut found: Option<Tensor> = None;
            for k in 0..n {
                let start = Dim::from(k as i64 * (gap + 1));
                let item = c.slice_axis(x, rank - 1, start, places.into(), 1)?;
                let column: Vec<i64> = items.iter().skip(k).step_by(n).copied().collect();
                let column = vector(c, &column);
                let here = c.binary(BinaryOp::Eq, item, column)?;
                found = Some(match found {
                    Some(found) => c.binary(BinaryOp::And, found, here)?,
                    None => here,
                });
            }
            if let Some(found) = found {
                let found = c.cast(found, DType::F32)?;
                let found = c.reduce(ReduceOp::Sum, found, &[rank - 1], false)?;
                total = c.sum(total, found)?;
            }
        }
        parts.push(total);
    }
    let counts = c.concat(&parts, rank - 1)?;
    let weighed = weighed(c, counts)?;
    ordered(c, weighed).map(|y| vec![y])
}

/// Counts times weights, or the weights of what occurs, as the mode says.
fn weighed(c: &mut Call<'_>, counts: Tensor) -> OpResult {
    let mode = c.text("mode", "TF");
    let weights = match c.floats_attr("weights").filter(|w| !w.is_empty()) {
        _ if mode == "TF" => return Ok(counts),
        None => None,
        Some(weights) => {
            let bytes: Vec<u8> = weights.iter().flat_map(|v| v.to_le_bytes()).collect();
            let (name, shape) = (String::new(), vec![weights.len()]);
            let bytes = Bytes::from(bytes);
            Some(c.constant(Constant { name, dtype: DType::F32, shape, bytes }))
        }
    };
    let factors = match mode.as_str() {
        "IDF" => c.with(BinaryOp::Min, counts, 1.0)?,
        "TFIDF" => counts,
        other => return wrong(format!("mode is `{other}`")),
    };
    match weights {
        Some(weights) => c.product(factors, weights),
        None => Ok(factors),
    }
}

/// The columns in the order that `ngram_indexes` gives, with zeros where it names none.
fn ordered(c: &mut Call<'_>, x: Tensor) -> OpResult {
    let axis = c.rank(x) - 1;
    let indexes = c.ints_attr("ngram_indexes").unwrap_or_default();
    let count = indexes.iter().copied().max().map_or(0, |m| m.saturating_add(1));
    if !c.shape(x)[axis].is(indexes.len() as i64) || !(1..=1 << 24).contains(&count) {
        return wrong(format!("{} ngram_indexes up to {count}", indexes.len()));
    }
    let mut from = vec![indexes.len() as i64; count as usize];
    for (i, &index) in indexes.iter().enumerate() {
        match usize::try_from(index).ok().and_then(|index| from.get_mut(index)) {
            Some(from) => *from = i as i64,
            None => return wrong(format!("ngram_indexes has {index}")),
        }
    }
    let (low, mut high) = (vec![Dim::ZERO; axis + 1], vec![Dim::ZERO; axis + 1]);
    high[axis] = Dim::ONE;
    let zeros = aot_ir::op::PadMode::Constant(aot_ir::Scalar::Float(0.0));
    let x = c.pad(x, &low, &high, zeros)?;
    let from = vector(c, &from);
    c.gather(x, from, axis)
}
