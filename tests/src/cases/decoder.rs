//! Small decoders.

use super::Cases;
use crate::decoder::{Extents, Kept, decoder};

/// Two layers. Beside keys and values the sum of all embeddings is kept.
const SMALL: Extents = Extents {
    layers: 2,
    width: 16,
    heads: 2,
    hidden: 48,
    vocabulary: 12,
    batch: 2,
    past: 24,
    new: 8,
    joined: false,
    sum: true,
};

pub(super) fn all(cases: &mut Cases) {
    cases.family("decoder", |cases| {
        let all = [Kept::ByHead, Kept::ByToken, Kept::Shared, Kept::Halves, Kept::Backward];
        for kept in all {
            let sizes = [
                vec![("batch", 2), ("past", 3), ("new", 2)],
                vec![("batch", 1), ("past", 0), ("new", 8)],
                vec![("batch", 2), ("past", 24), ("new", 1)],
                vec![("batch", 1), ("past", 17), ("new", 5)],
            ];
            let mut net = decoder(kept, SMALL);
            net.loosen(4.0);
            cases.at(net, &sizes);
        }
    });
}
