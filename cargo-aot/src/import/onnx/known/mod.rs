//! Tensors whose elements are known while importing, as expressions of run-time sizes and of the
//! element's own coordinates. Shape arithmetic and index tensors live here and never become nodes,
//! unless something reads them as data.

mod content;
mod elem;

pub(super) use content::{Body, Content, coordinates};
pub(super) use elem::{Elem, round_to};
