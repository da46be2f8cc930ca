//! The generated structure of the stores; its contract stands in `cuda/slice.cuh`.

use super::side::{bind_all, bind_place, body, decode};
use crate::code::{Emit, Emitter, Int, Value, element_bytes};
use aot_ir::DType;
use aot_ir::dim::VarId;
use std::fmt::Write;

/// `struct Out`: stores of a group whose result number `acc` is at (m, n).
pub(crate) fn output(
    e: &mut Emitter<'_>,
    batch: &[VarId],
    m: &[VarId],
    n: &[VarId],
    acc: u32,
    dtype: DType,
) -> Emit<(String, bool)> {
    let (along_n, width) = run(e, m, n);
    let real = match dtype {
        DType::F64 => "double",
        DType::I32 => "int",
        _ => "float",
    };
    let (m_text, m_vars) = decode(e, m, "m");
    let (n_text, n_vars) = decode(e, n, "n");
    let (statements, ()) = body(e, |e| {
        bind_place(e, batch);
        bind_all(e, &m_vars);
        bind_all(e, &n_vars);
        let (vars, decoded) = if along_n { (n, &n_vars) } else { (m, &m_vars) };
        if width > 1
            && let Some(inner) = vars.last()
            && let Some((_, text)) = decoded.iter().find(|(v, _)| v == inner)
        {
            e.bind_lanes(*inner, Int::narrow(text.clone()), width);
        }
        let lanes = (0..width).map(|i| format!("acc[{i}]")).collect();
        e.bind_acc(acc, Value { dtype, lanes });
        for store in &e.group().stores {
            e.store(store)?;
        }
        Ok(())
    })?;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "  struct Out {{\n    static constexpr bool kAlongN = {along_n};\n    static constexpr int kWidth = \
         {width};\n    FN void store(const Args& p, const Place& z, int m, int n, const {real} (&acc)[{width}]) \
         {{\n{m_text}{n_text}{statements}    }}\n  }};"
    );
    Ok((text, along_n))
}

/// Along which variable stores run, and how many elements a run has.
fn run(e: &Emitter<'_>, m: &[VarId], n: &[VarId]) -> (bool, usize) {
    let group = e.group();
    let Some(store) = group.stores.first() else { return (true, 1) };
    let bytes =
        group.stores.iter().filter_map(|s| element_bytes(e.storage(s.operand))).min().unwrap_or(4);
    let limit = (16 / bytes).clamp(1, 8);
    let width = |vars: &[VarId]| -> i64 {
        let Some(v) = vars.last() else { return 1 };
        if !e.step_along(&store.offset, *v, 1).is_some_and(|s| s.is(1)) {
            return 1;
        }
        e.divisors().power_of_two(group.extent(*v), limit)
    };
    let (along_m, along_n) = (width(m), width(n));
    if along_m > along_n {
        (false, along_m as usize)
    } else {
        // Runs of one still go along the contiguous variable, for neighbouring lanes.
        let contiguous_m = along_n == 1
            && m.last()
                .is_some_and(|v| e.step_along(&store.offset, *v, 1).is_some_and(|s| s.is(1)))
            && !n
                .last()
                .is_some_and(|v| e.step_along(&store.offset, *v, 1).is_some_and(|s| s.is(1)));
        (!contiguous_m, along_n as usize)
    }
}
