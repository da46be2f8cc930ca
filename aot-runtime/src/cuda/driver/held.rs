//! Contexts of GPUs.

use std::ffi::c_uint;

use cudarc::driver::sys;

use super::library::CREATE_CONTEXT;

/// A context, which lives at least as long as this.
#[derive(Debug)]
pub(super) struct Held {
    device: sys::CUdevice,
    raw: sys::CUcontext,
    /// Whether it was made here; or else it is the primary one, which other libraries in the process share.
    own: bool,
}

// SAFETY: contexts may be used from any thread, and the driver locks.
unsafe impl Send for Held {}
// SAFETY: as above.
unsafe impl Sync for Held {}

/// `cuCtxCreate_v2`, which every driver has.
type Create = unsafe extern "C" fn(*mut sys::CUcontext, c_uint, sys::CUdevice) -> sys::CUresult;

fn done(result: sys::CUresult) -> Result<(), sys::CUresult> {
    if result == sys::CUresult::CUDA_SUCCESS { Ok(()) } else { Err(result) }
}

impl Held {
    /// The device's primary context, current on this thread.
    pub(super) fn primary(device: sys::CUdevice) -> Result<Self, sys::CUresult> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the device is valid; the retained context is released when this is dropped.
        done(unsafe { sys::cuDevicePrimaryCtxRetain(&mut raw, device) })?;
        let this = Self { device, raw, own: false };
        this.enter()?;
        Ok(this)
    }

    /// Another context of the device, current on this thread.
    pub(super) fn own(device: sys::CUdevice) -> Result<Self, sys::CUresult> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the driver is loaded.
        let library = unsafe { sys::culib() };
        // SAFETY: the function has this type.
        let create = unsafe { library.get::<Create>(CREATE_CONTEXT.as_bytes()) };
        let create = create.map_err(|_| sys::CUresult::CUDA_ERROR_NOT_FOUND)?;
        // SAFETY: the device is valid; the context is destroyed when this is dropped.
        done(unsafe { create(&mut raw, 0, device) })?;
        let this = Self { device, raw, own: true };
        this.enter()?;
        Ok(this)
    }

    /// Makes it current on this thread.
    pub(super) fn enter(&self) -> Result<(), sys::CUresult> {
        // SAFETY: the context is alive.
        done(unsafe { sys::cuCtxSetCurrent(self.raw) })
    }

    /// Leaves this thread without a context.
    pub(super) fn leave() {
        // SAFETY: no context is a valid choice.
        unsafe { sys::cuCtxSetCurrent(std::ptr::null_mut()) };
    }

    /// The device that it is of.
    pub(super) fn device(&self) -> sys::CUdevice {
        self.device
    }

    pub(super) fn raw(&self) -> sys::CUcontext {
        self.raw
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        match self.own {
            // SAFETY: made in `own`, destroyed once; everything in it is gone or lost.
            true => unsafe { sys::cuCtxDestroy_v2(self.raw) },
            // SAFETY: retained once in `primary`.
            false => unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) },
        };
    }
}
