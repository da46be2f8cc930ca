//! The files that `cargo aot build` makes and that models are loaded from.
//!
//! Readers are total: whatever the bytes, the outcome is a value or an error.

mod container;
mod images;
mod map;
mod model;
mod weights;

pub(crate) use container::{Container, FormatError, Kind, Name, Section, decode, name, write};
pub use images::{ImagesFile, ImagesInfo, Packing, write_images};
pub use map::map;
pub use model::{ModelFile, ModelInfo, decode_graph, decode_program, write_model};
pub use weights::{WeightsId, WeightsLayout, read_weights};
