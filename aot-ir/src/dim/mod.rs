//! Symbolic integers: extents of shapes and coordinates of index maps.

mod bind;
mod depth;
mod display;
mod eval;
mod expr;
mod interval;
mod parse;
mod period;
mod prove;
mod reach;
mod scope;
mod show;
mod symbols;

pub use bind::{BindError, ShapePattern, atom_of, bind, bind_or};
pub use depth::nested_graph;
pub use eval::{DimError, Env};
pub use expr::{Atom, Cmp, Cond, Dim, SymId, Term, VarId};
pub use interval::Interval;
pub use parse::{ParseDimError, names as expression_names};
pub use scope::Scope;
pub use symbols::{BoundBy, Symbol, Symbols};
