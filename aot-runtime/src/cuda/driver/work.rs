//! Work for a stream.

use std::ffi::c_void;

use cudarc::driver::sys;

use super::Stream;
use super::module::Function;
use crate::Result;

/// A launch or a copy.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work<'a> {
    /// A kernel, its blocks, and its one parameter. Skipped if there are no blocks.
    Launch { function: &'a Function, blocks: u32, arguments: &'a [u64] },
    /// A copy. Skipped if it has no bytes.
    Copy(Transfer),
}

/// A copy of so many bytes between addresses of the GPU's memory, or of page-locked memory of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transfer {
    /// On the GPU.
    Within { from: u64, to: u64, bytes: usize },
    /// From the host to the GPU.
    Up { from: usize, to: u64, bytes: usize },
    /// From the GPU to the host.
    Down { from: u64, to: usize, bytes: usize },
}

impl Transfer {
    pub(crate) fn bytes(&self) -> usize {
        let (Self::Within { bytes, .. } | Self::Up { bytes, .. } | Self::Down { bytes, .. }) = self;
        *bytes
    }
}

impl Work<'_> {
    /// Whether it does nothing.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Launch { blocks, .. } => *blocks == 0,
            Self::Copy(copy) => copy.bytes() == 0,
        }
    }
}

/// Puts work into a stream.
///
/// # Safety
/// Arguments have their kernel's layout, and the memory that is worked on is what the kernel expects and, of copies, is
/// allocated, until the work is done.
pub(crate) unsafe fn execute(stream: &Stream, work: &Work<'_>) -> Result<()> {
    if work.is_empty() {
        return Ok(());
    }
    match work {
        // SAFETY: the caller's promise.
        Work::Launch { function, blocks, arguments } => unsafe {
            function.launch(stream, *blocks, arguments)
        },
        Work::Copy(copy) => {
            let raw = stream.raw();
            // SAFETY: the caller's promise.
            let (call, result) = unsafe {
                match *copy {
                    Transfer::Within { from, to, bytes } => {
                        ("cuMemcpyDtoDAsync", sys::cuMemcpyDtoDAsync_v2(to, from, bytes, raw))
                    }
                    Transfer::Up { from, to, bytes } => (
                        "cuMemcpyHtoDAsync",
                        sys::cuMemcpyHtoDAsync_v2(to, from as *const c_void, bytes, raw),
                    ),
                    Transfer::Down { from, to, bytes } => (
                        "cuMemcpyDtoHAsync",
                        sys::cuMemcpyDtoHAsync_v2(to as *mut c_void, from, bytes, raw),
                    ),
                }
            };
            stream.gpu().check(call, result)
        }
    }
}
