//! What was compiled, against the graph as imported.
//!
//! The reference is the imported graph, before any pass, run by the reference executor with every
//! float in binary64. Compared with it are the graph of the artifact ([`Subject::Graph`], in
//! binary64: passes), what the CPU device gives ([`Subject::Cpu`]), the groups of the plan,
//! interpreted through the planned arena with the roundings of kernels ([`Subject::Groups`]), and
//! the kernels on a GPU ([`Subject::Kernels`]).

mod cost;
mod draw;
mod error;
mod kept;
mod layers;
mod model;
mod outputs;
mod ranges;
mod report;
mod sizes;
mod subjects;
mod text;
mod tolerance;
mod trace;

pub use error::VerifyError;
pub use model::{Request, verify};
pub use report::{LayerReport, ModelReport, OutputReport, RunReport, Subject};
