//! The way of weights to a device, but for the device. Nothing here calls the driver.

mod pipeline;
mod route;

pub(crate) use pipeline::{Link, Slot, pipe};
pub(crate) use route::{Part, Route};
