//! Scalar constants that operators and expressions carry.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::hash::{Hash, Hasher};

/// A constant of an unspecified width; the element type comes from where it is used.
///
/// Equality and hashing are by bits, so that NaN equals itself and 0.0 differs from -0.0.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Scalar {
    /// A boolean.
    Bool(bool),
    /// An integer (u64 values above `i64::MAX` wrap).
    Int(i64),
    /// A floating-point number.
    Float(f64),
}

impl Scalar {
    /// The value as a float.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Bool(b) => f64::from(u8::from(b)),
            Self::Int(i) => i as f64,
            Self::Float(f) => f,
        }
    }

    /// The value as an integer; floats are truncated and saturate.
    pub fn as_i64(self) -> i64 {
        match self {
            Self::Bool(b) => i64::from(b),
            Self::Int(i) => i,
            Self::Float(f) => f as i64,
        }
    }

    fn key(self) -> (u8, u64) {
        match self {
            Self::Bool(b) => (0, u64::from(b)),
            Self::Int(i) => (1, i as u64),
            Self::Float(f) => (2, f.to_bits()),
        }
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Scalar {}

impl Hash for Scalar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(b) => write!(f, "{b}"),
            Self::Int(i) => write!(f, "{i}"),
            Self::Float(x) => write!(f, "{x:?}"),
        }
    }
}
