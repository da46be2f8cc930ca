//! The choice of a form.

use super::problem::Problem;
use super::{columns, rows};
use crate::code::Emitter;
use crate::group::Group;
use crate::kernel::{Kernel, KernelError};
use aot_ir::dim::VarId;
use aot_ir::{Arch, Symbols};

/// The form along rows is taken unless the other one's accesses are cheaper by this factor.
const MARGIN: f64 = 0.8;

/// Kernels for a group whose anchor is [`Anchor::Scan`](crate::group::Anchor::Scan).
///
/// # Errors
/// If an expression can't be computed on a GPU.
pub fn kernels(group: &Group, symbols: &Symbols, _arch: Arch) -> Result<Vec<Kernel>, KernelError> {
    let group = group.merged();
    let mut emitter = Emitter::new(&group, symbols);
    let problem = Problem::new(&group, &emitter)?;
    let accesses = problem.accesses(&emitter);
    let cost = |emitter: &mut Emitter<'_>, var: VarId| emitter.access_cost(&accesses, var, 1);
    let along_rows = cost(&mut emitter, problem.along);
    let mut neighbours: Option<(f64, VarId)> = None;
    // Innermost first: it wins where costs are equal.
    for var in problem.rows.iter().rev() {
        let cost = cost(&mut emitter, *var);
        if neighbours.is_none_or(|(least, _)| cost < least) {
            neighbours = Some((cost, *var));
        }
    }
    let kernel = match neighbours {
        Some((cost, var)) if cost < along_rows * MARGIN => columns::kernel(&problem, emitter, var)?,
        _ => rows::kernel(&problem, emitter)?,
    };
    Ok(vec![kernel])
}
