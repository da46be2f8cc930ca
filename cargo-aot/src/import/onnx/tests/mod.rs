//! Tests of the importer on models made here.

mod make;

mod branches;
mod errors;
mod limits;
mod sequences;
mod shapes;
mod signal;
mod sizes;
