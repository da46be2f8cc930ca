//! Finding the driver, and its errors.

use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;

use cudarc::driver::sys;

use crate::{Error, Result};

/// `CUDA 12.0`: the oldest driver (R525) whose functions suffice.
const OLDEST: u32 = 12000;

/// Makes a context; bindings for CUDA 13 leave it out.
pub(super) const CREATE_CONTEXT: &str = "cuCtxCreate_v2";

/// Every function that is called on any driver; cudarc panics at the call of one that is missing.
const FUNCTIONS: [&str; 56] = [
    "cuInit",
    "cuDriverGetVersion",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    CREATE_CONTEXT,
    "cuCtxDestroy_v2",
    "cuCtxSetCurrent",
    "cuCtxSynchronize",
    "cuMemGetInfo_v2",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemAllocFromPoolAsync",
    "cuMemFreeAsync",
    "cuMemPoolCreate",
    "cuMemPoolDestroy",
    "cuMemPoolSetAttribute",
    "cuMemPoolTrimTo",
    "cuMemHostAlloc",
    "cuMemFreeHost",
    "cuMemHostRegister_v2",
    "cuMemHostUnregister",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuMemsetD8Async",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
    "cuStreamAddCallback",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuEventDestroy_v2",
    "cuModuleLoadDataEx",
    "cuModuleUnload",
    "cuModuleGetFunction",
    "cuFuncSetAttribute",
    "cuLaunchHostFunc",
    "cuLaunchKernel",
    "cuGraphCreate",
    "cuGraphDestroy",
    "cuGraphAddKernelNode_v2",
    "cuGraphAddMemcpyNode",
    "cuGraphInstantiateWithFlags",
    "cuGraphExecDestroy",
    "cuGraphExecKernelNodeSetParams_v2",
    "cuGraphExecMemcpyNodeSetParams",
    "cuGraphNodeSetEnabled",
    "cuGraphLaunch",
    "cuGetErrorName",
    "cuGetErrorString",
];

/// Loads and initialises the driver once; gives the CUDA version that it supports, as
/// `1000 * major + 10 * minor`.
pub(super) fn open() -> Result<u32> {
    static DRIVER: OnceLock<Result<u32, String>> = OnceLock::new();
    DRIVER.get_or_init(load).clone().map_err(Error::NoCuda)
}

/// Whether there is a driver, of whatever version.
pub(super) fn is_present() -> bool {
    static PRESENT: OnceLock<bool> = OnceLock::new();
    // SAFETY: loading the driver's library runs its initialisers, which have no preconditions.
    *PRESENT.get_or_init(|| unsafe { sys::is_culib_present() })
}

fn load() -> Result<u32, String> {
    if !is_present() {
        return Err("there is no NVIDIA driver (libcuda.so.1) on this machine".to_owned());
    }
    // SAFETY: the library is present, so that this does not panic.
    let library = unsafe { sys::culib() };
    let missing: Vec<&str> = FUNCTIONS
        .into_iter()
        .filter(|name| {
            // SAFETY: the symbol's address is not used.
            unsafe { library.get::<*const c_void>(name.as_bytes()) }.is_err()
        })
        .collect();
    let mut version = 0;
    if !missing.contains(&"cuDriverGetVersion") {
        // SAFETY: the function exists and writes one integer.
        check("cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&mut version) })
            .map_err(|e| e.to_string())?;
    }
    let version = u32::try_from(version).unwrap_or(0);
    if version < OLDEST || !missing.is_empty() {
        let found = version_text(version);
        let lacks = missing.first().map_or_else(String::new, |m| format!(" and lacks {m}"));
        return Err(format!(
            "the NVIDIA driver supports CUDA {found}{lacks}; CUDA 12.0 (driver R525) is needed"
        ));
    }
    // SAFETY: the function exists; it may be called any number of times.
    check("cuInit", unsafe { sys::cuInit(0) }).map_err(|e| e.to_string())?;
    Ok(version)
}

/// `13.0` for 13000.
pub(crate) fn version_text(version: u32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// The error of a call that did not succeed.
pub(super) fn check(call: &'static str, result: sys::CUresult) -> Result<()> {
    match result {
        sys::CUresult::CUDA_SUCCESS => Ok(()),
        code => Err(error(call, code)),
    }
}

/// The error of a call that used no context, or one that is gone.
pub(super) fn error(call: &'static str, code: sys::CUresult) -> Error {
    Error::Driver { call, name: describe(code), doing: String::new() }
}

/// The driver's name of an error, and what that means.
pub(super) fn describe(code: sys::CUresult) -> String {
    let text = |get: unsafe fn(sys::CUresult, *mut *const c_char) -> sys::CUresult| {
        let mut text: *const c_char = std::ptr::null();
        // SAFETY: `get` writes a pointer to a static text, or null.
        let found = unsafe { get(code, &mut text) } == sys::CUresult::CUDA_SUCCESS;
        if !found || text.is_null() {
            return None;
        }
        // SAFETY: the text is static and ends in a zero.
        Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    };
    let name = text(sys::cuGetErrorName).unwrap_or_else(|| format!("error {}", code as u32));
    match text(sys::cuGetErrorString) {
        Some(meaning) => format!("{name} ({meaning})"),
        None => name,
    }
}

/// Adds what a failed call was for.
pub(crate) fn during<T>(result: Result<T>, doing: impl FnOnce() -> String) -> Result<T> {
    result.map_err(|error| match error {
        Error::Driver { call, name, .. } => Error::Driver { call, name, doing: doing() },
        other => other,
    })
}
