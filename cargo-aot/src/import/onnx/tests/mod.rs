//! Tests of the importer on models made here.

mod make;

mod errors;
mod sequences;
mod shapes;
mod signal;
