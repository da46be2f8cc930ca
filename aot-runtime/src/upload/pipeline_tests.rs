use std::sync::{Barrier, Mutex};

use super::*;

/// Memory that is copied from as late as can be: when somebody waits for it or has no use for it any more.
#[derive(Debug)]
struct Late<'t> {
    bytes: Vec<u8>,
    /// The piece that is on its way.
    sent: Option<usize>,
    /// The number of the slot.
    number: usize,
    test: &'t Test,
}

/// A link, and what happens on it.
#[derive(Debug, Default)]
struct Test {
    /// What came of pieces, by piece.
    arrived: Mutex<Vec<Option<Vec<u8>>>>,
    /// The piece whose sending fails.
    fails: Option<usize>,
    /// The slot that can't be waited for.
    stuck: Option<usize>,
    /// The piece whose filling panics.
    panics: Option<u8>,
    /// Threads meet before they send their first piece, so that each has one.
    meet: Option<Barrier>,
    /// Who sent pieces.
    threads: Mutex<Vec<thread::ThreadId>>,
}

impl Late<'_> {
    fn copy(&mut self) {
        let Some(piece) = self.sent.take() else { return };
        let mut pieces = self.test.arrived.lock().unwrap();
        if pieces.len() <= piece {
            pieces.resize(piece + 1, None);
        }
        assert!(pieces[piece].replace(std::mem::take(&mut self.bytes)).is_none(), "sent twice");
    }
}

impl Drop for Late<'_> {
    fn drop(&mut self) {
        self.copy();
    }
}

impl Slot for Late<'_> {
    fn fill(&mut self, bytes: &[u8]) -> &[u8] {
        assert_eq!(self.sent, None, "filled while it is copied");
        if self.test.panics == Some(bytes[0]) {
            std::panic::resume_unwind(Box::new("a test"));
        }
        self.bytes = bytes.to_vec();
        &self.bytes
    }
}

impl<'t> Link for &'t Test {
    type Slot = Late<'t>;

    fn send(&self, piece: usize, slot: &mut Late<'t>) -> Result<()> {
        assert_eq!(slot.sent, None, "sent while it is copied");
        let thread = thread::current().id();
        let mut threads = self.threads.lock().unwrap();
        let first = !threads.contains(&thread);
        threads.push(thread);
        drop(threads);
        if let Some(meet) = self.meet.as_ref().filter(|_| first) {
            meet.wait();
        }
        if self.fails == Some(piece) {
            return Err(Error::NoCuda("a test".to_owned()));
        }
        slot.sent = Some(piece);
        Ok(())
    }

    fn wait(&self, slot: &mut Late<'t>) -> Result<()> {
        if self.stuck == Some(slot.number) && slot.sent.is_some() {
            return Err(Error::NoCuda("stuck".to_owned()));
        }
        slot.copy();
        Ok(())
    }
}

impl Test {
    fn slots(&self, count: usize) -> Vec<Late<'_>> {
        let slot = |number| Late { bytes: Vec::new(), sent: None, number, test: self };
        (0..count).map(slot).collect()
    }

    /// Sends data piece by piece.
    fn pipe(&self, data: &[u8], threads: usize, slots: usize) -> Result<Vec<u64>> {
        self.pipe_at_once(data, threads, slots, 1)
    }

    fn pipe_at_once(
        &self,
        data: &[u8],
        threads: usize,
        slots: usize,
        pieces: usize,
    ) -> Result<Vec<u64>> {
        let pace = Pace { threads, slots, bytes: (pieces * PIECE).min(data.len()) };
        pipe(data, pace, self.slots(slots), &self)
    }

    /// What came of all pieces.
    fn arrived(self) -> Vec<Option<Vec<u8>>> {
        self.arrived.into_inner().unwrap()
    }
}

/// The n-th piece begins with the byte n.
fn data(pieces: usize, beyond: usize) -> Vec<u8> {
    let mut data: Vec<u8> =
        (0..pieces * PIECE + beyond).map(|i| (i / 3 + i / PIECE) as u8).collect();
    data.chunks_mut(PIECE).enumerate().for_each(|(n, piece)| piece[0] = n as u8);
    data
}

fn sums(data: &[u8]) -> Vec<u64> {
    data.chunks(PIECE).map(checksum_of_piece).collect()
}

#[test]
fn all_arrives_once_with_any_number_of_threads_and_slots() {
    for (pieces, beyond) in [(0, 1), (1, 0), (3, 17), (11, 5)] {
        let data = data(pieces, beyond);
        for threads in [1, 2, 5] {
            for slots in [1, 2, 4, 10] {
                for at_once in [1, 2, 5] {
                    let test = Test::default();
                    let sent = test.pipe_at_once(&data, threads, slots, at_once).unwrap();
                    assert_eq!(sent, sums(&data));
                    let all: Vec<_> = test.arrived().into_iter().map(Option::unwrap).collect();
                    let whole = all.iter().rev().skip(1).all(|sent| sent.len() == at_once * PIECE);
                    assert!(whole && all.concat() == data, "{pieces} {threads} {slots} {at_once}");
                }
            }
        }
    }
    assert_eq!(Test::default().pipe(&[], 3, 0).unwrap(), []);
}

#[test]
fn every_thread_sends_where_it_has_two_slots() {
    let data = data(6, 1);
    for (threads, slots, at_work) in [(3, 6, 3), (3, 5, 2), (2, 9, 2), (4, 1, 1)] {
        let meet = Some(Barrier::new(at_work));
        let test = Test { meet, ..Test::default() };
        assert_eq!(test.pipe(&data, threads, slots).unwrap(), sums(&data));
        let mut sent = std::mem::take(&mut *test.threads.lock().unwrap());
        assert_eq!(sent.len(), 7);
        assert!(sent.contains(&thread::current().id()));
        sent.sort_by_key(|id| format!("{id:?}"));
        sent.dedup();
        assert_eq!(sent.len(), at_work);
    }
}

#[test]
fn short_data_takes_few_slots_and_no_threads() {
    let of = |pieces: usize, cores| Pace::with(pieces * PIECE, cores);
    let threads_of = |cores| [0, 1, 7, 8, 16, 100].map(|pieces| of(pieces, cores).threads);
    assert_eq!(threads_of(16), [1, 1, 1, 2, 4, MOST_THREADS]);
    assert_eq!(threads_of(3), [1, 1, 1, 2, 3, 3]);
    assert_eq!((threads_of(1), threads_of(0)), ([1; 6], [1; 6]));
    let slots_of = |bytes| Pace::with(bytes, 16).slots;
    assert_eq!([0, 1, PIECE, PIECE + 1, 4 * PIECE].map(slots_of), [0, 1, 1, 2, 3]);
    assert_eq!([0, 1, PIECE, PIECE + 1].map(|n| Pace::of(n).bytes), [0, 1, PIECE, PIECE]);
    let (data, test) = (data(0, PIECE / 2), Test::default());
    let pace = Pace::of(data.len());
    assert_eq!(pipe(&data, pace, test.slots(pace.slots), &&test).unwrap(), sums(&data));
    assert_eq!(*test.threads.lock().unwrap(), [thread::current().id()]);
    assert_eq!(test.arrived(), [Some(data)]);
}

#[test]
fn long_data_goes_in_great_slots() {
    let of = |pieces: usize, cores| Pace::with(pieces * PIECE, cores);
    assert_eq!(of(119, 16), Pace { threads: 10, slots: 30, bytes: PIECE });
    assert_eq!(of(120, 16), Pace { threads: 10, slots: 20, bytes: 2 * PIECE });
    assert_eq!(of(13, 1), Pace { threads: 1, slots: 2, bytes: 2 * PIECE });
    assert_eq!(Pace::of(usize::MAX).slots * 2 * PIECE, Pace::most_bytes());
    let needed = |pieces| Pace::of(pieces * PIECE + 1).slots * Pace::of(pieces * PIECE + 1).bytes;
    assert!((0..200).all(|pieces| needed(pieces) <= Pace::most_bytes()));
}

#[test]
fn errors_of_the_link_end_it() {
    let data = data(9, 0);
    for threads in [1, 3] {
        for piece in [0, 4, 8] {
            let test = Test { fails: Some(piece), ..Test::default() };
            let error = test.pipe(&data, threads, 6).unwrap_err();
            assert_eq!(error.to_string(), "no CUDA device: a test");
            for (n, bytes) in test.arrived().into_iter().enumerate() {
                let sent = bytes.is_none_or(|b| n != piece && b == data[n * PIECE..][..PIECE]);
                assert!(sent, "what was sent of piece {n} arrives");
            }
        }
        let test = Test { stuck: Some(0), ..Test::default() };
        assert_eq!(test.pipe(&data, threads, 1).unwrap_err().to_string(), "no CUDA device: stuck");
        assert_eq!(test.arrived().into_iter().flatten().count(), 1);
    }
}

#[test]
fn after_the_first_failure_no_thread_begins_a_piece() {
    let data = data(9, 0);
    let fails = Test { fails: Some(3), ..Test::default() };
    let panics = Test { panics: Some(0), ..Test::default() };
    for (first, second, error) in [(&fails, &panics, "a test"), (&panics, &fails, "panicked")] {
        let pieces = Pieces::new(&data, PIECE);
        pieces.work(first.slots(2), &first);
        assert_eq!(pieces.claim(), None);
        // A thread that was in the middle of a piece fails, too.
        pieces.next.store(if second.panics.is_some() { 0 } else { 3 }, Ordering::Relaxed);
        pieces.work(second.slots(2), &second);
        assert_eq!(pieces.claim(), None);
        assert!(pieces.sums().unwrap_err().to_string().contains(error));
    }
}

#[test]
fn a_panic_of_a_thread_is_an_error() {
    let data = data(9, 0);
    for (threads, piece) in [(1, 2), (3, 0), (3, 2), (3, 8)] {
        let test = Test { panics: Some(piece), ..Test::default() };
        let error = test.pipe(&data, threads, 6).unwrap_err();
        assert_eq!(error.to_string(), "a thread panicked while it used weights");
        assert!(test.arrived().get(usize::from(piece)).is_none_or(Option::is_none));
    }
    // There is none that it could fill.
    assert!(Test::default().pipe(&data, 2, 0).is_err());
}
