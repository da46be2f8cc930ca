//! Traces of all runs of a process, for those who can't change the application.

use std::env;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::Span;
use super::trace::{Row, events, names};
use crate::{Error, Result};

/// The environment variable that names the file.
const VARIABLE: &str = "AOT_PROFILE";

/// A trace that grows by every run. It is the array form of the Trace Event Format, which needs no end.
#[derive(Debug)]
pub(crate) struct Recorder {
    file: Mutex<File>,
    began: Instant,
    models: AtomicU32,
}

/// A model's row in the trace.
#[derive(Debug)]
pub(crate) struct Recorded {
    recorder: &'static Recorder,
    row: Row,
}

impl Recorder {
    pub(super) fn new(path: &Path) -> Result<Self> {
        let file = File::create(path).map_err(|e| unwritten(path, &e))?;
        let recorder =
            Self { file: Mutex::new(file), began: Instant::now(), models: AtomicU32::new(0) };
        recorder.write("[\n").map_err(|e| unwritten(path, &e))?;
        Ok(recorder)
    }

    /// A row for a model.
    pub(super) fn row(&'static self, device: &str, model: &str) -> Result<Recorded> {
        let row = Row { process: self.models.fetch_add(1, Ordering::Relaxed) + 1, thread: 1 };
        self.add(names(row, device, model).into_iter())?;
        Ok(Recorded { recorder: self, row })
    }

    fn write(&self, text: &str) -> std::io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(text.as_bytes())
    }

    fn add(&self, events: impl Iterator<Item = String>) -> Result<()> {
        let text: String = events.map(|event| event + ",\n").collect();
        self.write(&text).map_err(|error| {
            Error::Execution(format!("the file that {VARIABLE} names can't be written: {error}"))
        })
    }
}

fn unwritten(path: &Path, error: &std::io::Error) -> Error {
    Error::Environment {
        variable: VARIABLE,
        value: format!("{} ({error})", path.display()),
        takes: "a file to write traces of all runs to",
    }
}

impl Recorded {
    /// A row for a model that was loaded, if the environment asks for a trace.
    pub(crate) fn of(device: &str, model: &str) -> Result<Option<Self>> {
        static RECORDER: OnceLock<Recorder> = OnceLock::new();
        static MAKING: Mutex<()> = Mutex::new(());
        let Some(path) = env::var_os(VARIABLE).filter(|value| !value.is_empty()) else {
            return Ok(None);
        };
        let making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let recorder = match RECORDER.get() {
            Some(recorder) => recorder,
            None => {
                let made = Recorder::new(&PathBuf::from(path))?;
                RECORDER.get_or_init(|| made)
            }
        };
        drop(making);
        recorder.row(device, model).map(Some)
    }

    /// The time of the trace.
    pub(crate) fn now(&self) -> Duration {
        self.recorder.began.elapsed()
    }

    /// Adds a run that began at a time of the trace.
    pub(crate) fn add(&self, start: Duration, spans: &[Span]) -> Result<()> {
        self.recorder.add(events(self.row, start, spans))
    }
}
