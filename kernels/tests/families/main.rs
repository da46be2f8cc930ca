//! Tests of the kernel families.

mod builder;
mod cases;
mod text;
