//! Data on its way: threads each copy a piece, or some, into slots of their own, check them there and send them.

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
/// Slots of a thread for one piece each: one is filled while two are sent or wait for others to be.
const SLOTS: usize = 3;
/// Pieces that are sent as one where a thread has [many](MANY) of them: between two copies a link rests for the time of a
/// tenth of a piece.
const PIECES_AT_ONCE: usize = 2;
/// Slots of a thread for so many pieces each.
const GREAT_SLOTS: usize = 2;
/// Pieces of a thread, from which on the last ones, for which threads wait in the end, are few.
const MANY: usize = 12;

/// Memory that a device copies from.
pub(crate) trait Slot: Send {
    /// Replaces what it holds by these bytes, no more than [`Pace::bytes`]; what it then holds.
    fn fill(&mut self, bytes: &[u8]) -> &[u8];
}

/// The way to a device. Any thread may call it.
pub(crate) trait Link: Sync {
    type Slot: Slot;

    /// Begins to copy what a slot holds to where it belongs: the data from `number` times [`Pace::bytes`] on.
    fn send(&self, number: usize, slot: &mut Self::Slot) -> Result<()>;

    /// Waits until nothing copies from a slot, which may never have been sent.
    fn wait(&self, slot: &mut Self::Slot) -> Result<()>;
}

/// How data is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// How many threads do it, the one that asks for it among them.
    threads: usize,
    /// How many slots are of use.
    pub(crate) slots: usize,
    /// What a slot holds, pieces or all of the data.
    pub(crate) bytes: usize,
}

impl Pace {
    /// For data of so many bytes on this machine.
    pub(crate) fn of(bytes: usize) -> Self {
        Self::with(bytes, cores())
    }

    /// How many bytes the slots have that any data is worth on this machine.
    pub(crate) fn most_bytes() -> usize {
        let most = Self::of(usize::MAX);
        most.slots * most.bytes
    }

    fn with(bytes: usize, cores: usize) -> Self {
        let pieces = bytes.div_ceil(PIECE);
        let threads = (pieces / PIECES_PER_THREAD).clamp(1, MOST_THREADS).min(cores.max(1));
        let (at_once, slots) = match pieces / threads {
            0..MANY => (1, SLOTS),
            _ => (PIECES_AT_ONCE, GREAT_SLOTS),
        };
        let slots = (threads * slots).min(pieces.div_ceil(at_once));
        Self { threads, slots, bytes: (PIECE * at_once).min(bytes) }
    }
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Sends data through a link, with the help of other threads where it is long, and tells the checksums of its pieces.
/// There is a slot of [`Pace::bytes`], if there is data; fewer than [are of use](Pace::slots) only make it slower.
///
/// Copies may go on when this ends. The first error ends it, as does a panic; then some pieces were sent and others were
/// not.
pub(crate) fn pipe<L: Link>(
    data: &[u8],
    pace: Pace,
    slots: Vec<L::Slot>,
    link: &L,
) -> Result<Vec<u64>> {
    // With one slot, a thread would neither fill nor send half of the time.
    let threads = pace.threads.min(slots.len() / 2).max(1);
    let mut shares: Vec<Vec<L::Slot>> = (0..threads).map(|_| Vec::new()).collect();
    for (n, slot) in slots.into_iter().enumerate() {
        shares[n % threads].push(slot);
    }
    let pieces = Pieces::new(data, pace.bytes);
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

/// Pieces of data, which threads take one by one, or some at once.
struct Pieces<'d> {
    data: &'d [u8],
    /// The bytes that a thread takes.
    bytes: usize,
    /// How often one did; more often than there is data for in the end.
    next: AtomicUsize,
    /// Checksums by piece.
    sums: Vec<AtomicU64>,
    /// The first error.
    failed: OnceLock<Error>,
}

impl<'d> Pieces<'d> {
    fn new(data: &'d [u8], bytes: usize) -> Self {
        let sums = data.chunks(PIECE).map(|_| AtomicU64::new(0)).collect();
        Self { data, bytes, next: AtomicUsize::new(0), sums, failed: OnceLock::new() }
    }

    /// What is next, and its number.
    fn claim(&self) -> Option<(usize, &'d [u8])> {
        // A number is all that threads learn from each other before they are joined.
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let start = number.checked_mul(self.bytes).filter(|start| *start < self.data.len())?;
        Some((number, &self.data[start..self.data.len().min(start + self.bytes)]))
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
        while let Some((number, bytes)) = self.claim() {
            let many = slots.len();
            let slot = &mut slots[turn % many];
            link.wait(slot)?;
            // The checksums are those of what is copied, whatever becomes of the original.
            let pieces = slot.fill(bytes).chunks(PIECE).map(checksum_of_piece);
            let first = number * self.bytes / PIECE;
            for (to, sum) in self.sums[first..].iter().zip(pieces) {
                to.store(sum, Ordering::Relaxed);
            }
            link.send(number, slot)?;
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
