//! Tests of the importer on models made here.

mod make;

mod branches;
mod counted;
mod errors;
mod images;
mod limits;
mod loops;
mod sequences;
mod shapes;
mod signal;
mod sizes;
mod texts;
