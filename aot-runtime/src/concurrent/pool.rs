//! So many things, which runs take turns with.

use std::sync::PoisonError;
use std::task::{Poll, Waker};

use super::sync::{Condvar, Mutex, MutexGuard};
use crate::Result;

/// Things that wait for a run, and runs that wait for one of them. They are made as they are needed.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    state: Mutex<State<T>>,
    returned: Condvar,
}

#[derive(Debug)]
struct State<T> {
    idle: Vec<T>,
    /// Idle ones and those in use.
    made: usize,
    most: usize,
    waiting: Vec<Waker>,
}

/// What a run gets.
enum Place<T> {
    Idle(T),
    /// It may make one.
    New,
    /// It has to wait.
    None,
}

impl<T> State<T> {
    fn place(&mut self) -> Place<T> {
        match self.idle.pop() {
            Some(thing) => Place::Idle(thing),
            None if self.made < self.most => {
                self.made += 1;
                Place::New
            }
            None => Place::None,
        }
    }
}

/// The right to make one, which goes to another run where nothing comes of it.
struct Making<'p, T>(Option<&'p Pool<T>>);

impl<T> Drop for Making<'_, T> {
    fn drop(&mut self) {
        if let Some(pool) = self.0 {
            pool.forget();
        }
    }
}

impl<T> Pool<T> {
    /// A pool of at most so many.
    pub(crate) fn new(most: usize) -> Self {
        let (idle, waiting) = (Vec::new(), Vec::new());
        let state = State { idle, made: 0, most: most.max(1), waiting };
        Self { state: Mutex::new(state), returned: Condvar::new() }
    }

    /// Nothing that is done under the lock leaves it half done.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes how many there are at most; at least one. Of those beyond, the ones in use go when they are given back.
    pub(crate) fn limit(&self, most: usize) {
        let mut state = self.lock();
        state.most = most.max(1);
        let beyond = state.made.saturating_sub(state.most).min(state.idle.len());
        let kept = state.idle.len() - beyond;
        let gone = state.idle.split_off(kept);
        state.made -= beyond;
        drop(state);
        drop(gone);
        self.wake();
    }

    /// What is said of each idle one.
    pub(crate) fn idle<R>(&self, of: impl FnMut(&T) -> R) -> Vec<R> {
        self.lock().idle.iter().map(of).collect()
    }

    /// One of them; waits if all are in use.
    pub(crate) fn take(&self, make: impl FnOnce() -> Result<T>) -> Result<T> {
        let mut state = self.lock();
        loop {
            match state.place() {
                Place::Idle(thing) => return Ok(thing),
                Place::New => {
                    drop(state);
                    return self.made(make);
                }
                Place::None => {
                    state = self.returned.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// As [`Pool::take`], without holding up the thread.
    pub(crate) async fn take_async(&self, make: impl FnOnce() -> Result<T>) -> Result<T> {
        let place = std::future::poll_fn(|task| {
            let mut state = self.lock();
            match state.place() {
                Place::None => {
                    if !state.waiting.iter().any(|waker| waker.will_wake(task.waker())) {
                        state.waiting.push(task.waker().clone());
                    }
                    Poll::Pending
                }
                place => Poll::Ready(place),
            }
        });
        match place.await {
            Place::Idle(thing) => Ok(thing),
            _ => self.made(make),
        }
    }

    fn made(&self, make: impl FnOnce() -> Result<T>) -> Result<T> {
        let mut making = Making(Some(self));
        let thing = make()?;
        making.0 = None;
        Ok(thing)
    }

    /// One that was taken may be used by another run.
    pub(crate) fn give_back(&self, thing: T) {
        let mut state = self.lock();
        if state.made > state.most {
            state.made -= 1;
            drop(state);
            drop(thing);
        } else {
            state.idle.push(thing);
            drop(state);
        }
        self.wake();
    }

    /// One that was taken is no more.
    pub(crate) fn forget(&self) {
        self.lock().made -= 1;
        self.wake();
    }

    fn wake(&self) {
        let waiting = std::mem::take(&mut self.lock().waiting);
        self.returned.notify_all();
        waiting.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::super::trials::{Arc, block_on, model, thread};
    use super::*;
    use crate::Error;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Numbers of those that were made.
    #[derive(Debug)]
    struct Counted {
        pool: Pool<usize>,
        made: AtomicUsize,
    }

    impl Counted {
        fn new(most: usize) -> Arc<Self> {
            Arc::new(Self { pool: Pool::new(most), made: AtomicUsize::new(0) })
        }

        fn make(&self) -> Result<usize> {
            Ok(self.made.fetch_add(1, Ordering::SeqCst))
        }

        /// Takes one and gives it back.
        fn turn(&self) {
            let thing = self.pool.take(|| self.make()).unwrap();
            self.pool.give_back(thing);
        }

        fn turn_of_a_task(&self) {
            let thing = block_on(self.pool.take_async(|| self.make())).unwrap();
            self.pool.give_back(thing);
        }
    }

    /// Does something on a thread of its own and something else here.
    fn both(
        counted: &Arc<Counted>,
        there: impl FnOnce(&Counted) + Send + 'static,
        here: impl FnOnce(&Counted),
    ) {
        let other = counted.clone();
        let thread = thread::spawn(move || there(&other));
        here(counted);
        thread.join().unwrap();
    }

    #[test]
    fn threads_and_tasks_take_turns() {
        model(|| {
            let counted = Counted::new(1);
            both(&counted, Counted::turn, Counted::turn_of_a_task);
            assert_eq!(counted.made.load(Ordering::SeqCst), 1);
            assert_eq!(counted.pool.idle(|n| *n), [0]);
        });
    }

    #[test]
    fn two_tasks_take_turns() {
        model(|| {
            let counted = Counted::new(1);
            both(&counted, Counted::turn_of_a_task, Counted::turn_of_a_task);
            assert_eq!(counted.pool.idle(|n| *n), [0]);
        });
    }

    #[test]
    fn what_could_not_be_made_is_the_next_ones_turn() {
        model(|| {
            let counted = Counted::new(1);
            let fail = |counted: &Counted| {
                let taken = counted.pool.take(|| Err(Error::Poisoned("a test")));
                // Where the other one's is idle by then, nothing has to be made.
                taken.into_iter().for_each(|thing| counted.pool.give_back(thing));
            };
            both(&counted, fail, Counted::turn_of_a_task);
            assert_eq!(counted.pool.idle(|n| *n), [0]);
        });
    }

    #[test]
    fn what_is_no_more_makes_room_and_so_does_a_higher_limit() {
        for higher in [false, true] {
            model(move || {
                let counted = Counted::new(1);
                counted.pool.take(|| counted.make()).unwrap();
                let room = move |counted: &Counted| match higher {
                    true => counted.pool.limit(2),
                    false => counted.pool.forget(),
                };
                both(&counted, room, Counted::turn_of_a_task);
                assert_eq!(counted.pool.idle(|n| *n), [1]);
            });
        }
    }

    #[test]
    fn a_lower_limit_drops_idle_ones_now_and_others_later() {
        model(|| {
            let pool = Pool::new(3);
            let mut taken: Vec<u32> = (0..3).map(|n| pool.take(|| Ok(n)).unwrap()).collect();
            pool.give_back(taken.remove(0));
            pool.limit(1);
            assert_eq!(pool.idle(|n| *n), [0; 0]);
            pool.give_back(taken.remove(0));
            assert_eq!(pool.idle(|n| *n), [0; 0]);
            pool.give_back(taken.remove(0));
            assert_eq!(pool.idle(|n| *n), [2]);
        });
    }

    #[test]
    fn a_panic_in_the_making_makes_room() {
        model(|| {
            let pool: Pool<u32> = Pool::new(1);
            let fails = || pool.take(|| std::panic::resume_unwind(Box::new("no")));
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(fails)).is_err());
            assert_eq!(pool.take(|| Ok(5)).unwrap(), 5);
        });
    }
}
