//! The reference executor: what every operator means, on the CPU.
//!
//! [`Executor`] runs a whole [`Graph`](crate::Graph), [`evaluate`] one operator. `F16`, `Bf16` and the
//! narrower floats are computed in `f32` and rounded after every operator; sums are accumulated in `f32`
//! or wider. In wide mode ([`Executor::wide`]) every float is held and computed in `f64` and rounded only by
//! casts to types narrower than `F32`, which makes it an oracle for computations in those types.

mod compare;
mod encode;
mod error;
mod executor;
mod loops;
mod narrow;
mod operator;
mod ops;
mod plan;
mod sizes;
mod support;
mod tensor;

pub use compare::{distance, row_distance};
pub use encode::round_to;
pub use error::ExecError;
pub use executor::Executor;
pub use narrow::NarrowFloat;
pub use operator::evaluate;
pub use tensor::{Element, Tensor};
