//! What threads and tasks wait for. Nothing here calls the driver.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p aot-runtime --lib --no-default-features --features cpu concurrent` tries every order of what
//! threads may do in the tests here.

mod pool;
mod signal;

#[cfg(feature = "cuda")]
pub(crate) use {pool::Pool, signal::Signal};

/// The locks of the standard library, or those whose every order a test tries.
mod sync {
    #[cfg(all(loom, test))]
    pub(super) use loom::sync::{Condvar, Mutex, MutexGuard};
    #[cfg(not(all(loom, test)))]
    pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
}

/// Threads and tasks of tests, as they are or in every order.
#[cfg(test)]
mod trials {
    #[cfg(loom)]
    pub(super) use loom::{future::block_on, model, sync::Arc, thread};
    #[cfg(not(loom))]
    pub(super) use std::{sync::Arc, thread};

    /// Tries it often, for threads are fast.
    #[cfg(not(loom))]
    pub(super) fn model(trial: impl Fn()) {
        (0..100).for_each(|_| trial());
    }

    /// Polls a future whenever it is woken.
    #[cfg(not(loom))]
    pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
        struct Unpark(thread::Thread);
        impl std::task::Wake for Unpark {
            fn wake(self: Arc<Self>) {
                self.0.unpark();
            }
        }
        let waker = Arc::new(Unpark(thread::current())).into();
        let mut task = std::task::Context::from_waker(&waker);
        let mut future = std::pin::pin!(future);
        loop {
            match future.as_mut().poll(&mut task) {
                std::task::Poll::Ready(value) => return value,
                std::task::Poll::Pending => thread::park(),
            }
        }
    }
}
