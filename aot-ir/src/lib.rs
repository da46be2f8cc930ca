//! The intermediate representation of cargo-aot.
//!
//! A [`Graph`] is typed SSA: [`Value`]s have a [`DType`] and a shape of symbolic [`Dim`]s, [`Node`]s
//! apply an [`Op`] to values. Nodes are kept in topological order: a node's inputs are graph inputs,
//! constants, or outputs of earlier nodes. Importers lower every framework operator to the small
//! orthogonal set of [`Op`]; nothing here knows of ONNX, of ATen or of CUDA.
//!
//! Shapes are symbolic. A [`Dim`] is an integer expression over [`Symbols`] (named run-time sizes with
//! a range and a step); two dims that are always equal have, as far as the algebra can see, the same
//! canonical form. What could not be proved while a graph was made stands in [`Graph::guards`] and is
//! checked at run time.
//!
//! Some sizes depend on data: how many elements are not zero, say. A [`Symbol`] that is [bound by the run](BoundBy::Run)
//! stands for one, and a [`Binding`] says which value of the graph gives it. Such a symbol has a range like any other:
//! its greatest size is what memory is planned for, and a size outside it is an error of the run.
//!
//! With feature `exec` (default) the crate holds the reference executor, which defines what every
//! operator means. With feature `image` the host decodes images for runs on any device.

mod arch;
mod check;
pub mod dim;
mod dtype;
#[cfg(feature = "exec")]
pub mod exec;
mod graph;
mod guard;
mod host;
pub mod op;
mod scalar;

pub use arch::{Arch, ArchFeatures, KNOWN_CAPABILITIES, ParseArchError};
pub use dim::{BoundBy, Dim, DimError, Scope, SymId, Symbol, Symbols};
pub use dtype::DType;
pub use graph::{
    Binding, Bytes, ConstId, Constant, Def, Graph, GraphError, Guard, Node, NodeId, State, Value,
    ValueId,
};
pub use guard::GuardError;
pub use host::HostError;
pub use op::Op;
pub use scalar::Scalar;
