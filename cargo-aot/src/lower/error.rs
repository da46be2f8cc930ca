//! Why a graph could not be lowered.

use aot_ir::Node;

/// Why a graph could not be lowered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LowerError {
    /// Operators that have no kernels yet.
    #[error("no GPU kernel for {}", .0.join("; "))]
    Unsupported(Vec<String>),
    /// The graph breaks a rule that import guarantees.
    #[error("`{node}`: {reason} (this is a bug in cargo-aot)")]
    Internal {
        /// Name of the node or value.
        node: String,
        /// Which rule.
        reason: String,
    },
    /// A kernel family refuses a group.
    #[error(transparent)]
    Kernel(#[from] aot_kernels::KernelError),
}

impl LowerError {
    pub(super) fn internal(node: &str, reason: &str) -> Self {
        Self::Internal { node: node.to_owned(), reason: reason.to_owned() }
    }

    pub(super) fn unsupported(node: &Node, reason: &str) -> Self {
        Self::Unsupported(vec![format!("`{}` ({}): {reason}", node.name, node.op.name())])
    }
}
