//! Aot.toml: what the user asks for.
//!
//! [`Manifest::load`] reads the file and reports everything that is wrong with it at once, each
//! with the place in the file. Checks that need a model's graph come after import:
//! [`check_dims`], [`check_inputs`] and [`pair_state`].

mod check;
mod diagnostic;
mod dims;
mod glob;
mod gpus;
mod load;
mod models;
mod names;
mod reader;
mod schema;
mod state;
mod syntax;
mod tables;

pub use check::{KnownDim, KnownInput, check_dims, check_inputs};
pub use diagnostic::{Diagnostic, Label, Severity, SourceFile, Span, render_all};
pub use glob::Glob;
pub use gpus::{Gpu, find_gpu, gpu_table};
pub use load::{Files, ManifestError};
pub use names::{NameError, PackageName, RustName, is_keyword};
pub(crate) use reader::nearest;
pub use schema::{
    DimKind, DimSpec, InputDim, InputSpec, Manifest, Model, Package, Precision, PrecisionRule,
    StateSpec, Target, Toolchain, Weights,
};
pub use state::{KnownTensor, pair_state};
