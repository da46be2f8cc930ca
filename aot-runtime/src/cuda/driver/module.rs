//! Kernel images and their functions.

use std::ffi::{CString, c_void};
use std::sync::Arc;

use cudarc::driver::sys;
use cudarc::driver::sys::CUfunction_attribute as Attribute;
use cudarc::driver::sys::CUjit_option as Option_;

use super::library::during;
use super::{Gpu, Stream};
use crate::{Error, Result};

/// `CUDA 12.4`: drivers from there on tell the size of a kernel's parameters.
const TELLS_PARAMETERS: u32 = 12040;
const LOG: usize = 4096;

/// A kernel image in a context.
#[derive(Debug)]
pub(crate) struct Module {
    gpu: Arc<Gpu>,
    raw: sys::CUmodule,
}

// SAFETY: modules may be used from any thread, and the driver locks.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    /// Loads a cubin, or PTX, which the driver compiles.
    pub(crate) fn load(gpu: &Arc<Gpu>, image: &[u8]) -> Result<Arc<Self>> {
        gpu.enter()?;
        // The driver reads PTX up to a zero, and a cubin up to the end that its header tells.
        let mut text = image.to_vec();
        text.push(0);
        let mut log = vec![0u8; LOG];
        let mut options =
            [Option_::CU_JIT_ERROR_LOG_BUFFER, Option_::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), (LOG - 1) as *mut c_void];
        let mut raw = std::ptr::null_mut();
        // SAFETY: a context is current; the image ends in a zero; each option has its value, and the
        // log has the length that is given.
        let result = gpu.check("cuModuleLoadDataEx", unsafe {
            sys::cuModuleLoadDataEx(
                &mut raw,
                text.as_ptr().cast(),
                2,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        });
        during(result, || {
            let end = log.iter().position(|b| *b == 0).unwrap_or(0);
            let log = String::from_utf8_lossy(&log[..end]);
            format!("loading a kernel image on {} {}", gpu.name(), log.trim())
        })?;
        Ok(Arc::new(Self { gpu: gpu.clone(), raw }))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if self.gpu.enter().is_ok() {
            // SAFETY: loaded in `load`, unloaded once; functions keep the module alive.
            unsafe { sys::cuModuleUnload(self.raw) };
        }
    }
}

/// A kernel and how it is launched.
#[derive(Debug)]
pub(crate) struct Function {
    _module: Arc<Module>,
    raw: sys::CUfunction,
    threads: u32,
    shared: u32,
    /// Bytes of its one parameter, where the driver tells.
    parameter: Option<usize>,
}

// SAFETY: functions may be used from any thread, and the driver locks.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Function {
    /// The kernel `entry` with `threads` per block and `shared` bytes of dynamic shared memory.
    pub(crate) fn new(
        module: &Arc<Module>,
        entry: &str,
        threads: u32,
        shared: u32,
    ) -> Result<Self> {
        let name = CString::new(entry)
            .map_err(|_| Error::artifact("a kernel", "its name has a zero in it"))?;
        let about = || format!("looking for kernel `{entry}`");
        let mut raw = std::ptr::null_mut();
        // SAFETY: the module is loaded; the name ends in a zero.
        let result = module.gpu.check("cuModuleGetFunction", unsafe {
            sys::cuModuleGetFunction(&mut raw, module.raw, name.as_ptr())
        });
        during(result, about)?;
        if shared > 0 {
            let bytes = i32::try_from(shared).unwrap_or(i32::MAX);
            // SAFETY: the function is valid.
            let result = module.gpu.check("cuFuncSetAttribute", unsafe {
                sys::cuFuncSetAttribute(
                    raw,
                    Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                    bytes,
                )
            });
            during(result, || format!("giving kernel `{entry}` {shared} bytes of shared memory"))?;
        }
        let mut parameter = None;
        if module.gpu.driver() >= TELLS_PARAMETERS {
            let (mut offset, mut bytes) = (0, 0);
            // SAFETY: the driver has this function; two integers are written.
            let result = unsafe { sys::cuFuncGetParamInfo(raw, 0, &mut offset, &mut bytes) };
            // A kernel without parameters has no first one.
            parameter = Some(if result == sys::CUresult::CUDA_SUCCESS { bytes } else { 0 });
        }
        Ok(Self { _module: module.clone(), raw, threads, shared, parameter })
    }

    /// Bytes of its one parameter, where the driver tells.
    pub(crate) fn parameter(&self) -> Option<usize> {
        self.parameter
    }

    pub(super) fn raw(&self) -> sys::CUfunction {
        self.raw
    }

    /// Threads per block.
    pub(super) fn threads(&self) -> u32 {
        self.threads
    }

    /// Bytes of dynamic shared memory per block.
    pub(super) fn shared(&self) -> u32 {
        self.shared
    }

    /// Puts a launch into a stream. `arguments` is the kernel's one parameter.
    ///
    /// # Safety
    /// The arguments have the kernel's layout, and the memory that they point to is what the kernel
    /// expects, until it is done.
    pub(crate) unsafe fn launch(
        &self,
        stream: &Stream,
        blocks: u32,
        arguments: &[u64],
    ) -> Result<()> {
        let mut parameters = [arguments.as_ptr().cast_mut().cast::<c_void>()];
        // SAFETY: the function and the stream are alive and of one context; the driver copies the
        // parameter before it returns; the rest is the caller's promise.
        stream.gpu().check("cuLaunchKernel", unsafe {
            sys::cuLaunchKernel(
                self.raw,
                blocks,
                1,
                1,
                self.threads,
                1,
                1,
                self.shared,
                stream.raw(),
                parameters.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        })
    }
}
