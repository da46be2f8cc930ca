//! The way of weights to a device, but for the device. Nothing here calls the driver.

mod pipeline;
#[cfg(feature = "cuda")]
mod prepared;
mod route;

#[cfg(feature = "cuda")]
pub(crate) use {
    pipeline::{Link, Pace, Slot, pipe},
    prepared::Prepared,
    route::{Part, Route},
};
