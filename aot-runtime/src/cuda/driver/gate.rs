//! A place in a stream that work waits at until the host lets it pass.

use std::ffi::c_void;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use cudarc::driver::sys;

use super::Stream;
use crate::Result;

/// How long work waits at most: a driver that makes the host wait for what is behind the gate goes on then.
const PATIENCE: Duration = Duration::from_secs(1);

/// Work that is put into a stream behind a gate begins when the gate is opened, so that the time it takes is the GPU's
/// and not that of putting it there. Opened when dropped, and after [`PATIENCE`].
#[derive(Debug)]
pub(crate) struct Gate(Arc<State>);

#[derive(Debug, Default)]
struct State {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    /// A closed gate at the current end of a stream.
    pub(crate) fn at(stream: &Stream) -> Result<Self> {
        let state = Arc::new(State::default());
        let gate = Self(state.clone());
        let data = Arc::into_raw(state);
        // SAFETY: the stream is alive; the function gets what it expects, once.
        let result = stream.gpu().check("cuLaunchHostFunc", unsafe {
            sys::cuLaunchHostFunc(stream.raw(), Some(wait), data.cast_mut().cast())
        });
        if result.is_err() {
            // SAFETY: made above; the driver has refused it.
            drop(unsafe { Arc::from_raw(data) });
        }
        result.map(|()| gate)
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        *self.0.open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.opened.notify_all();
    }
}

/// Called by a thread of the driver's, which may not call the driver.
unsafe extern "C" fn wait(data: *mut c_void) {
    // SAFETY: made by `Arc::into_raw` in `Gate::at`, given to one call.
    let state = unsafe { Arc::from_raw(data.cast_const().cast::<State>()) };
    let open = state.open.lock().unwrap_or_else(PoisonError::into_inner);
    let waited = state.opened.wait_timeout_while(open, PATIENCE, |open| !*open);
    drop(waited.unwrap_or_else(PoisonError::into_inner));
}
