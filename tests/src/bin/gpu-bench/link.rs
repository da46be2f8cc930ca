//! What the link to the GPU can do.

#![allow(unsafe_code)]

use super::Failure;
use cudarc::driver::CudaContext;
use std::time::Instant;

const COPIES: usize = 8;

/// GB/s of one copy of so many bytes of page-locked memory: the best of several.
pub(super) fn gb_per_s(bytes: usize) -> Result<f64, Failure> {
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    // SAFETY: all of it is written before it is read.
    let mut host = unsafe { context.alloc_pinned_with_flags::<u8>(bytes, 0) }?;
    host.as_mut_slice()?.fill(1);
    let mut device = stream.alloc_zeros::<u8>(bytes)?;
    stream.synchronize()?;
    let mut best = f64::INFINITY;
    for _ in 0..COPIES {
        let start = Instant::now();
        stream.memcpy_htod(&host, &mut device)?;
        stream.synchronize()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(bytes as f64 / best / 1e9)
}
