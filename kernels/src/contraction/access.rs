//! How a tile of an operand is filled: the one place that decides it.

use crate::code::{Emitter, Int, element_bytes};
use crate::group::{Expr, ExprId, MathType, OperandId};
use aot_ir::dim::{Atom, Cond, VarId};
use aot_ir::{DType, Dim};

/// An operand of a contraction: a scalar expression of a row and of an element of `k`.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    /// Variables of the rows (`m`, `n`, queries …), outermost first.
    pub(crate) rows: Vec<VarId>,
    /// Variables summed over, outermost first.
    pub(crate) steps: Vec<VarId>,
    /// The element.
    pub(crate) element: ExprId,
}

/// How elements get to shared memory.
#[derive(Clone, Debug)]
pub(crate) enum Access {
    /// As they lie in memory, `width` at a time, asynchronously where the architecture can.
    Direct { load: Load, along_k: bool, width: usize },
    /// One by one through registers, but a load with an index map that can be split into a part of
    /// the row and a part of the step.
    Gathered { load: Load, lanes_along_rows: bool },
    /// As any expression.
    Computed { lanes_along_rows: bool },
}

/// A load that gives zero where its guard does not hold.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) operand: OperandId,
    pub(crate) offset: Dim,
    pub(crate) guard: Cond,
}

/// What products are computed in, as a storage type.
pub(crate) fn math_storage(math: MathType) -> DType {
    match math {
        MathType::F16 => DType::F16,
        MathType::Bf16 => DType::Bf16,
        MathType::F64 => DType::F64,
        MathType::I32 => DType::I32,
        _ => DType::F32,
    }
}

/// Chooses for one side; `smallest` is the least number of bytes that a direct access has.
pub(crate) fn classify(e: &mut Emitter<'_>, side: &Side, math: MathType, smallest: i64) -> Access {
    let innermost = |vars: &[VarId]| vars.last().copied();
    let Some(load) = plain_load(e, side.element, math) else {
        let lanes_along_rows = first_contiguous(e, side.element, side);
        return Access::Computed { lanes_along_rows };
    };
    let storage = e.storage(load.operand);
    let bytes = element_bytes(storage).unwrap_or(1);
    let limit = 16 / bytes.min(16);
    let (rows, steps) = (innermost(&side.rows), innermost(&side.steps));
    let row_width = rows.map_or(1, |v| run_width(e, &load, v, limit));
    let step_width = steps.map_or(1, |v| run_width(e, &load, v, limit));
    let best = row_width.max(step_width);
    if storage == math_storage(math) && best > 1 && best * bytes >= smallest {
        let along_k = step_width >= row_width;
        return Access::Direct { load, along_k, width: best as usize };
    }
    let step_of = |v: Option<VarId>| {
        v.and_then(|v| e.step_along(&load.offset, v, 1)).is_some_and(|s| s.is(1))
    };
    let lanes_along_rows = !step_of(steps) && step_of(rows);
    Access::Gathered { load, lanes_along_rows }
}

/// The load that an expression is, if its index map depends on no data and it gives zero where it is
/// guarded. Conversions that products do anyway are seen through.
fn plain_load(e: &Emitter<'_>, id: ExprId, math: MathType) -> Option<Load> {
    let group = e.group();
    match &group[id].expr {
        Expr::Load { operand, offset, guard, other } => {
            let storage = e.storage(*operand);
            let by_value = |a: &Atom| matches!(a, Atom::Value(_));
            let mut from_data = offset.any(by_value);
            guard.visit(&mut |a| from_data |= by_value(a));
            let zero = guard.is_always() || other.as_f64() == 0.0;
            let packed = element_bytes(storage).is_none();
            (!from_data && zero && !packed).then(|| Load {
                operand: *operand,
                offset: offset.clone(),
                guard: guard.clone(),
            })
        }
        Expr::Cast { value, to } => {
            let load = plain_load(e, *value, math)?;
            let storage = e.storage(load.operand);
            let same = *to == storage || (*to == math_storage(math) && storage.is_float());
            (same && to.is_float()).then_some(load)
        }
        _ => None,
    }
}

/// How many neighbours along `var` (a power of two, at most `limit`) always lie side by side, aligned
/// to their number, all inside the guard or all outside.
fn run_width(e: &mut Emitter<'_>, load: &Load, var: VarId, limit: i64) -> i64 {
    let extent = e.group().extent(var).clone();
    let mut width = limit;
    while width > 1 {
        e.enter();
        e.bind_lanes(var, Int::narrow("0"), width as usize);
        let runs = e.divisors().divides(width, &extent)
            && e.divisors().divides(width, &load.offset)
            && e.step_along(&load.offset, var, width).is_some_and(|s| s.is(1))
            && e.lanes_agree(&load.guard);
        e.close();
        if runs {
            return width;
        }
        width /= 2;
    }
    1
}

/// Whether the first load of an expression that is contiguous along the innermost row or step is so
/// along the row.
fn first_contiguous(e: &Emitter<'_>, root: ExprId, side: &Side) -> bool {
    let mut found = None;
    e.group().visit(root, &mut |_, typed| {
        if let Expr::Load { offset, .. } = &typed.expr
            && found.is_none()
        {
            let along = |vars: &[VarId]| {
                vars.last().and_then(|v| e.step_along(offset, *v, 1)).is_some_and(|s| s.is(1))
            };
            if along(&side.steps) {
                found = Some(false);
            } else if along(&side.rows) {
                found = Some(true);
            }
        }
    });
    found.unwrap_or(false)
}
