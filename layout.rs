//! Where the buffers lie that live as long as the model, or as long as `prepare`.

use crate::program::{Place, Program};
use crate::{Error, Result};

/// Every buffer begins at a multiple of this many bytes.
const ALIGNMENT: u64 = 256;

/// Offsets of buffers of constant size.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// Offset of every weight in the block of weights.
    pub(super) weights: Vec<u64>,
    /// Bytes of that block.
    pub(super) weight_bytes: u64,
    /// For every buffer of the program that `prepare` makes or uses, its offset in its block.
    pub(super) buffers: Vec<u64>,
    /// Bytes of the block that `prepare` fills.
    pub(super) prepared_bytes: u64,
    /// Bytes that are needed during `prepare` only.
    pub(super) prepare_scratch_bytes: u64,
}

impl Layout {
    pub(super) fn new(program: &Program) -> Result<Self> {
        let mut layout = Self { buffers: vec![0; program.buffers.len()], ..Self::default() };
        for weight in &program.weights {
            let elements = weight.shape.iter().try_fold(1u64, |n, d| n.checked_mul(*d));
            let bytes = elements.and_then(|n| weight.dtype.bytes_for(n));
            layout.weights.push(take(&mut layout.weight_bytes, bytes)?);
        }
        for (i, buffer) in program.buffers.iter().enumerate() {
            let end = match buffer.place {
                Place::Prepared => &mut layout.prepared_bytes,
                Place::PrepareScratch => &mut layout.prepare_scratch_bytes,
                _ => continue,
            };
            let elements = buffer.elements.as_const().and_then(|n| u64::try_from(n).ok());
            let bytes = elements.and_then(|n| buffer.dtype.bytes_for(n));
            layout.buffers[i] = take(end, bytes)?;
        }
        Ok(layout)
    }
}

/// Takes `bytes` at the next aligned offset.
pub(super) fn take(end: &mut u64, bytes: Option<u64>) -> Result<u64> {
    let place = end.checked_next_multiple_of(ALIGNMENT);
    let next = place.zip(bytes).and_then(|(place, bytes)| place.checked_add(bytes));
    match (place, next) {
        (Some(place), Some(next)) => {
            *end = next;
            Ok(place)
        }
        _ => Err(Error::artifact("the program", "a buffer has no sane size")),
    }
}
