//! Launches whose end nobody has seen.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::driver::{Event, Launches};
use crate::Launched;
use crate::program::{Program, Target};

/// Lists of launches that are kept, the last ones: as runs of a model launch much the same, one list is as good as all.
const KEPT: usize = 16;

/// How a launch is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LaunchId {
    /// Index of the launch in the program.
    pub(super) step: u32,
    /// Index of the kernel in the target.
    pub(super) kernel: u32,
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

/// What an execution context has put into streams.
#[derive(Debug)]
pub(super) struct Flight {
    names: Arc<Names>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    launches: Vec<Arc<[LaunchId]>>,
    /// Happens when all of them are done.
    done: Option<Arc<Event>>,
}

impl Flight {
    pub(super) fn new(names: &Arc<Names>) -> Arc<Self> {
        Arc::new(Self { names: names.clone(), state: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These are going to be launched.
    pub(super) fn add(&self, launches: &Arc<[LaunchId]>) {
        let mut state = self.lock();
        if state.done.take().is_some_and(|done| done.has_been_seen()) {
            state.launches.clear();
        }
        if !state.launches.iter().any(|known| Arc::ptr_eq(known, launches)) {
            if state.launches.len() == KEPT {
                state.launches.remove(0);
            }
            state.launches.push(launches.clone());
        }
    }

    /// This one is going to be launched, and all others are done.
    pub(super) fn only(&self, launch: LaunchId) {
        *self.lock() = State { launches: vec![Arc::new([launch])], done: None };
    }

    /// All of them are done when this happens.
    pub(super) fn ends_with(&self, done: &Arc<Event>) {
        self.lock().done = Some(done.clone());
    }

    /// All of them are done.
    pub(super) fn over(&self) {
        *self.lock() = State::default();
    }
}

impl Launches for Flight {
    fn under_way(&self) -> Vec<Launched> {
        let state = self.lock();
        match &state.done {
            Some(done) if done.has_been_seen() => Vec::new(),
            _ => {
                let all = state.launches.iter().flat_map(|launches| launches.iter());
                all.map(|id| self.names.of(*id)).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight() -> Arc<Flight> {
        let names = Names {
            model: "m".to_owned(),
            kernels: vec!["k0".to_owned(), "k1".to_owned()],
            nodes: vec![vec!["a".to_owned()], vec!["b".to_owned(), "c".to_owned()]],
        };
        Flight::new(&Arc::new(names))
    }

    fn kernels(flight: &Flight) -> Vec<String> {
        flight.under_way().into_iter().map(|launched| launched.kernel).collect()
    }

    #[test]
    fn launches_are_under_way_until_their_end_is_seen() {
        let flight = flight();
        let id = |step, kernel| LaunchId { step, kernel };
        let (first, second): (Arc<[_]>, Arc<[_]>) =
            (Arc::new([id(0, 1), id(1, 0)]), Arc::new([id(1, 1)]));
        flight.add(&first);
        flight.add(&second);
        flight.add(&first);
        assert_eq!(kernels(&flight), ["k1", "k0", "k1"]);
        assert_eq!(flight.under_way()[1].nodes, ["b", "c"]);
        flight.only(id(0, 0));
        assert_eq!(kernels(&flight), ["k0"]);
        flight.over();
        assert_eq!(kernels(&flight), [""; 0]);
    }

    #[test]
    fn runs_that_nobody_waits_for_take_no_more_and_more_memory() {
        let flight = flight();
        for _ in 0..KEPT * 2 {
            let launches: Arc<[_]> = Arc::new([LaunchId { step: 0, kernel: 0 }]);
            flight.add(&launches);
        }
        assert_eq!(flight.under_way().len(), KEPT);
    }
}
