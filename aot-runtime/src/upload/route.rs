//! Which bytes go where.

use std::ops::Range;

/// A part of the data, and its place: from `offset` on in the block of this number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) data: Range<usize>,
    pub(crate) block: usize,
    pub(crate) offset: usize,
}

/// A copy of a piece's bytes from `start` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    piece: usize,
    pub(crate) block: usize,
    pub(crate) offset: usize,
    pub(crate) start: usize,
    pub(crate) bytes: usize,
}

/// The copies that take the pieces of data to blocks.
#[derive(Debug)]
pub(crate) struct Route {
    /// By piece.
    chunks: Vec<Chunk>,
}

impl Route {
    /// Parts that are neighbours in the data and in a block, with less than `gap` bytes between them in both, are copied as
    /// one, with what is between them.
    pub(crate) fn new(mut parts: Vec<Part>, piece: usize, gap: usize) -> Self {
        parts.retain(|part| !part.data.is_empty());
        parts.sort_by_key(|part| (part.block, part.data.start, part.offset));
        let mut runs: Vec<Part> = Vec::with_capacity(parts.len());
        for part in parts {
            match runs.last_mut() {
                Some(run) if joins(run, &part, gap) => run.data.end = part.data.end,
                _ => runs.push(part),
            }
        }
        let mut chunks: Vec<Chunk> = runs.iter().flat_map(|run| cut(run, piece)).collect();
        chunks.sort_by_key(|chunk| (chunk.piece, chunk.block, chunk.start));
        Self { chunks }
    }

    /// The copies of a piece.
    pub(crate) fn of(&self, piece: usize) -> &[Chunk] {
        let start = self.chunks.partition_point(|chunk| chunk.piece < piece);
        let count = self.chunks[start..].partition_point(|chunk| chunk.piece == piece);
        &self.chunks[start..start + count]
    }
}

/// Whether a part lies behind a run in the data as in the block.
fn joins(run: &Part, part: &Part, gap: usize) -> bool {
    let between = part.data.start.checked_sub(run.data.end);
    let end = run.offset.checked_add(run.data.len());
    let between_in_block = end.and_then(|end| part.offset.checked_sub(end));
    run.block == part.block && between == between_in_block && between.is_some_and(|n| n < gap)
}

/// A run's copies.
fn cut(run: &Part, piece: usize) -> impl Iterator<Item = Chunk> {
    let Part { data, block, offset } = run.clone();
    (data.start / piece..data.end.div_ceil(piece)).map(move |number| {
        let beginning = number * piece;
        let start = data.start.max(beginning);
        let end = data.end.min(beginning + piece);
        let offset = offset + (start - data.start);
        Chunk { piece: number, block, offset, start: start - beginning, bytes: end - start }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(data: Range<usize>, block: usize, offset: usize) -> Part {
        Part { data, block, offset }
    }

    fn chunk(
        block: usize,
        offset: usize,
        start: usize,
        bytes: usize,
    ) -> (usize, usize, usize, usize) {
        (block, offset, start, bytes)
    }

    fn of(route: &Route, piece: usize) -> Vec<(usize, usize, usize, usize)> {
        let tuple = |s: &Chunk| chunk(s.block, s.offset, s.start, s.bytes);
        route.of(piece).iter().map(tuple).collect()
    }

    #[test]
    fn neighbours_are_one_copy_in_every_piece() {
        let parts = vec![part(16..40, 0, 116), part(0..10, 0, 100), part(48..70, 0, 148)];
        let route = Route::new(parts, 32, 16);
        assert_eq!(of(&route, 0), [chunk(0, 100, 0, 32)]);
        assert_eq!(of(&route, 1), [chunk(0, 132, 0, 32)]);
        assert_eq!(of(&route, 2), [chunk(0, 164, 0, 6)]);
        assert_eq!(of(&route, 3), []);
    }

    #[test]
    fn what_lies_otherwise_is_copied_by_itself() {
        // Farther away in the data, in the block, before it there, in another block, twice.
        for second in [
            part(26..30, 0, 26),
            part(12..16, 0, 13),
            part(10..16, 0, 5),
            part(10..16, 1, 10),
            part(0..10, 0, 20),
        ] {
            let route = Route::new(vec![part(0..10, 0, 0), second.clone()], 64, 16);
            let Part { data, block, offset } = second;
            let mut both = vec![chunk(0, 0, 0, 10), chunk(block, offset, data.start, data.len())];
            both.sort_by_key(|(block, _, start, _)| (*block, *start));
            assert_eq!(of(&route, 0), both);
        }
    }

    #[test]
    fn what_no_one_wants_and_what_is_empty_is_not_copied() {
        let route = Route::new(vec![part(70..70, 0, 0), part(100..101, 0, 0)], 32, 16);
        assert!([0, 1, 2].into_iter().all(|piece| route.of(piece).is_empty()));
        assert_eq!(of(&route, 3), [chunk(0, 0, 4, 1)]);
    }
}
