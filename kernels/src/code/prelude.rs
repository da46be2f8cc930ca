//! Device functions that kernel texts begin with.

/// A part of the prelude.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Part {
    /// What the others are written with.
    Base,
    /// Storage types and conversions.
    Types,
    /// Operators, and index arithmetic on numbers that may be negative.
    Math,
    /// Vector loads and stores.
    Pack,
    /// Atomic updates.
    Atomics,
    /// Exchange between the threads of a warp.
    Reduce,
}

impl Part {
    /// The text.
    pub fn text(self) -> &'static str {
        match self {
            Self::Base => include_str!("../../cuda/base.cuh"),
            Self::Types => include_str!("../../cuda/types.cuh"),
            Self::Math => include_str!("../../cuda/math.cuh"),
            Self::Pack => include_str!("../../cuda/pack.cuh"),
            Self::Atomics => include_str!("../../cuda/atomics.cuh"),
            Self::Reduce => include_str!("../../cuda/reduce.cuh"),
        }
    }

    /// What must come before it.
    pub fn needs(self) -> &'static [Part] {
        match self {
            Self::Base => &[],
            Self::Types | Self::Math => &[Self::Base],
            Self::Pack => &[Self::Types],
            Self::Atomics => &[Self::Types, Self::Math],
            Self::Reduce => &[Self::Math],
        }
    }
}
