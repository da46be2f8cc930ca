//! From a group to the family that makes its kernels.

use crate::group::{Anchor, Group};
use crate::kernel::{Kernel, KernelError};
use crate::{attention, contraction, map, reduce, scan};
use aot_ir::{Arch, Symbols};

/// Kernels for a group on an architecture, in the order in which they are tried: the first one whose
/// `when` holds is launched. The last one's always does. There are none for what the host does.
///
/// # Errors
/// If the group asks for something that no schedule can do.
pub fn kernels_for(
    group: &Group,
    symbols: &Symbols,
    arch: Arch,
) -> Result<Vec<Kernel>, KernelError> {
    match &group.anchor {
        Anchor::Map { .. } => map::kernels(group, symbols, arch),
        Anchor::Reduce { .. } => reduce::kernels(group, symbols, arch),
        Anchor::Scan { .. } => scan::kernels(group, symbols, arch),
        Anchor::Contraction(_) => contraction::kernels(group, symbols, arch),
        Anchor::Attention(_) => attention::kernels(group, symbols, arch),
        Anchor::Host(_) => Ok(Vec::new()),
    }
}
