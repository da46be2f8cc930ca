//! Launches whose end nobody has seen, and how far they are.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::driver::{Event, Launches, PinnedWord};
use super::order::Order;
use crate::Launched;
use crate::program::{Program, Target};

/// Orders of launches that are kept, the last ones: as runs of a model launch much the same, what follows a launch in those
/// follows it in others.
const KEPT: usize = 16;

/// How a launch is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LaunchId {
    /// Index of the launch in the program.
    pub(super) step: u32,
    /// Index of the kernel in the target.
    pub(super) kernel: u32,
}

impl LaunchId {
    /// [`LaunchArg::Number`](crate::program::LaunchArg::Number).
    pub(super) fn number(self) -> u64 {
        u64::from(self.kernel) << 32 | (u64::from(self.step) + 1)
    }

    /// The launch with this number; 0 is none.
    fn numbered(number: u64) -> Option<Self> {
        let step = (number as u32).checked_sub(1)?;
        Some(Self { step, kernel: (number >> 32) as u32 })
    }
}

/// Names of a model's launches.
#[derive(Debug)]
pub(super) struct Names {
    model: String,
    kernels: Vec<String>,
    nodes: Vec<Vec<String>>,
}

impl Names {
    pub(super) fn new(program: &Program, target: &Target) -> Self {
        let kernels = target.kernels.iter().map(|kernel| kernel.entry.clone()).collect();
        Self { model: program.model.clone(), kernels, nodes: program.origins.clone() }
    }

    fn of(&self, id: LaunchId) -> Launched {
        Launched {
            model: self.model.clone(),
            kernel: self.kernels.get(id.kernel as usize).cloned().unwrap_or_default(),
            nodes: self.nodes.get(id.step as usize).cloned().unwrap_or_default(),
        }
    }
}

/// What an execution context has put into streams, where one launch follows the other.
#[derive(Debug)]
pub(super) struct Flight<W = PinnedWord> {
    names: Arc<Names>,
    /// The number of the launch that began last; 0 if none has since all were known to be done.
    progress: W,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    launches: VecDeque<Arc<Order>>,
    /// Happens when all of them are done.
    done: Option<Arc<Event>>,
}

impl<W: Deref<Target = AtomicU64>> Flight<W> {
    pub(super) fn new(names: &Arc<Names>, progress: W) -> Arc<Self> {
        Arc::new(Self { names: names.clone(), progress, state: Mutex::default() })
    }

    /// Where kernels tell which launch has begun.
    pub(super) fn progress(&self) -> &W {
        &self.progress
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These are going to be launched.
    pub(super) fn add(&self, launches: &Arc<Order>) {
        let mut state = self.lock();
        if state.done.take().is_some_and(|done| done.has_been_seen()) {
            state.launches.clear();
            self.progress.store(0, Ordering::Relaxed);
        }
        if state.launches.len() == KEPT {
            state.launches.pop_front();
        }
        state.launches.push_back(launches.clone());
    }

    /// This one is going to be launched, and all others are done.
    pub(super) fn only(&self, launch: LaunchId) {
        self.over();
        self.add(&Arc::new(Order::of(launch)));
    }

    /// All of them are done when this happens.
    pub(super) fn ends_with(&self, done: &Arc<Event>) {
        self.lock().done = Some(done.clone());
    }

    /// All of them are done.
    pub(super) fn over(&self) {
        let mut state = self.lock();
        *state = State::default();
        self.progress.store(0, Ordering::Relaxed);
    }
}

impl<W> Launches for Flight<W>
where
    W: Deref<Target = AtomicU64> + std::fmt::Debug + Send + Sync,
{
    /// The launch that began last and what follows it, for the first block, which tells, may come after others.
    fn under_way(&self) -> Vec<Launched> {
        let state = self.lock();
        if state.done.as_ref().is_some_and(|done| done.has_been_seen()) {
            return Vec::new();
        }
        let last = LaunchId::numbered(self.progress.load(Ordering::Relaxed));
        let mut found: Vec<LaunchId> = last.into_iter().collect();
        // Whether the launch that began last may be the one before.
        let mut behind = last.is_none();
        for order in &state.launches {
            let next = order.pairs.iter().filter(|(before, _)| Some(*before) == last);
            let next = next.map(|(_, next)| *next);
            let firsts = order.firsts.iter().copied().filter(|_| behind);
            for id in firsts.chain(next) {
                if !found.contains(&id) {
                    found.push(id);
                }
            }
            behind &= order.skipped;
            behind |= last.is_some_and(|last| order.lasts.contains(&last));
        }
        found.into_iter().map(|id| self.names.of(id)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight() -> Arc<Flight<Box<AtomicU64>>> {
        let names = Names {
            model: "m".to_owned(),
            kernels: vec!["k0".to_owned(), "k1".to_owned()],
            nodes: vec![vec!["a".to_owned()], vec!["b".to_owned(), "c".to_owned()], Vec::new()],
        };
        Flight::new(&Arc::new(names), Box::default())
    }

    fn id(step: u32, kernel: u32) -> LaunchId {
        LaunchId { step, kernel }
    }

    fn list<const N: usize>(launches: [LaunchId; N]) -> Arc<Order> {
        let (firsts, lasts) = (vec![launches[0]], vec![launches[N - 1]]);
        let pairs = launches.windows(2).map(|pair| (pair[0], pair[1])).collect();
        Arc::new(Order { firsts, lasts, pairs, skipped: false })
    }

    impl Flight<Box<AtomicU64>> {
        /// A launch begins.
        fn begins(&self, launch: LaunchId) {
            self.progress.store(launch.number(), Ordering::Relaxed);
        }

        /// What is under way, each with its node.
        fn found(&self) -> Vec<String> {
            let text = |l: Launched| format!("{} {}", l.kernel, l.nodes.concat());
            self.under_way().into_iter().map(text).collect()
        }
    }

    #[test]
    fn the_launch_that_began_last_is_under_way_or_the_one_after_it() {
        let flight = flight();
        let launches = list([id(0, 1), id(1, 0), id(2, 1)]);
        assert_eq!(flight.found(), [""; 0]);
        flight.add(&launches);
        assert_eq!(flight.found(), ["k1 a"]);
        flight.begins(id(0, 1));
        assert_eq!(flight.found(), ["k1 a", "k0 bc"]);
        flight.begins(id(1, 0));
        assert_eq!(flight.found(), ["k0 bc", "k1 "]);
        flight.begins(id(2, 1));
        assert_eq!(flight.found(), ["k1 "]);
        // The same again, behind it.
        flight.add(&launches);
        assert_eq!(flight.found(), ["k1 ", "k1 a"]);
        // Another variant, behind that.
        flight.add(&list([id(0, 0)]));
        assert_eq!(flight.found(), ["k1 ", "k1 a", "k0 a"]);
        flight.begins(id(0, 0));
        assert_eq!(flight.found(), ["k0 a"]);
    }

    #[test]
    fn what_began_before_all_was_done_says_nothing_of_what_comes() {
        let flight = flight();
        let launches = list([id(0, 1), id(1, 0)]);
        flight.add(&launches);
        flight.begins(id(1, 0));
        flight.over();
        assert_eq!(flight.found(), [""; 0]);
        flight.add(&launches);
        assert_eq!(flight.found(), ["k1 a"]);
        flight.begins(id(0, 1));
        flight.only(id(2, 0));
        assert_eq!(flight.found(), ["k0 "]);
        flight.begins(id(2, 0));
        assert_eq!(flight.found(), ["k0 "]);
    }

    #[test]
    fn what_follows_in_loops_is_named_once() {
        let flight = flight();
        let (first, second, after) = (id(0, 0), id(1, 0), id(2, 0));
        flight.add(&list([first, second, first, second, first, second, after]));
        flight.begins(second);
        assert_eq!(flight.found(), ["k0 bc", "k0 a", "k0 "]);
    }

    #[test]
    fn runs_that_nobody_waits_for_take_no_more_and_more_memory() {
        let flight = flight();
        for _ in 0..KEPT * 2 {
            flight.add(&list([id(0, 0), id(1, 0)]));
        }
        assert_eq!(flight.lock().launches.len(), KEPT);
        // Of one that is no longer kept.
        flight.begins(id(1, 1));
        assert_eq!(flight.found(), ["k1 bc"]);
    }

    #[test]
    fn numbers_tell_launches_apart() {
        assert_eq!(LaunchId::numbered(0), None);
        for launch in [id(0, 0), id(7, 0), id(0, 3), id(u32::MAX - 1, u32::MAX)] {
            assert_eq!(LaunchId::numbered(launch.number()), Some(launch));
        }
    }
}
