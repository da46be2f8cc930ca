//! The files that `cargo aot build` makes and that models are loaded from.
//!
//! Readers are total: whatever the bytes, the outcome is a value or an error.

mod checksum;
mod container;
mod images;
mod map;
mod model;
mod weights;

#[cfg(any(feature = "cuda", test))]
pub(crate) use checksum::{PIECE, checksum_of_piece};
pub(crate) use container::{Container, FormatError, Kind, Name, Section, decode, name, write};
pub use images::{ImagesFile, ImagesInfo, Packing, write_images};
pub use map::map;
pub use model::{ModelFile, ModelInfo, decode_graph, decode_program, write_model};
pub(crate) use weights::UncheckedWeights;
pub use weights::{WEIGHT_ALIGNMENT, WeightsId, WeightsLayout, read_weights};
