//! Slots that go round: threads fill them with pieces of something, and one thread takes the pieces in order.

use std::collections::VecDeque;
use std::sync::PoisonError;

use super::sync::{Condvar, Mutex, MutexGuard};

/// How often a thread looks again before it sleeps. Being woken takes as long as filling a slot does.
const PATIENCE: usize = if cfg!(all(loom, test)) { 0 } else { 64 };

/// So many pieces, and slots for some of them at a time.
///
/// The taker never waits for ever where it keeps fewer slots than there are, and some thread fills.
#[derive(Debug)]
pub(crate) struct Ring<S> {
    pieces: usize,
    state: Mutex<State<S>>,
    /// There is a slot to fill, or nothing left to do.
    idle: Condvar,
    /// There is a piece to take, or none will come.
    filled: Condvar,
}

#[derive(Debug)]
struct State<S> {
    idle: Vec<S>,
    /// Pieces that are being filled or were.
    claimed: usize,
    /// Pieces that were taken: the first ones.
    taken: usize,
    /// The pieces behind those that were taken, as far as they are filled.
    filled: VecDeque<Option<S>>,
    stopped: bool,
}

impl<S> State<S> {
    fn take(&mut self) -> Option<S> {
        let slot = self.filled.front_mut()?.take()?;
        self.filled.pop_front();
        self.taken += 1;
        Some(slot)
    }
}

impl<S> Ring<S> {
    /// A ring without slots.
    pub(crate) fn new(pieces: usize) -> Self {
        let state = State {
            idle: Vec::new(),
            claimed: 0,
            taken: 0,
            filled: VecDeque::new(),
            stopped: false,
        };
        Self { pieces, state: Mutex::new(state), idle: Condvar::new(), filled: Condvar::new() }
    }

    /// Nothing that is done under the lock leaves it half done.
    fn lock(&self) -> MutexGuard<'_, State<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets other threads go on.
    fn pause<'r>(
        &'r self,
        state: MutexGuard<'r, State<S>>,
        until: &Condvar,
        patience: &mut usize,
    ) -> MutexGuard<'r, State<S>> {
        if *patience == 0 {
            return until.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        *patience -= 1;
        drop(state);
        std::thread::yield_now();
        self.lock()
    }

    /// The next piece and a slot for it, which [`Ring::put`] is to get; waits for a slot. None if nothing is left to do.
    pub(crate) fn claim(&self) -> Option<(usize, S)> {
        let mut patience = PATIENCE;
        let mut state = self.lock();
        loop {
            if state.stopped || state.claimed == self.pieces {
                return None;
            }
            if let Some(slot) = state.idle.pop() {
                let piece = state.claimed;
                state.claimed += 1;
                let last = state.claimed == self.pieces;
                drop(state);
                if last {
                    self.idle.notify_all();
                }
                return Some((piece, slot));
            }
            state = self.pause(state, &self.idle, &mut patience);
        }
    }

    /// A claimed piece is in its slot.
    pub(crate) fn put(&self, piece: usize, slot: S) {
        let mut state = self.lock();
        let place = piece - state.taken;
        while state.filled.len() <= place {
            state.filled.push_back(None);
        }
        state.filled[place] = Some(slot);
        drop(state);
        self.filled.notify_one();
    }

    /// The slot of the piece after the one that was taken last, if it is filled.
    pub(crate) fn try_take(&self) -> Option<S> {
        self.lock().take()
    }

    /// As [`Ring::try_take`], but waits for it. None if all pieces were taken, or who filled has stopped.
    pub(crate) fn take(&self) -> Option<S> {
        let mut patience = PATIENCE;
        let mut state = self.lock();
        loop {
            if state.stopped || state.taken == self.pieces {
                return None;
            }
            if let Some(slot) = state.take() {
                return Some(slot);
            }
            state = self.pause(state, &self.filled, &mut patience);
        }
    }

    /// A slot can be filled, for the first time or again.
    pub(crate) fn give(&self, slot: S) {
        self.lock().idle.push(slot);
        self.idle.notify_one();
    }

    /// Nobody waits any more, and nothing is claimed or waited for from here on.
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.idle.notify_all();
        self.filled.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::super::trials::{Arc, model, thread};
    use super::*;

    /// Fills slots with the numbers of their pieces.
    fn fill(ring: &Ring<usize>) {
        while let Some((piece, _)) = ring.claim() {
            ring.put(piece, piece);
        }
    }

    #[test]
    fn pieces_come_in_order_through_one_slot() {
        model(|| {
            let ring = Arc::new(Ring::new(2));
            let filler = {
                let ring = ring.clone();
                thread::spawn(move || fill(&ring))
            };
            ring.give(9);
            assert_eq!(ring.take(), Some(0));
            ring.give(9);
            assert_eq!((ring.take(), ring.take()), (Some(1), None));
            filler.join().unwrap();
        });
    }

    #[test]
    fn who_claims_the_last_piece_lets_other_fillers_end() {
        model(|| {
            let ring = Arc::new(Ring::new(1));
            let filler = {
                let ring = ring.clone();
                thread::spawn(move || fill(&ring))
            };
            ring.give(9);
            fill(&ring);
            filler.join().unwrap();
            assert_eq!(ring.try_take(), Some(0));
        });
    }

    #[test]
    fn what_is_filled_out_of_order_waits_for_what_comes_before() {
        model(|| {
            let ring = Ring::new(3);
            (0..3).for_each(|_| ring.give(9));
            let claimed: Vec<_> = (0..3).map(|_| ring.claim().unwrap().0).collect();
            assert_eq!(claimed, [0, 1, 2]);
            ring.put(2, 2);
            ring.put(1, 1);
            assert_eq!(ring.try_take(), None);
            ring.put(0, 0);
            assert_eq!(
                [ring.try_take(), ring.try_take(), ring.try_take()],
                [Some(0), Some(1), Some(2)]
            );
            assert_eq!((ring.take(), ring.claim()), (None, None));
        });
    }

    #[test]
    fn a_taker_that_stops_lets_fillers_end() {
        model(|| {
            let ring = Arc::new(Ring::new(2));
            let filler = {
                let ring = ring.clone();
                thread::spawn(move || fill(&ring))
            };
            ring.give(9);
            // The slot of the first piece does not come back.
            assert_eq!(ring.take(), Some(0));
            ring.stop();
            filler.join().unwrap();
        });
    }

    #[test]
    fn a_filler_that_stops_lets_the_taker_end() {
        model(|| {
            let ring = Arc::new(Ring::new(2));
            let filler = {
                let ring = ring.clone();
                thread::spawn(move || {
                    let claimed = ring.claim();
                    ring.stop();
                    claimed
                })
            };
            ring.give(9);
            assert_eq!(ring.take(), None);
            assert_eq!(ring.claim(), None);
            // Whether there was a slot in time is open.
            assert!(filler.join().unwrap().is_none_or(|claimed| claimed == (0, 9)));
        });
    }
}
