//! Data on its way: threads copy its pieces into slots and check them, while the slots before are being sent.

use std::thread;

use crate::artifact::{PIECE, checksum_of_piece};
use crate::concurrent::Ring;
use crate::{Error, Result};

/// Threads that fill slots, at most. So many read memory faster than a link of 64 GB/s.
const MOST_THREADS: usize = 10;
/// Pieces from which on threads of their own fill slots.
const MANY: usize = 4;
/// Pieces for every thread, at least: what a thread and its slot cost is to be worth it.
const PIECES_PER_THREAD: usize = 6;
/// Slots that are being sent, at most, so that a link is not idle between two.
const IN_FLIGHT: usize = 3;

/// Memory that a device copies from.
pub(crate) trait Slot: Send {
    /// Replaces what it holds by these bytes, no more than a [piece](PIECE); what it then holds.
    fn fill(&mut self, bytes: &[u8]) -> &[u8];
}

/// The way to a device. One thread, which made it, calls it.
pub(crate) trait Link {
    type Slot: Slot;

    /// Another slot, of so many bytes.
    fn slot(&mut self, bytes: usize) -> Result<Self::Slot>;

    /// Begins to copy what a slot holds of a piece to where it belongs.
    fn send(&mut self, piece: usize, slot: Self::Slot) -> Result<()>;

    /// The slot that was sent first of those that did not come back, when it is copied; waits for that if it should. None
    /// if there is none, or it is not yet copied.
    fn receive(&mut self, wait: bool) -> Result<Option<Self::Slot>>;
}

/// Sends data through a link, with the help of other threads where it is long, and tells the checksums of its pieces.
///
/// The last slots may not have come back when this ends. After an error, some pieces were sent and others were not.
pub(crate) fn pipe<L: Link>(data: &[u8], link: &mut L) -> Result<Vec<u64>> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    pipe_with(data, threads(data.len().div_ceil(PIECE), cores), link)
}

/// How many threads fill slots; 0 where the one that sends them does.
fn threads(pieces: usize, cores: usize) -> usize {
    match pieces < MANY {
        true => 0,
        false => (pieces / PIECES_PER_THREAD).clamp(1, MOST_THREADS).min(cores.saturating_sub(1)),
    }
}

fn pipe_with<L: Link>(data: &[u8], threads: usize, link: &mut L) -> Result<Vec<u64>> {
    let ring = Ring::new(data.len().div_ceil(PIECE));
    thread::scope(|scope| {
        let stop = Stop(&ring);
        let mut helpers = Vec::with_capacity(threads);
        for _ in 0..threads {
            let helper = thread::Builder::new().name("aot-weights".to_owned());
            // With fewer threads than wished for it only takes longer.
            match helper.spawn_scoped(scope, || fill(&ring, data)) {
                Ok(helper) => helpers.push(helper),
                Err(_) => break,
            }
        }
        let sums = match helpers.len() {
            0 => alone(data, link),
            helpers => send(&ring, data, helpers, link),
        };
        drop(stop);
        let joined: Vec<_> = helpers.into_iter().map(|helper| helper.join()).collect();
        match joined.iter().all(|result| result.is_ok()) {
            true => sums,
            false => Err(Error::Poisoned("weights")),
        }
    })
}

/// A slot and the checksum of what it holds.
#[derive(Debug)]
struct Staged<S> {
    slot: S,
    checksum: u64,
}

impl<S: Slot> Staged<S> {
    fn empty(slot: S) -> Self {
        Self { slot, checksum: 0 }
    }

    /// The checksum is that of what was copied, whatever becomes of the original.
    fn fill(&mut self, piece: &[u8]) {
        self.checksum = checksum_of_piece(self.slot.fill(piece));
    }
}

/// Lets the other threads end, however this one does.
struct Stop<'r, S>(&'r Ring<Staged<S>>);

impl<S> Drop for Stop<'_, S> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// What a helper does.
fn fill<S: Slot>(ring: &Ring<Staged<S>>, data: &[u8]) {
    /// The sender would wait for a piece whose thread panicked.
    struct StopInPanic<'r, S>(&'r Ring<Staged<S>>);
    impl<S> Drop for StopInPanic<'_, S> {
        fn drop(&mut self) {
            if thread::panicking() {
                self.0.stop();
            }
        }
    }
    let _stop = StopInPanic(ring);
    while let Some((piece, mut staged)) = ring.claim() {
        let start = piece * PIECE;
        staged.fill(&data[start..data.len().min(start + PIECE)]);
        ring.put(piece, staged);
    }
}

/// Sends what helpers fill. Every helper and every slot that is being sent may have one; slots are made as they are wanted.
fn send<L: Link>(
    ring: &Ring<Staged<L::Slot>>,
    data: &[u8],
    helpers: usize,
    link: &mut L,
) -> Result<Vec<u64>> {
    let pieces = data.len().div_ceil(PIECE);
    let most = (helpers + IN_FLIGHT).min(pieces);
    let (mut made, mut in_flight) = (0, 0);
    let mut sums = Vec::with_capacity(pieces);
    while sums.len() < pieces {
        let staged = match ring.try_take() {
            Some(staged) => staged,
            None if made < most => {
                ring.give(Staged::empty(link.slot(PIECE.min(data.len()))?));
                made += 1;
                continue;
            }
            None => ring.take().ok_or(Error::Poisoned("weights"))?,
        };
        link.send(sums.len(), staged.slot)?;
        sums.push(staged.checksum);
        in_flight += 1;
        while let Some(slot) = link.receive(in_flight == IN_FLIGHT)? {
            ring.give(Staged::empty(slot));
            in_flight -= 1;
        }
    }
    Ok(sums)
}

/// Fills slots and sends them, by turns.
fn alone<L: Link>(data: &[u8], link: &mut L) -> Result<Vec<u64>> {
    let mut sums = Vec::new();
    for (piece, bytes) in data.chunks(PIECE).enumerate() {
        let used = if piece < 2 { None } else { link.receive(true)? };
        let slot = used.map_or_else(|| link.slot(PIECE.min(data.len())), Ok)?;
        let mut staged = Staged::empty(slot);
        staged.fill(bytes);
        sums.push(staged.checksum);
        link.send(piece, staged.slot)?;
    }
    Ok(sums)
}

#[cfg(test)]
#[path = "pipeline_tests.rs"]
mod tests;
