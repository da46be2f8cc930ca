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

/// Kernels for a group whose anchor is [`Anchor::Reduce`](crate::group::Anchor::Reduce).
///
/// # Errors
/// If an expression can't be computed on a GPU.
pub fn kernels(group: &Group, symbols: &Symbols, _arch: Arch) -> Result<Vec<Kernel>, KernelError> {
    let group = group.merged();
    let mut emitter = Emitter::new(&group, symbols);
    let problem = Problem::new(&group, &emitter)?;
    let accesses = problem.accesses(&emitter);
    let mut cheapest = |vars: &[VarId]| {
        let costs = vars.iter().map(|v| emitter.access_cost(&accesses, *v, 1));
        costs.fold(f64::INFINITY, f64::min)
    };
    let (along_rows, along_columns) = (cheapest(problem.over), cheapest(problem.rows));
    let kernel = if along_columns < along_rows * MARGIN && !problem.over.is_empty() {
        columns::kernel(&problem, emitter)?
    } else {
        rows::kernel(&problem, emitter)?
    };
    Ok(vec![kernel])
}
