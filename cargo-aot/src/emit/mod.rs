//! From programs to the generated crate's text.
//!
//! The crate has a module per model with types for its inputs and outputs, a build script without
//! dependencies that notices changed sources, and the artifacts in a folder beside `src`.

mod crate_files;
mod fields;
mod model_file;
mod stamp;
mod template;

pub use crate_files::{CrateSpec, Failures, Source, crate_files};
pub use fields::field_names;
pub use model_file::{DimSpec, EmitError, ModelSpec, PortSpec, weights_file};
pub use stamp::content_stamp;
pub(crate) use template::render;
