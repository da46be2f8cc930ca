//! Integration tests of the intermediate representation.

mod dims;
mod exec_values;
mod loops;
mod shape_rules;
mod shapes_meet_execution;
