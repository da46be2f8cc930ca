//! Runs piece by piece: steps after which the host has to know something.

// Copies are put into the stream; see `Execution::copy`.
#![allow(unsafe_code)]

use std::sync::Arc;

use aot_ir::SymId;

use super::driver::{Transfer, Work, count_wait, execute};
use super::evaluate::{Evaluated, is_whole};
use super::execution::{Execution, Staging};
use super::on_device::OnDevice;
use super::replay::Run;
use super::rows::{PROGRESS, REHEARSED};
use crate::ports::OutputRef;
use crate::program::{BufferId, HostStep, Loop, Step};
use crate::{Error, Result};

impl Execution<'_> {
    /// Steps of which some read sizes, or are loops that can't be foreseen.
    pub(super) fn sequence(
        &mut self,
        mut steps: &[Step],
        outputs: &mut [OutputRef<'_>],
        staging: &Staging,
    ) -> Result<()> {
        while let Some(step) = steps.first() {
            match step {
                Step::ReadBack { .. } => {
                    let sizes = steps.iter().map_while(|step| match step {
                        Step::ReadBack { symbol, buffer, .. } => Some((*symbol, *buffer)),
                        _ => None,
                    });
                    let sizes: Vec<(SymId, BufferId)> = sizes.collect();
                    self.read(&sizes)?;
                    self.place_outputs(outputs, staging)?;
                    steps = &steps[sizes.len()..];
                }
                Step::Host(step) => {
                    self.on_host(step)?;
                    steps = &steps[1..];
                }
                Step::Loop(repeated) if !is_whole(step, self.known.atoms()) => {
                    match self.model.on_device_loop(repeated.iteration, self.known.atoms()) {
                        Some(device) if self.timer.is_none() => {
                            self.repeat_on_device(step, repeated, device)?;
                        }
                        _ => self.repeat(repeated, outputs, staging)?,
                    }
                    self.place_outputs(outputs, staging)?;
                    steps = &steps[1..];
                }
                _ => {
                    let (next, later) = whole_steps(steps, self.known.atoms());
                    let evaluated = self.evaluate(next, None)?;
                    self.submit(&evaluated, None)?;
                    steps = later;
                }
            }
        }
        Ok(())
    }

    fn repeat(
        &mut self,
        repeated: &Loop,
        outputs: &mut [OutputRef<'_>],
        staging: &Staging,
    ) -> Result<()> {
        let mut count = repeated.count.eval(self.known.atoms())?;
        if self.rehearsed && repeated.condition.is_some() {
            count = count.min(REHEARSED);
        }
        let mut made = 0;
        while made < count && self.goes_on(repeated.condition)? {
            let Loop { iteration, guards, .. } = repeated;
            self.signature.begin_iteration(&mut self.known, *iteration, made, guards)?;
            self.sequence(&repeated.body, outputs, staging)?;
            made += 1;
        }
        match repeated.turns {
            Some(turns) => self.signature.bind_in_run(&mut self.known, turns, made),
            None => Ok(()),
        }
    }

    /// As [`Execution::repeat`]; the GPU decides how many iterations there are.
    fn repeat_on_device(&mut self, step: &Step, repeated: &Loop, device: &OnDevice) -> Result<()> {
        let evaluated = self.evaluate(std::slice::from_ref(step), Some(device))?;
        self.put(&evaluated, None, None)?;
        let Some(turns) = repeated.turns else { return Ok(()) };
        let made = self.context.sizes.address() + PROGRESS as u64;
        let made = self.words(&[made])?[0];
        self.signature.bind_in_run(&mut self.known, turns, made)
    }

    /// Whether there is another iteration; waits for the stream where that is computed.
    fn goes_on(&mut self, condition: Option<BufferId>) -> Result<bool> {
        let Some(buffer) = condition else { return Ok(true) };
        let address = self.address(buffer)?;
        let copy = self.context.download_byte(address)?;
        self.copy(copy)?;
        self.wait()?;
        Ok(self.context.byte() != 0)
    }

    pub(super) fn submit(&mut self, evaluated: &Evaluated, upload: Option<Transfer>) -> Result<()> {
        // Room for sizes may have to be waited for.
        self.let_pass();
        self.context.sizes.put(&self.stream, evaluated)?;
        let places = self.context.places(self.layout.offsets(), &self.inputs, &self.outputs);
        let flight = &self.context.flight;
        let run = Run { upload, ..self.model.whole(evaluated, places, flight) };
        match &mut self.timer {
            None => run.submit(&self.stream),
            Some(timer) => {
                let atoms: Arc<[i64]> = self.known.atoms().into();
                run.submit_timed(&self.stream, timer, &atoms)
            }
        }
    }

    /// Waits for everything that the run has put into the stream.
    fn wait(&mut self) -> Result<()> {
        self.let_pass();
        count_wait();
        self.stream.synchronize()?;
        self.context.flight.over();
        Ok(())
    }

    /// Before the host waits for pieces that are timed.
    pub(super) fn let_pass(&mut self) {
        if let Some(timer) = &mut self.timer {
            timer.open();
        }
    }

    pub(super) fn copy(&self, copy: Transfer) -> Result<()> {
        // SAFETY: both ends lie in the run's own memory or in a buffer of the program, as long as the program says,
        // and stay until the event after this run has happened.
        unsafe { execute(&self.stream, &Work::Copy(copy)) }
    }

    /// Waits for the stream and binds symbols to the sizes that it computed.
    fn read(&mut self, sizes: &[(SymId, BufferId)]) -> Result<()> {
        let mut addresses = Vec::with_capacity(sizes.len());
        for (_, buffer) in sizes {
            addresses.push(self.address(*buffer)?);
        }
        let words = self.words(&addresses)?;
        for ((symbol, _), size) in sizes.iter().zip(words) {
            let size = if self.rehearsed { self.signature.nearest(*symbol, size) } else { size };
            self.signature.bind_in_run(&mut self.known, *symbol, size)?;
        }
        Ok(())
    }

    /// Waits for the stream; 64-bit integers that it computed.
    fn words(&mut self, addresses: &[u64]) -> Result<Vec<i64>> {
        for copy in self.context.download_words(addresses)? {
            self.copy(copy)?;
        }
        self.wait()?;
        Ok(self.context.words(addresses.len()))
    }

    /// Waits for the stream, and lets the host compute a buffer from others.
    fn on_host(&mut self, step: &HostStep) -> Result<()> {
        let mut ends = Vec::with_capacity(step.operands.len());
        let mut end = 0usize;
        for operand in &step.operands {
            end += self.layout.bytes(*operand, self.known.atoms())?;
            ends.push(end);
        }
        self.context.reserve_host(end)?;
        let starts = || std::iter::once(&0).chain(&ends);
        for ((operand, start), end) in step.operands.iter().zip(starts()).zip(&ends) {
            let from = self.address(*operand)?;
            self.copy(self.context.download_host(from, *start, end - start))?;
        }
        self.wait()?;
        let operands = starts().zip(&ends).map(|(start, end)| &self.context.host()[*start..*end]);
        let operands: Vec<&[u8]> = operands.collect();
        let expected = self.layout.bytes(step.result, self.known.atoms())?;
        let result = match step.op.evaluate(&operands, self.known.atoms()) {
            Err(_) if self.rehearsed => vec![0; expected],
            result => result.map_err(|error| {
                Error::Execution(format!("node `{}` ({}): {error}", step.node, step.op.name()))
            })?,
        };
        if result.len() != expected {
            return Err(Error::artifact("the program", "a buffer of the host has another size"));
        }
        let to = self.address(step.result)?;
        let copy = self.context.upload_host(&result, to)?;
        self.copy(copy)?;
        self.wait()
    }

    /// Where a buffer begins.
    fn address(&self, buffer: BufferId) -> Result<u64> {
        let place = self.layout.place(buffer)?;
        let offsets = self.layout.offsets();
        Ok(self.context.places(offsets, &self.inputs, &self.outputs).address(place))
    }
}

/// The steps before the next that can't be evaluated at these sizes, and the others.
pub(super) fn whole_steps<'s>(steps: &'s [Step], atoms: &[i64]) -> (&'s [Step], &'s [Step]) {
    let next = steps.iter().position(|step| !is_whole(step, atoms));
    steps.split_at(next.unwrap_or(steps.len()))
}
