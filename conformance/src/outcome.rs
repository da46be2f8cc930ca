//! How a case went.

use std::fmt;

/// How a case went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All outputs are right.
    Passed,
    /// The importer says that it does not support the model.
    Unsupported(String),
    /// The case's data is no tensors of supported types.
    Data(String),
    /// The importer says that the model is wrong.
    Import(String),
    /// Two run-time sizes, which import takes to be equal where they broadcast, differ in the case.
    Unequal(String),
    /// The executor failed.
    Run(String),
    /// An output is wrong.
    Wrong(String),
}

impl Outcome {
    /// One word for it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Unsupported(_) => "unsupported",
            Self::Data(_) => "data",
            Self::Import(_) => "import",
            Self::Unequal(_) => "unequal",
            Self::Run(_) => "run",
            Self::Wrong(_) => "wrong",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("passed"),
            Self::Unsupported(text)
            | Self::Data(text)
            | Self::Import(text)
            | Self::Unequal(text)
            | Self::Run(text)
            | Self::Wrong(text) => write!(f, "{}: {text}", self.kind()),
        }
    }
}
