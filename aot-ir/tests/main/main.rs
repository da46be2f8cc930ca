//! Integration tests of the intermediate representation.

mod dims;
mod shape_rules;
