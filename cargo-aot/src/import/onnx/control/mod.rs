//! Nodes that hold graphs: branches are chosen and short loops unrolled where that is decided at build time; other
//! loops stay loops.

mod batched_scan;
mod branch;
mod counted;
mod loops;
mod repeat;
mod scan;

use super::builder::{OpError, OpResult};
use super::item::Item;
use super::nodes::{Importer, Opsets, Stop};
use super::proto::NodeProto;

/// Iterations are unrolled where they become at most about this many nodes in all; more, and numbers of iterations
/// that are known at run time only, become a loop.
pub(super) const MAX_UNROLLED_NODES: i64 = 1024;
/// Most iterations that are unrolled where there can't be a loop: the body handles sequences, or its values change
/// their shapes.
const MAX_UNROLLED: i64 = 512;

/// Operators whose nodes hold graphs.
pub(super) const CONTROL: &[&str] = &["If", "Loop", "Scan", "SequenceMap"];

/// Whether an operator's nodes hold graphs.
pub(super) fn is_control(operator: &str) -> bool {
    CONTROL.contains(&operator)
}

impl Importer<'_> {
    /// Imports a node that holds graphs.
    pub(super) fn control(
        &mut self,
        node: &NodeProto,
        opsets: &Opsets,
        inputs: &[Option<Item>],
    ) -> Result<Vec<Option<Item>>, Stop> {
        match node.op_type.as_str() {
            "If" => self.branch(node, opsets, inputs),
            "Loop" => self.import_loop(node, opsets, inputs),
            "SequenceMap" => self.map_sequence(node, opsets, inputs),
            _ => self.import_scan(node, opsets, inputs),
        }
    }
}

/// No outputs, because something inside is reported already.
fn none(node: &NodeProto) -> Vec<Option<Item>> {
    vec![None; node.output.len()]
}

fn wrong_stop(text: impl Into<String>) -> Stop {
    OpError::Wrong(text.into()).into()
}

fn unsupported_stop(text: &str) -> Stop {
    OpError::Unsupported(text.to_owned()).into()
}

/// The error of [`super::call::depends`].
fn depends_stop(what: &str) -> Stop {
    let error: OpResult<()> = super::call::depends(what);
    match error {
        Err(error) => error.into(),
        Ok(()) => wrong_stop(what),
    }
}
