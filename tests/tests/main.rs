//! Workspace tests, one binary for all.

mod groups;
