//! What a build tells whoever watches it.

use serde::Serialize;

use super::report::Report;

/// Something that happened. Serialised as one JSON object whose `reason` names the kind; the
/// fields are documented in docs/json.md.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Event {
    /// Something that takes time began, such as fetching the toolchain.
    Status {
        /// The verb: `Installing`.
        verb: String,
        /// What it is done to.
        text: String,
    },
    /// Something is not as it should be, and the build goes on.
    Warning {
        /// What, with the remedy.
        message: String,
    },
    /// An entry of the cache was damaged. It was removed, and its artifact is found elsewhere or
    /// made again.
    CacheRepair {
        /// The entry's file.
        path: String,
        /// What was wrong with it.
        damage: String,
        /// What the artifact is of.
        artifact: String,
    },
    /// A unit's artifact was found or made.
    Unit {
        /// `import`, `plan` or `weights`.
        kind: String,
        /// The model, or what the unit is about.
        name: String,
        /// Whether the artifact was there already.
        fresh: bool,
        /// Why it was made; empty when it was there.
        why: Vec<String>,
        /// How long that took.
        millis: u64,
    },
    /// Kernels are going to be compiled or found.
    KernelsStarted {
        /// How many compilations that is at most.
        total: usize,
    },
    /// The compiler began with a kernel.
    KernelStarted {
        /// The kernel's name.
        kernel: String,
        /// `sm_90a` or `compute_80`.
        target: String,
    },
    /// A kernel is done.
    KernelFinished {
        /// The kernel's name.
        kernel: String,
        /// `sm_90a` or `compute_80`.
        target: String,
        /// The schedule that was compiled.
        schedule: String,
        /// How it went.
        outcome: Outcome,
        /// How long it took.
        millis: u64,
        /// What the compiler said about it; None when it failed.
        report: Option<Report>,
    },
    /// All kernels are done.
    KernelsFinished {
        /// How many there were of each outcome.
        counts: Counts,
    },
    /// The build found an error. Others may follow.
    Error {
        /// The message, as the command prints it.
        message: String,
    },
    /// The build is over.
    Finished {
        /// Whether it went well.
        success: bool,
        /// Whether there was nothing to do.
        fresh: bool,
        /// How long it took.
        millis: u64,
        /// Kernels by outcome.
        counts: Counts,
    },
}

/// How it went with a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It was in the cache.
    Cached,
    /// It was compiled.
    Compiled,
    /// No schedule of it could be compiled.
    Failed,
}

/// Numbers of kernels by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Found in the cache.
    pub cached: usize,
    /// Compiled.
    pub compiled: usize,
    /// Not compilable.
    pub failed: usize,
}

impl Counts {
    /// Counts one more.
    pub fn add(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Cached => self.cached += 1,
            Outcome::Compiled => self.compiled += 1,
            Outcome::Failed => self.failed += 1,
        }
    }

    /// All of them.
    pub fn total(self) -> usize {
        self.cached + self.compiled + self.failed
    }
}

/// Watches a build. Called from several threads.
pub trait Watch: Sync {
    /// Takes note of an event.
    fn event(&self, event: Event);
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Watch for Silent {
    fn event(&self, _: Event) {}
}

/// Passes on what the user should know, and nothing of the progress.
#[derive(Clone, Copy)]
pub struct Concerns<'w>(pub &'w dyn Watch);

impl std::fmt::Debug for Concerns<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Concerns").finish_non_exhaustive()
    }
}

impl Watch for Concerns<'_> {
    fn event(&self, event: Event) {
        if let Event::Warning { .. } | Event::CacheRepair { .. } | Event::Error { .. } = event {
            self.0.event(event);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Keeps all events.
    #[derive(Debug, Default)]
    pub(in crate::build) struct Recorder(Mutex<Vec<Event>>);

    impl Recorder {
        pub(in crate::build) fn take(&self) -> Vec<Event> {
            std::mem::take(&mut self.0.lock().unwrap())
        }
    }

    impl Watch for Recorder {
        fn event(&self, event: Event) {
            self.0.lock().unwrap().push(event);
        }
    }

    #[test]
    fn events_are_flat_json_objects() {
        let event = Event::KernelStarted { kernel: "gemm".to_owned(), target: "sm_80".to_owned() };
        assert_eq!(
            serde_json::to_string(&event).unwrap(),
            r#"{"reason":"kernel-started","kernel":"gemm","target":"sm_80"}"#
        );
        let counts = Counts { cached: 1, compiled: 2, failed: 0 };
        let event = Event::Finished { success: true, fresh: false, millis: 3, counts };
        assert_eq!(
            serde_json::to_string(&event).unwrap(),
            r#"{"reason":"finished","success":true,"fresh":false,"millis":3,"counts":{"cached":1,"compiled":2,"failed":0}}"#
        );
    }
}
