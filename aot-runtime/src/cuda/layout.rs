//! Where buffers lie.

use std::collections::HashMap;

use super::actions::Where;
use crate::program::{BufferId, MemoryPlan, Place, Program};
use crate::{Error, Result};

/// Where a program's buffers lie, whatever the sizes.
#[derive(Debug)]
pub(super) struct Placement {
    /// By buffer; none of those that are no more.
    places: Vec<Option<Where>>,
    /// By plan and buffer: bytes into the arena; 0 of what is not there.
    offsets: Vec<Vec<u64>>,
}

impl Placement {
    /// The places of buffers with these addresses, and these offsets in the zeroed scratch of an execution context.
    pub(super) fn new(
        program: &Program,
        fixed: &HashMap<BufferId, u64>,
        scratch: &HashMap<BufferId, u64>,
    ) -> Self {
        let place = |(i, place)| {
            let id = BufferId(i as u32);
            match place {
                Place::Input(n) => Some(Where::Input(n)),
                Place::Output(n) => Some(Where::Output(n)),
                Place::Arena => Some(Where::Arena(id)),
                Place::ZeroedScratch => scratch.get(&id).copied().map(Where::Scratch),
                _ => fixed.get(&id).copied().map(Where::Fixed),
            }
        };
        let offsets = |plan: &MemoryPlan| {
            let mut offsets = vec![0; program.buffers.len()];
            for (id, offset) in &plan.offsets {
                offsets[id.0 as usize] = *offset;
            }
            offsets
        };
        Self {
            places: program.buffers.iter().map(|b| b.place).enumerate().map(place).collect(),
            offsets: program.plans.iter().map(offsets).collect(),
        }
    }

    /// Forgets a buffer.
    pub(super) fn remove(&mut self, id: BufferId) {
        if let Some(place) = self.places.get_mut(id.0 as usize) {
            *place = None;
        }
    }

    /// Where a buffer begins.
    pub(super) fn place(&self, id: BufferId) -> Result<Where> {
        let place = self.places.get(id.0 as usize).copied().flatten();
        place.ok_or_else(|| Error::artifact("the program", "a buffer has no place"))
    }
}

/// In which parts of memory buffers lie during one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout<'p> {
    program: &'p Program,
    placement: &'p Placement,
    /// The plan, and by buffer bytes into the arena.
    plan: Option<(&'p MemoryPlan, &'p [u64])>,
}

impl<'p> Layout<'p> {
    /// The layout for sizes up to these atoms; it holds throughout the run.
    pub(super) fn new(program: &'p Program, placement: &'p Placement, atoms: &[i64]) -> Self {
        let plan = program.plan_for(atoms);
        let plan = plan.map(|n| (&program.plans[n], placement.offsets[n].as_slice()));
        Self { program, placement, plan }
    }

    pub(super) fn program(&self) -> &'p Program {
        self.program
    }

    /// Bytes that the arena needs.
    pub(super) fn arena(&self) -> u64 {
        self.plan.map_or(0, |(plan, _)| plan.total)
    }

    /// By buffer: bytes into the arena, see [`Where::Arena`].
    pub(super) fn offsets(&self) -> &'p [u64] {
        self.plan.map_or(&[], |(_, offsets)| offsets)
    }

    /// Bytes that a buffer holds at sizes given by the symbols' atoms.
    pub(super) fn bytes(&self, id: BufferId, atoms: &[i64]) -> Result<usize> {
        let buffer = &self.program.buffers[id.0 as usize];
        let elements = u64::try_from(buffer.elements.eval(atoms)?).unwrap_or(0);
        Ok(buffer.dtype.bytes_for(elements).unwrap_or(0) as usize)
    }

    /// Where a buffer begins.
    pub(super) fn place(&self, id: BufferId) -> Result<Where> {
        self.placement.place(id)
    }
}
