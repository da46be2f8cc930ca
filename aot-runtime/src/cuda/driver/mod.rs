//! The CUDA driver's API behind safe types: the only place here that calls it.
//!
//! Every type keeps the context that it belongs to alive. A call needs its context to be current
//! on the calling thread, which each function sees to itself ([`Gpu::enter`]).

// What the driver's functions are given is owned by the types below; each block says why it holds.
#![allow(unsafe_code)]

mod area;
mod block;
mod counts;
mod event;
mod faults;
mod gate;
mod gpu;
mod graph;
mod held;
mod library;
mod module;
mod notice;
mod pinned;
mod pool;
mod pooled;
mod staging;
mod stream;
mod work;

pub(crate) use block::Block;
pub(crate) use counts::count_wait;
pub use counts::{DriverCounts, driver_counts};
pub(crate) use event::Event;
pub(crate) use faults::Launches;
pub(crate) use gate::Gate;
pub(crate) use gpu::Gpu;
pub(crate) use graph::{Graph, GraphBuilder, has_loops};
pub(crate) use library::version_text;
pub(crate) use module::{Function, Module};
pub(crate) use notice::Notice;
pub(crate) use pinned::{Pinned, PinnedWord};
pub(crate) use pooled::Pooled;
pub(crate) use staging::{Slot, Staging};
pub(crate) use stream::Stream;
pub(crate) use work::{Transfer, Work, execute};
