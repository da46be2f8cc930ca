//! The execution contexts of a model.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use super::context::Context;
use crate::Result;
use crate::loaded::ContextMemory;

/// Contexts that a model has at most, unless it is told otherwise. A GPU is busy with fewer runs at once.
const MOST_CONTEXTS: usize = 8;

/// Contexts that wait for a run, and runs that wait for a context.
#[derive(Debug)]
pub(super) struct Pool {
    state: Mutex<State>,
    returned: Condvar,
}

#[derive(Debug)]
struct State {
    idle: Vec<Context>,
    /// Idle ones and those in use.
    made: usize,
    most: usize,
    waiting: Vec<Waker>,
}

/// What a run gets.
enum Place {
    Context(Box<Context>),
    /// It may make one.
    New,
    /// It has to wait.
    None,
}

impl State {
    fn place(&mut self) -> Place {
        match self.idle.pop() {
            Some(context) => Place::Context(Box::new(context)),
            None if self.made < self.most => {
                self.made += 1;
                Place::New
            }
            None => Place::None,
        }
    }
}

impl Pool {
    pub(super) fn new() -> Self {
        let (idle, waiting) = (Vec::new(), Vec::new());
        let state = State { idle, made: 0, most: MOST_CONTEXTS, waiting };
        Self { state: Mutex::new(state), returned: Condvar::new() }
    }

    /// Nothing that is done under the lock leaves it half done.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes how many contexts there are at most; at least one.
    pub(super) fn limit(&self, most: usize) {
        let mut state = self.lock();
        state.most = most.max(1);
        while state.made > state.most && state.idle.pop().is_some() {
            state.made -= 1;
        }
        drop(state);
        self.wake();
    }

    /// What idle contexts take.
    pub(super) fn idle(&self) -> Vec<ContextMemory> {
        self.lock().idle.iter().map(Context::memory).collect()
    }

    /// A context; waits for one if all are in use.
    pub(super) fn take(&self, make: impl FnOnce() -> Result<Context>) -> Result<Context> {
        let mut state = self.lock();
        loop {
            match state.place() {
                Place::Context(context) => return Ok(*context),
                Place::New => {
                    drop(state);
                    return self.made(make());
                }
                Place::None => {
                    state = self.returned.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// As [`Pool::take`], without holding up the thread.
    pub(super) async fn take_async(
        &self,
        make: impl FnOnce() -> Result<Context>,
    ) -> Result<Context> {
        let place = std::future::poll_fn(|task| {
            let mut state = self.lock();
            match state.place() {
                Place::None => {
                    state.waiting.push(task.waker().clone());
                    Poll::Pending
                }
                place => Poll::Ready(place),
            }
        });
        match place.await {
            Place::Context(context) => Ok(*context),
            _ => self.made(make()),
        }
    }

    fn made(&self, context: Result<Context>) -> Result<Context> {
        if context.is_err() {
            self.forget();
        }
        context
    }

    /// A context that was taken may be used by another run.
    pub(super) fn give_back(&self, context: Context) {
        let mut state = self.lock();
        if state.made > state.most {
            state.made -= 1;
            drop(state);
            drop(context);
        } else {
            state.idle.push(context);
            drop(state);
        }
        self.wake();
    }

    /// A context that was taken is no more.
    pub(super) fn forget(&self) {
        self.lock().made -= 1;
        self.wake();
    }

    fn wake(&self) {
        let waiting = std::mem::take(&mut self.lock().waiting);
        self.returned.notify_all();
        waiting.into_iter().for_each(Waker::wake);
    }
}
