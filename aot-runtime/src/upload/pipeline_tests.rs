use std::collections::VecDeque;

use super::*;

/// Memory that can be made to panic.
#[derive(Debug)]
struct Memory {
    bytes: Vec<u8>,
    room: usize,
    panics: bool,
}

impl Slot for Memory {
    fn fill(&mut self, bytes: &[u8]) -> &[u8] {
        assert!(bytes.len() <= self.room, "a slot is too small");
        if self.panics && bytes[0] == 2 {
            std::panic::resume_unwind(Box::new("a test"));
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        &self.bytes
    }
}

/// A link that copies as late as it may.
#[derive(Debug, Default)]
struct Late {
    sent: VecDeque<(usize, Memory)>,
    arrived: Vec<u8>,
    slots: usize,
    /// Bytes of all slots.
    room: usize,
    most_in_flight: usize,
    /// The piece whose sending fails.
    fails: Option<usize>,
    /// The number of the slot that can't be made.
    lacks: Option<usize>,
    /// Receives before it has to.
    early: bool,
    panics: bool,
}

impl Link for Late {
    type Slot = Memory;

    fn slot(&mut self, bytes: usize) -> Result<Memory> {
        if self.lacks == Some(self.slots) {
            return Err(Error::OutOfHostMemory { needed: bytes as u64 });
        }
        self.slots += 1;
        self.room += bytes;
        Ok(Memory { bytes: Vec::new(), room: bytes, panics: self.panics })
    }

    fn send(&mut self, piece: usize, slot: Memory) -> Result<()> {
        if self.fails == Some(piece) {
            return Err(Error::NoCuda("a test".to_owned()));
        }
        self.sent.push_back((piece, slot));
        self.most_in_flight = self.most_in_flight.max(self.sent.len());
        Ok(())
    }

    fn receive(&mut self, wait: bool) -> Result<Option<Memory>> {
        if !wait && !self.early {
            return Ok(None);
        }
        let Some((piece, slot)) = self.sent.pop_front() else { return Ok(None) };
        assert_eq!(self.arrived.len(), piece * PIECE, "pieces are sent in order");
        self.arrived.extend_from_slice(&slot.bytes);
        Ok(Some(slot))
    }
}

impl Late {
    fn finish(mut self) -> Vec<u8> {
        while self.receive(true).unwrap().is_some() {}
        self.arrived
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
fn all_arrives_with_any_number_of_threads() {
    for (pieces, beyond) in [(0, 0), (0, 1), (1, 0), (3, 17), (11, 5)] {
        let data = data(pieces, beyond);
        for threads in [0, 1, 2, 5] {
            for early in [false, true] {
                let mut link = Late { early, ..Late::default() };
                assert_eq!(pipe_with(&data, threads, &mut link).unwrap(), sums(&data));
                assert!(link.most_in_flight <= IN_FLIGHT.max(2));
                assert!(link.slots <= (threads + IN_FLIGHT).min(data.len().div_ceil(PIECE)));
                assert!(link.finish() == data, "{pieces} pieces by {threads} threads");
            }
        }
    }
}

#[test]
fn short_data_takes_no_more_memory_than_it_has_and_no_threads() {
    let data = data(0, 1000);
    let mut link = Late::default();
    assert_eq!(pipe(&data, &mut link).unwrap(), sums(&data));
    assert_eq!((link.slots, link.room), (1, 1000));
    assert_eq!(
        [0, 1, 3, 4, 12, 100].map(|pieces| threads(pieces, 16)),
        [0, 0, 0, 1, 2, MOST_THREADS]
    );
    assert_eq!([1, 2, 3].map(|cores| threads(100, cores)), [0, 1, 2]);
}

#[test]
fn errors_of_the_link_end_it() {
    let data = data(9, 0);
    for threads in [0, 3] {
        for piece in [0, 4, 8] {
            let mut link = Late { fails: Some(piece), ..Late::default() };
            let error = pipe_with(&data, threads, &mut link).unwrap_err();
            assert_eq!(error.to_string(), "no CUDA device: a test");
            assert!(link.finish() == data[..piece * PIECE], "what was sent arrives");
        }
        for slot in [0, 1] {
            let mut link = Late { lacks: Some(slot), ..Late::default() };
            let error = pipe_with(&data, threads, &mut link).unwrap_err();
            assert!(matches!(error, Error::OutOfHostMemory { .. }), "{error}");
        }
    }
}

#[test]
fn a_panic_of_a_thread_is_an_error() {
    let data = data(9, 0);
    for threads in [1, 3] {
        let mut link = Late { panics: true, ..Late::default() };
        let error = pipe_with(&data, threads, &mut link).unwrap_err();
        assert_eq!(error.to_string(), "a thread panicked while it used weights");
    }
}
