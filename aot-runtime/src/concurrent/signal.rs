//! A value that comes later.

use std::task::{Context, Poll, Waker};

use super::sync::Mutex;

/// A value that one gives, once, and that one task waits for.
#[derive(Debug)]
pub(crate) struct Signal<T>(Mutex<State<T>>);

#[derive(Debug)]
struct State<T> {
    value: Option<T>,
    waker: Option<Waker>,
}

impl<T: Copy> Signal<T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(State { value: None, waker: None }))
    }

    /// Gives the value, and wakes the task that waits for it; a panic of its waker is the waker's alone.
    pub(crate) fn give(&self, value: T) {
        let waker = match self.0.lock() {
            Ok(mut state) => {
                state.value = Some(value);
                state.waker.take()
            }
            Err(_) => None,
        };
        if let Some(waker) = waker {
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| waker.wake()));
        }
    }

    /// The value once it is there; None if a thread panicked in here.
    pub(crate) fn poll(&self, task: &Context<'_>) -> Poll<Option<T>> {
        let Ok(mut state) = self.0.lock() else { return Poll::Ready(None) };
        if state.value.is_none() {
            state.waker = Some(task.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(state.value)
    }
}

#[cfg(test)]
mod tests {
    use super::super::trials::{Arc, block_on, model, thread};
    use super::*;

    #[test]
    fn who_waits_gets_what_is_given_before_or_after() {
        model(|| {
            let signal = Arc::new(Signal::new());
            let giver = {
                let signal = signal.clone();
                thread::spawn(move || signal.give(7))
            };
            let got = block_on(std::future::poll_fn(|task| signal.poll(task)));
            assert_eq!(got, Some(7));
            giver.join().unwrap();
        });
    }
}
