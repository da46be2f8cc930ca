//! CUDA C++ from expressions and index maps.
//!
//! A family makes an [`Emitter`] for a group, binds loop variables and results of the anchor to C++
//! expressions, and asks for values and stores; the emitter writes the statements, collects the
//! arguments and the parts of the prelude that are needed, and gives the text.

mod access;
mod alignment;
mod arguments;
mod ctype;
mod dependencies;
mod emitter;
mod flat;
mod index;
mod memory;
mod operators;
mod packed;
mod prelude;
mod scalar;
mod value;

pub use access::Access;
pub use alignment::Divisors;
pub use arguments::{Arguments, Role};
pub use ctype::{compute_type_name, element_bytes, storage_type};
pub use dependencies::{Dependencies, Uses};
pub use emitter::{Emit, Emitter};
pub use flat::Flat;
pub use index::{Index, Step};
pub use prelude::Part;
pub use scalar::Accumulator;
pub use value::{Int, Value};
