//! Weights on their way to the GPU.
//!
//! They pass through page-locked memory of a few MiB: several threads, the calling one among them, take the next one or two
//! pieces that nobody has, copy them into a slot of their own, check them there and put their copies into the upload's one
//! stream, in whatever order. No thread waits for another one, only for its own slots to be copied, so that
//! the memory of the host or the link is what sets the pace.
//!
//! The slots are memory that is made while the GPU is opened, locked at the first upload and kept by the GPU for the
//! next: [`Staging`]. An upload that finds another one at it makes less memory for itself and is slower.
//!
//! The mapping of a file is not registered with the driver: not every driver, system and file system can lock pages of
//! read-only mappings, and all of the file would be locked in memory.

use std::collections::HashMap;

use super::Stream;
use super::driver::{Block, Slot, Staging};
use super::load::greatest_bytes;
use crate::artifact::{UncheckedWeights, WEIGHT_ALIGNMENT};
use crate::program::{BufferId, Place, Program};
use crate::upload::{self, Link, Pace, Part, Route, pipe};
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
    let pace = Pace::of(data.len());
    let route = Route::new(parts, pace.bytes.max(1), WEIGHT_ALIGNMENT as usize);
    let mut staging = Staging::new(stream.gpu(), pace.slots, pace.bytes)?;
    let blocks = destinations.iter().map(|(block, _)| *block).collect();
    let uploads = Uploads { stream, blocks, route };
    let sums = pipe(data, pace, staging.slots(pace.slots, pace.bytes), &uploads)?;
    stream.synchronize()?;
    weights.check(&sums)
}

/// Copies that are put into a stream.
struct Uploads<'a> {
    stream: &'a Stream,
    blocks: Vec<&'a Block>,
    route: Route,
}

impl upload::Slot for Slot<'_> {
    fn fill(&mut self, bytes: &[u8]) -> &[u8] {
        Slot::fill(self, bytes)
    }
}

impl<'a> Link for Uploads<'a> {
    type Slot = Slot<'a>;

    fn send(&self, number: usize, slot: &mut Slot<'a>) -> Result<()> {
        self.stream.gpu().enter()?;
        for chunk in self.route.of(number) {
            let block = self.blocks[chunk.block];
            block.upload(self.stream, chunk.offset, slot, chunk.start, chunk.bytes)?;
        }
        slot.end_copies(self.stream)
    }

    fn wait(&self, slot: &mut Slot<'a>) -> Result<()> {
        slot.wait()
    }
}

impl Drop for Uploads<'_> {
    fn drop(&mut self) {
        // Staging memory and blocks are given away next. Where this fails, no copy goes on.
        let _ = self.stream.synchronize();
    }
}
