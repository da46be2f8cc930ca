//! Integration tests of the intermediate representation.

mod shape_rules;
