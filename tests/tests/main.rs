//! Workspace tests, one binary for all.

mod conformance;
mod groups;
