//! The way of weights to a device, but for the device. Nothing here calls the driver.

mod pipeline;
#[cfg(feature = "cuda")]
mod prepared;
mod route;

pub(crate) use pipeline::{Link, Slot, pipe};
#[cfg(feature = "cuda")]
pub(crate) use pipeline::{most_slots, slots};
#[cfg(feature = "cuda")]
pub(crate) use prepared::Prepared;
pub(crate) use route::{Part, Route};
