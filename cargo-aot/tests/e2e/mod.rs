//! What a user does, with the executable and cargo, in crates outside of this workspace.
//!
//! All of these crates build into one folder, so that aot-runtime is compiled once. Kernels are
//! compiled for real; models run on the CPU.

mod app;
mod events;
mod golden;
mod images;
mod interrupted;
mod misuse;
mod network;
#[path = "../../src/import/onnx/proto.rs"]
#[allow(dead_code, reason = "the importer reads more than these models have")]
mod proto;
mod rebuilds;
mod run;
mod sizes;
mod state;
mod user;
mod verify;
