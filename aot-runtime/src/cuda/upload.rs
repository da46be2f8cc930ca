//! Weights on their way to the GPU.
//!
//! They pass through page-locked memory of a few MiB. The mapping of a file is not registered with the driver: not every
//! driver, system and file system can lock pages of read-only mappings, and all of the file would be locked in memory.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::driver::{Block, Staging};
use super::load::greatest_bytes;
use super::{Gpu, Stream};
use crate::artifact::{PIECE, UncheckedWeights, WEIGHT_ALIGNMENT};
use crate::program::{BufferId, Place, Program};
use crate::upload::{Link, Part, Route, Slot, pipe};
use crate::{Error, Result};

/// Where weights go: places of buffers in a block.
pub(super) type Destination<'a> = (&'a Block, &'a HashMap<BufferId, u64>);

/// Puts the weights that buffers stand for into blocks, and checks the file that they are from. All copies are done when
/// this ends, however it does.
pub(super) fn upload(
    stream: &Stream,
    program: &Program,
    weights: &UncheckedWeights,
    destinations: &[Destination<'_>],
) -> Result<()> {
    let data = weights.data();
    let mut parts = Vec::new();
    for (block, (_, places)) in destinations.iter().enumerate() {
        for (&id, &place) in *places {
            let Place::Weight(n) = program.buffers[id.0 as usize].place else { continue };
            let weight = &program.weights[n as usize];
            let start = usize::try_from(weight.offset).ok();
            let bytes = usize::try_from(greatest_bytes(program, id)?).ok();
            let range = start.zip(bytes).and_then(|(start, bytes)| {
                Some(start..start.checked_add(bytes)?).filter(|range| range.end <= data.len())
            });
            let data = range.ok_or_else(|| {
                Error::artifact("the weights", format!("they do not hold `{}`", weight.name))
            })?;
            parts.push(Part { data, block, offset: place as usize });
        }
    }
    // Buffers begin at such multiples, so that no other one fits between two that are closer.
    let route = Route::new(parts, PIECE, WEIGHT_ALIGNMENT as usize);
    let gpu = stream.gpu().clone();
    gpu.enter()?;
    let blocks = destinations.iter().map(|(block, _)| *block).collect();
    let mut uploads = Uploads { gpu, stream, blocks, route, sent: VecDeque::new() };
    let sums = pipe(data, &mut uploads)?;
    stream.synchronize()?;
    weights.check(&sums)
}

/// Copies that are put into a stream. Its GPU's context is current on the thread that has this.
struct Uploads<'a> {
    gpu: Arc<Gpu>,
    stream: &'a Stream,
    blocks: Vec<&'a Block>,
    route: Route,
    /// What copies may still read, in their order.
    sent: VecDeque<Staging>,
}

impl Slot for Staging {
    fn fill(&mut self, bytes: &[u8]) -> &[u8] {
        Staging::fill(self, bytes)
    }
}

impl Link for Uploads<'_> {
    type Slot = Staging;

    fn slot(&mut self, bytes: usize) -> Result<Staging> {
        Staging::new(&self.gpu, bytes)
    }

    fn send(&mut self, piece: usize, slot: Staging) -> Result<()> {
        // From here on it is kept until its copies are done, whatever fails in the middle of them.
        self.sent.push_back(slot);
        let Some(slot) = self.sent.back_mut() else { return Ok(()) };
        for chunk in self.route.of(piece) {
            let block = self.blocks[chunk.block];
            block.upload(self.stream, chunk.offset, slot, chunk.start, chunk.bytes)?;
        }
        slot.end_copies(self.stream)
    }

    fn receive(&mut self, wait: bool) -> Result<Option<Staging>> {
        match self.sent.front() {
            Some(slot) if slot.is_copied(wait)? => Ok(self.sent.pop_front()),
            _ => Ok(None),
        }
    }
}

impl Drop for Uploads<'_> {
    fn drop(&mut self) {
        // Staging memory and blocks are freed next. Where this fails, no copy goes on.
        let _ = self.stream.synchronize();
    }
}
