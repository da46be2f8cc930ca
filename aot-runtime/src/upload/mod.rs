//! The way of weights to a device, but for the device. Nothing here calls the driver.

mod pipeline;
#[cfg(feature = "cuda")]
mod prepared;
mod route;

#[cfg(feature = "cuda")]
pub(crate) use {
    pipeline::{Link, Slot, most_slots, pipe, slots},
    prepared::Prepared,
    route::{Part, Route},
};
