//! NumPy's files: arrays (`.npy`) and archives of named arrays (`.npz`).
//!
//! The format is that of NEP 1 with its versions 1 to 3, as `numpy.save` and `numpy.savez` write
//! it: a magic, a Python dictionary of element type, order and shape, then the elements.

mod archive;
mod array;
mod error;
mod header;

pub use archive::{read_npz, write_npz};
pub use array::Array;
pub use error::NpyError;
