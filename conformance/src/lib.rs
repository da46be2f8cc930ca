//! ONNX's own backend tests: cases are found, imported with their inputs left as inputs, run on the
//! reference executor and compared. `listed.txt` names the cases that do not pass, each with the reason.
//!
//! Inputs stay inputs of the graph. Where a model needs a value at build time (a shape, an axis), as few
//! inputs as possible are fixed instead; a [`Trial`] says which. Sequences and optionals have the structure
//! that they have in the case.

mod case;
mod import;
mod listed;
mod networks;
mod outcome;

pub use case::{Case, Report, Suite, cases};
pub use import::{Sizes, Trial};
pub use listed::listed;
pub use networks::{Network, networks};
pub use outcome::Outcome;
