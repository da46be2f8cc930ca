//! Times of the pieces of a run.

use std::sync::Arc;
use std::time::Duration;

use super::Stream;
use super::driver::{Event, Gate};
use super::model::CudaModel;
use super::peak::Peak;
use crate::Result;
use crate::profile::{Span, Work};

/// Pieces that wait at one gate. More than the driver queues (about a thousand) would wait for the gate themselves.
const HELD: usize = 128;

/// What a piece is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Piece {
    /// A launch of the program, and its kernel.
    Launch { launch: u32, function: usize },
    /// A copy of so many bytes.
    Copy { bytes: usize },
}

/// Events around everything that a run puts into a stream.
#[derive(Debug, Default)]
pub(super) struct Timer {
    marks: Vec<Mark>,
    gate: Option<Gate>,
}

#[derive(Debug)]
struct Mark {
    piece: Piece,
    /// Sizes when it was put there.
    atoms: Arc<[i64]>,
    before: Arc<Event>,
    after: Arc<Event>,
}

impl Timer {
    /// Puts a piece into a stream, behind a gate.
    pub(super) fn time(
        &mut self,
        stream: &Stream,
        piece: Piece,
        atoms: &Arc<[i64]>,
        put: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        if self.marks.len().is_multiple_of(HELD) {
            self.open();
        }
        if self.gate.is_none() {
            self.gate = Some(Gate::at(stream)?);
        }
        let before = stream.record_timed()?;
        put()?;
        let after = stream.record_timed()?;
        self.marks.push(Mark { piece, atoms: atoms.clone(), before, after });
        Ok(())
    }

    /// Lets pass what waits; before the host waits for it.
    pub(super) fn open(&mut self) {
        self.gate = None;
    }

    /// What was timed, once all of it has happened.
    pub(super) fn spans(&self, model: &CudaModel) -> Result<Vec<Span>> {
        let peak = Peak::of(model.gpu())?;
        let Some(first) = self.marks.first() else { return Ok(Vec::new()) };
        let between = |from: &Event, to: &Event| {
            from.milliseconds_until(to).map(|ms| Duration::from_secs_f64(ms.max(0.0) / 1e3))
        };
        self.marks
            .iter()
            .map(|mark| {
                let (start, time) =
                    (between(&first.before, &mark.before)?, between(&mark.before, &mark.after)?);
                Ok(match mark.piece {
                    Piece::Launch { launch, function } => {
                        let (what, nodes) = model.named(launch, function);
                        let work = model.work(launch);
                        let value = |dim: &aot_ir::Dim| {
                            dim.eval(&mark.atoms[..]).ok().map(|n| n.max(0) as f64)
                        };
                        let amount = work.and_then(|work| {
                            Some(Work { flop: value(&work.flop)?, bytes: value(&work.bytes)? })
                        });
                        let floor = work
                            .zip(amount)
                            .and_then(|(work, amount)| peak.floor(amount, work.unit));
                        Span { what, nodes, start, time, work: amount, floor }
                    }
                    Piece::Copy { bytes } => {
                        let work = Some(Work { flop: 0.0, bytes: bytes as f64 });
                        let (what, nodes) = ("copy".to_owned(), Vec::new());
                        Span { what, nodes, start, time, work, floor: None }
                    }
                })
            })
            .collect()
    }
}
