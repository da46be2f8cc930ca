//! Pools of a GPU's memory.

use std::ffi::c_int;

use cudarc::driver::sys;

use super::library::check;
use crate::Result;

/// A pool, apart from the one that other libraries in the process share. Memory that was given back to it stays with
/// the process, so that the next tensors cost nothing.
#[derive(Debug)]
pub(super) struct MemoryPool(sys::CUmemoryPool);

// SAFETY: pools may be used from any thread, and the driver locks.
unsafe impl Send for MemoryPool {}
// SAFETY: as above.
unsafe impl Sync for MemoryPool {}

impl MemoryPool {
    /// An empty pool of the device with this number, which has them.
    pub(super) fn new(ordinal: c_int) -> Result<Self> {
        let properties = sys::CUmemPoolProps {
            allocType: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            handleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
            location: sys::CUmemLocation {
                type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
                id: ordinal,
            },
            win32SecurityAttributes: std::ptr::null_mut(),
            maxSize: 0,
            usage: 0,
            reserved: [0; 54],
        };
        let mut raw = std::ptr::null_mut();
        // SAFETY: the properties are complete; the pool is destroyed when this is dropped.
        check("cuMemPoolCreate", unsafe { sys::cuMemPoolCreate(&mut raw, &properties) })?;
        let this = Self(raw);
        let mut threshold = u64::MAX;
        // SAFETY: the attribute's value is a 64-bit integer.
        check("cuMemPoolSetAttribute", unsafe {
            sys::cuMemPoolSetAttribute(
                raw,
                sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                (&raw mut threshold).cast(),
            )
        })?;
        Ok(this)
    }

    /// Gives the GPU back what the process keeps.
    pub(super) fn trim(&self) -> sys::CUresult {
        // SAFETY: the pool is alive.
        unsafe { sys::cuMemPoolTrimTo(self.0, 0) }
    }

    pub(super) fn raw(&self) -> sys::CUmemoryPool {
        self.0
    }
}

impl Drop for MemoryPool {
    fn drop(&mut self) {
        // SAFETY: made in `new`, destroyed once; what a fault left in it stays with the driver.
        unsafe { sys::cuMemPoolDestroy(self.0) };
    }
}
