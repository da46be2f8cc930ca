//! Word from the driver that a stream has come to a point.

use std::ffi::c_void;
use std::sync::Arc;
use std::task::{Context, Poll};

use cudarc::driver::sys;

use super::{Gpu, Stream};
use crate::concurrent::Signal;
use crate::{Error, Result};

/// A point in a stream that a task can wait for; how everything up to it has ended.
#[derive(Debug)]
pub(crate) struct Notice(Signal<sys::CUresult>);

impl Notice {
    /// The current end of a stream.
    pub(crate) fn of(stream: &Stream) -> Result<Arc<Self>> {
        let notice = Arc::new(Self(Signal::new()));
        let data = Arc::into_raw(notice.clone());
        // SAFETY: the stream is alive; the callback gets what it expects, once, whether the stream fails or not.
        let result = stream.gpu().check("cuStreamAddCallback", unsafe {
            sys::cuStreamAddCallback(stream.raw(), Some(told), data.cast_mut().cast(), 0)
        });
        if result.is_err() {
            // SAFETY: made above; the driver has refused it.
            drop(unsafe { Arc::from_raw(data) });
        }
        result.map(|()| notice)
    }

    /// Ready once the point is reached, with an error if something before it failed.
    ///
    /// It holds no reference to the GPU, the stream's, for the driver's thread must not be the last that has one.
    pub(crate) fn poll(&self, gpu: &Gpu, task: &Context<'_>) -> Poll<Result<()>> {
        self.0.poll(task).map(|ended| match ended {
            Some(ended) => gpu.check("a run", ended),
            None => Err(Error::Poisoned("a run")),
        })
    }
}

/// Called by a thread of the driver's, which may not call the driver. A panic must not reach the driver.
unsafe extern "C" fn told(_: sys::CUstream, ended: sys::CUresult, data: *mut c_void) {
    // SAFETY: made by `Arc::into_raw` in `Notice::of`, given to one call.
    let notice = unsafe { Arc::from_raw(data.cast_const().cast::<Notice>()) };
    notice.0.give(ended);
}
