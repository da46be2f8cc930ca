//! Data on its way: threads each copy pieces into slots of their own, check them there and send them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use crate::artifact::{self, checksum_of_piece};
use crate::{Error, Result};

/// Bytes of a piece; few where Miri runs the tests, which takes as long for a KiB as others for a MiB.
const PIECE: usize = if cfg!(miri) { 1 << 10 } else { artifact::PIECE };
/// Threads, at most. So many fill slots faster than a link of 64 GB/s sends them.
const MOST_THREADS: usize = 10;
/// Pieces for every thread, at least, which are to be worth its beginning.
const PIECES_PER_THREAD: usize = 4;
/// Slots of a thread, where it has no fewer pieces: one is filled while two are sent or wait for others to be.
const SLOTS: usize = 3;

/// Memory that a device copies from.
pub(crate) trait Slot: Send {
    /// Replaces what it holds by these bytes, no more than a [piece](PIECE); what it then holds.
    fn fill(&mut self, bytes: &[u8]) -> &[u8];
}

/// The way to a device. Any thread may call it.
pub(crate) trait Link: Sync {
    type Slot: Slot;

    /// Begins to copy what a slot holds of a piece to where it belongs.
    fn send(&self, piece: usize, slot: &mut Self::Slot) -> Result<()>;

    /// Waits until nothing copies from a slot, which may never have been sent.
    fn wait(&self, slot: &mut Self::Slot) -> Result<()>;
}

/// How many slots data of so many bytes is worth on this machine.
pub(crate) fn slots(bytes: usize) -> usize {
    let pieces = bytes.div_ceil(PIECE);
    (threads(pieces, cores()) * SLOTS).min(pieces)
}

/// How many slots any data is worth on this machine.
pub(crate) fn most_slots() -> usize {
    threads(usize::MAX, cores()) * SLOTS
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// How many threads send so many pieces, the one that asks for it among them.
fn threads(pieces: usize, cores: usize) -> usize {
    (pieces / PIECES_PER_THREAD).clamp(1, MOST_THREADS).min(cores.max(1))
}

/// Sends data through a link, with the help of other threads where it is long, and tells the checksums of its pieces.
/// There is a slot, if there is data; fewer slots than [it is worth](slots) only make it slower.
///
/// Copies may go on when this ends. The first error ends it, as does a panic; then some pieces were sent and others were
/// not.
pub(crate) fn pipe<L: Link>(data: &[u8], slots: Vec<L::Slot>, link: &L) -> Result<Vec<u64>> {
    pipe_with(data, threads(data.len().div_ceil(PIECE), cores()), slots, link)
}

fn pipe_with<L: Link>(
    data: &[u8],
    threads: usize,
    slots: Vec<L::Slot>,
    link: &L,
) -> Result<Vec<u64>> {
    // With one slot, a thread would neither fill nor send half of the time.
    let threads = threads.min(slots.len() / 2).max(1);
    let mut shares: Vec<Vec<L::Slot>> = (0..threads).map(|_| Vec::new()).collect();
    for (n, slot) in slots.into_iter().enumerate() {
        shares[n % threads].push(slot);
    }
    let pieces = Pieces::new(data);
    let own = shares.pop().unwrap_or_default();
    thread::scope(|scope| {
        for share in shares {
            let helper = thread::Builder::new().name("aot-weights".to_owned());
            // With fewer threads than wished for it only takes longer.
            if helper.spawn_scoped(scope, || pieces.work(share, link)).is_err() {
                break;
            }
        }
        pieces.work(own, link);
    });
    pieces.sums()
}

/// Pieces of data, which threads take one by one.
struct Pieces<'d> {
    data: &'d [u8],
    /// The first one that no thread has taken; none from the number of pieces on.
    next: AtomicUsize,
    /// Checksums by piece.
    sums: Vec<AtomicU64>,
    /// The first error.
    failed: OnceLock<Error>,
}

impl<'d> Pieces<'d> {
    fn new(data: &'d [u8]) -> Self {
        let sums = data.chunks(PIECE).map(|_| AtomicU64::new(0)).collect();
        Self { data, next: AtomicUsize::new(0), sums, failed: OnceLock::new() }
    }

    /// The next piece.
    fn claim(&self) -> Option<(usize, &'d [u8])> {
        // A number is all that threads learn from each other before they are joined.
        let piece = self.next.fetch_add(1, Ordering::Relaxed);
        let start = piece.checked_mul(PIECE).filter(|start| *start < self.data.len())?;
        Some((piece, &self.data[start..self.data.len().min(start + PIECE)]))
    }

    /// What a thread does: sends pieces until there is none, or some thread has failed.
    fn work<L: Link>(&self, slots: Vec<L::Slot>, link: &L) {
        // After a panic nobody uses the slots, and who began this gets an error.
        let result = catch_unwind(AssertUnwindSafe(|| self.send(slots, link)));
        if let Err(error) = result.unwrap_or(Err(Error::Poisoned("weights"))) {
            let _ = self.failed.set(error);
            self.next.store(self.sums.len(), Ordering::Relaxed);
        }
    }

    fn send<L: Link>(&self, mut slots: Vec<L::Slot>, link: &L) -> Result<()> {
        let mut turn = 0;
        while let Some((piece, bytes)) = self.claim() {
            let many = slots.len();
            let slot = &mut slots[turn % many];
            link.wait(slot)?;
            // The checksum is that of what is copied, whatever becomes of the original.
            let sum = checksum_of_piece(slot.fill(bytes));
            self.sums[piece].store(sum, Ordering::Relaxed);
            link.send(piece, slot)?;
            turn += 1;
        }
        Ok(())
    }

    /// The checksums, when all threads have ended.
    fn sums(self) -> Result<Vec<u64>> {
        match self.failed.into_inner() {
            Some(error) => Err(error),
            None => Ok(self.sums.into_iter().map(AtomicU64::into_inner).collect()),
        }
    }
}

#[cfg(test)]
#[path = "pipeline_tests.rs"]
mod tests;
