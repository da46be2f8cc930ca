//! Word from the driver that a stream has come to a point.

use std::ffi::c_void;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use cudarc::driver::sys;

use super::Stream;
use super::library::check;
use crate::{Error, Result};

/// A point in a stream that a task can wait for.
#[derive(Debug, Default)]
pub(crate) struct Notice(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// How everything up to the point has ended.
    ended: Option<sys::CUresult>,
    waker: Option<Waker>,
}

impl Notice {
    /// The current end of a stream.
    pub(crate) fn of(stream: &Stream) -> Result<Arc<Self>> {
        let notice = Arc::new(Self::default());
        let data = Arc::into_raw(notice.clone());
        // SAFETY: the stream is alive; the callback gets what it expects, once, whether the stream fails or not.
        let result = check("cuStreamAddCallback", unsafe {
            sys::cuStreamAddCallback(stream.raw(), Some(told), data.cast_mut().cast(), 0)
        });
        if result.is_err() {
            // SAFETY: made above; the driver has refused it.
            drop(unsafe { Arc::from_raw(data) });
        }
        result.map(|()| notice)
    }

    /// Ready once the point is reached, with an error if something before it failed.
    pub(crate) fn poll(&self, task: &Context<'_>) -> Poll<Result<()>> {
        let Ok(mut state) = self.0.lock() else {
            return Poll::Ready(Err(Error::Poisoned("a run")));
        };
        match state.ended {
            Some(ended) => Poll::Ready(check("a run", ended)),
            None => {
                state.waker = Some(task.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// Called by a thread of the driver's, which may not call the driver.
unsafe extern "C" fn told(_: sys::CUstream, ended: sys::CUresult, data: *mut c_void) {
    // SAFETY: made by `Arc::into_raw` in `Notice::of`, given to one call.
    let notice = unsafe { Arc::from_raw(data.cast_const().cast::<Notice>()) };
    let waker = match notice.0.lock() {
        Ok(mut state) => {
            state.ended = Some(ended);
            state.waker.take()
        }
        Err(_) => None,
    };
    if let Some(waker) = waker {
        // A panic must not reach the driver; the task that caused it finds the result all the same.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| waker.wake()));
    }
}
