//! What names of a model stand for. The structure of sequences and optionals is known while importing and is
//! nowhere else.

use super::builder::{OpResult, Tensor, wrong};
use std::collections::HashMap;

/// A value of the model.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// A tensor.
    Tensor(Tensor),
    /// Tensors of one type, as many as there are.
    Sequence(Vec<Tensor>),
    /// An optional without element; one with an element is the element.
    Absent,
}

impl Item {
    /// The tensor; `what` says which value has to be one.
    pub(super) fn tensor(&self, what: &str) -> OpResult {
        match self {
            Self::Tensor(t) => Ok(*t),
            Self::Sequence(_) => wrong(format!("{what} is a sequence, expected a tensor")),
            Self::Absent => wrong(format!("{what} is an optional without element")),
        }
    }

    /// The tensors of the sequence; `what` says which value has to be one.
    pub(super) fn sequence(&self, what: &str) -> OpResult<&[Tensor]> {
        match self {
            Self::Sequence(elements) => Ok(elements),
            Self::Tensor(_) => wrong(format!("{what} is a tensor, expected a sequence")),
            Self::Absent => wrong(format!("{what} is an optional without element")),
        }
    }

    /// All tensors in it, each with what to put after the name of the whole.
    pub(super) fn tensors(&self) -> Vec<(String, Tensor)> {
        match self {
            Self::Tensor(t) => vec![(String::new(), *t)],
            Self::Sequence(elements) => {
                elements.iter().enumerate().map(|(i, &t)| (format!(".{i}"), t)).collect()
            }
            Self::Absent => Vec::new(),
        }
    }
}

/// Names of a graph and what they stand for; `None` where an unsupported node would make it.
pub(super) type Names = HashMap<String, Option<Item>>;
