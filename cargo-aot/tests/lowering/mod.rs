//! Groups, interpreted through the planned arena, against the reference executor.

mod blocks;
mod contractions;
mod movement;
mod reductions;
pub(crate) mod support;
