//! The generated structure of one operand; its contract stands in `cuda/tile.cuh`.

use super::access::{Access, Load, Side};
use crate::code::{Emit, Emitter, Int, Role, storage_type};
use aot_ir::Dim;
use aot_ir::dim::{Cond, Term, VarId};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Extents up to this are part of the text: they are divisors in inner loops.
const LITERAL_EXTENT: i64 = 16;

/// An extent for the decoding of coordinates: a literal if it is small.
fn extent_text(e: &mut Emitter<'_>, var: VarId) -> String {
    match e.group().extent(var).as_const() {
        Some(c) if (0..=LITERAL_EXTENT).contains(&c) => c.to_string(),
        _ => e.extent(var).text,
    }
}

/// Statements that take `flat`, an `int` expression that is not negative, apart into coordinates, and
/// the coordinates' expressions. `flat` may be past the end; then so is the outermost coordinate.
pub(crate) fn decode(
    e: &mut Emitter<'_>,
    vars: &[VarId],
    flat: &str,
) -> (String, Vec<(VarId, String)>) {
    let mut text = String::new();
    let mut out = Vec::new();
    let mut rest = flat.to_owned();
    for (i, var) in vars.iter().enumerate().rev() {
        if i == 0 {
            out.push((*var, rest.clone()));
            break;
        }
        let extent = extent_text(e, *var);
        let name = format!("c{}", var.0);
        let _ =
            writeln!(text, "    const int {name} = (int)((unsigned){rest} % (unsigned){extent});");
        let next = e.fresh("f");
        let _ =
            writeln!(text, "    const int {next} = (int)((unsigned){rest} / (unsigned){extent});");
        out.push((*var, name));
        rest = next;
    }
    (text, out)
}

/// Binds coordinates.
pub(crate) fn bind_all(e: &mut Emitter<'_>, vars: &[(VarId, String)]) {
    for (var, text) in vars {
        e.bind(*var, Int::narrow(text.clone()));
    }
}

/// The statements that `f` emits in a layer of their own, and what it gives.
pub(crate) fn body<'a, T>(
    e: &mut Emitter<'a>,
    f: impl FnOnce(&mut Emitter<'a>) -> Emit<T>,
) -> Emit<(String, T)> {
    let before = e.take();
    e.enter();
    let result = f(e);
    e.close();
    let text = e.take();
    e.put(before);
    Ok((text, result?))
}

/// The batch coordinates as members of `z`.
pub(crate) fn bind_place(e: &mut Emitter<'_>, batch: &[VarId]) {
    for var in batch {
        e.bind(*var, Int::narrow(format!("z.c{}", var.0)));
    }
}

/// `struct Place` and `place(p, index)`.
pub(crate) fn place(e: &mut Emitter<'_>, batch: &[VarId]) -> String {
    let mut text = "  struct Place {\n".to_owned();
    for var in batch {
        let _ = writeln!(text, "    int c{};", var.0);
    }
    if batch.is_empty() {
        text += "    int none;\n";
    }
    let (statements, vars) = decode(e, batch, "index");
    let _ = writeln!(text, "  }};\n  FN Place place(const Args& p, int index) {{");
    text += &statements;
    text += "    Place z = {};\n";
    for (var, value) in vars {
        let _ = writeln!(text, "    z.c{} = {value};", var.0);
    }
    text + "    return z;\n  }\n"
}

/// `struct A` or `struct B`. `real` is the type that values have.
pub(crate) fn side(
    e: &mut Emitter<'_>,
    name: &str,
    batch: &[VarId],
    side: &Side,
    access: &Access,
    real: &str,
) -> Emit<String> {
    let mut text = format!("  struct {name} {{\n");
    match access {
        Access::Direct { load, along_k, width } => {
            let _ = writeln!(
                text,
                "    static constexpr OperandMode kMode = kDirect;\n    static constexpr bool kAlongK = \
                 {along_k}, kLanesAlongRows = false;\n    static constexpr int kWidth = {width};"
            );
            text += &split_load(e, batch, side, load)?;
            let storage = storage_type(e.storage(load.operand));
            let _ = writeln!(
                text,
                "    FN {real} scalar(const Args& p, const Place& z, const Row& row, const Step& step) {{\n      \
                 return inside(p, z, row, step) ? ({real})widen(*address(p, z, row, step)) : ({real})0;\n    }}\n    \
                 FN void load(const Args& p, const Place& z, const Row& row, const Step& step, {real} \
                 (&out)[{width}]) {{\n      struct alignas(sizeof({storage}) * {width}) Run {{ {storage} \
                 v[{width}]; }};\n      Run run = {{}};\n      if (inside(p, z, row, step)) run = \
                 *reinterpret_cast<const Run*>(address(p, z, row, step));\n#pragma unroll\n      for (int i = 0; \
                 i < {width}; ++i) out[i] = ({real})widen(run.v[i]);\n    }}"
            );
        }
        Access::Gathered { load, lanes_along_rows } => {
            text += &computed_header(*lanes_along_rows);
            text += &split_load(e, batch, side, load)?;
            let _ = writeln!(
                text,
                "    FN {real} value(const Args& p, const Place& z, const Row& row, const Step& step) {{\n      \
                 return inside(p, z, row, step) ? ({real})widen(*address(p, z, row, step)) : \
                 ({real})0;\n    }}"
            );
        }
        Access::Computed { lanes_along_rows } => {
            text += &computed_header(*lanes_along_rows);
            text += &any(e, batch, side, real)?;
        }
    }
    if !matches!(access, Access::Direct { .. }) {
        let _ = writeln!(
            text,
            "    FN {real} scalar(const Args& p, const Place& z, const Row& row, const Step& step) {{ return \
             value(p, z, row, step); }}"
        );
    }
    Ok(text + "  };\n")
}

fn computed_header(lanes_along_rows: bool) -> String {
    format!(
        "    static constexpr OperandMode kMode = kComputed;\n    static constexpr bool kAlongK = \
         {}, kLanesAlongRows = {lanes_along_rows};\n    static constexpr int kWidth = 1;\n",
        !lanes_along_rows
    )
}

/// What an index map or condition uses of one side.
struct Part {
    rows: bool,
    steps: bool,
}

fn part_of(used: &BTreeSet<VarId>, side: &Side) -> Part {
    Part {
        rows: side.rows.iter().any(|v| used.contains(v)),
        steps: side.steps.iter().any(|v| used.contains(v)),
    }
}

/// Rows and steps of a load whose index map is split.
fn split_load(e: &mut Emitter<'_>, batch: &[VarId], side: &Side, load: &Load) -> Emit<String> {
    let role = Role::Operand(load.operand);
    // Offset: a part of the row (batch and sizes too), one of the step, and what needs both.
    let (mut of_row, mut of_step, mut of_both) =
        (Dim::from(load.offset.constant_part()), Dim::ZERO, Dim::ZERO);
    for term in load.offset.terms() {
        let Term { factors, coefficient } = term.clone();
        let dim = Dim::from_terms(0, [Term { factors, coefficient }]);
        let part = part_of(&e.dependencies().of_dim(&dim).vars, side);
        let to = match (part.rows, part.steps) {
            (true, true) => &mut of_both,
            (false, true) => {
                let batched = e.dependencies().of_dim(&dim).vars.iter().any(|v| batch.contains(v));
                if batched { &mut of_both } else { &mut of_step }
            }
            _ => &mut of_row,
        };
        *to = &*to + &dim;
    }
    let mut guards = Vec::new();
    flatten(&load.guard, &mut guards);
    let (mut row_guard, mut step_guard, mut both_guard) =
        (Cond::always(), Cond::always(), Cond::always());
    for guard in guards {
        let used = e.dependencies().of_cond(&guard).vars;
        let part = part_of(&used, side);
        let batched = used.iter().any(|v| batch.contains(v));
        let to = match (part.rows, part.steps) {
            (true, true) => &mut both_guard,
            (false, true) if batched => &mut both_guard,
            (false, true) => &mut step_guard,
            _ => &mut row_guard,
        };
        *to = to.clone().and(guard);
    }
    let mut mixed = e.dependencies().of_dim(&of_both).vars;
    mixed.extend(e.dependencies().of_cond(&both_guard).vars);
    let kept =
        |vars: &[VarId]| vars.iter().copied().filter(|v| mixed.contains(v)).collect::<Vec<_>>();
    let (row_vars, step_vars) = (kept(&side.rows), kept(&side.steps));

    let mut text = part_struct(
        e,
        &PartStruct {
            name: "Row",
            function: "row",
            vars: &side.rows,
            kept: &row_vars,
            offset: Some(&of_row),
            guard: &row_guard,
            batch,
        },
        role,
    )?;
    text += &part_struct(
        e,
        &PartStruct {
            name: "Step",
            function: "step",
            vars: &side.steps,
            kept: &step_vars,
            offset: Some(&of_step),
            guard: &step_guard,
            batch,
        },
        role,
    )?;

    let bind = |e: &mut Emitter<'_>| {
        bind_place(e, batch);
        for (vars, from) in [(&row_vars, "row"), (&step_vars, "step")] {
            for var in vars {
                e.bind(*var, Int::narrow(format!("{from}.c{}", var.0)));
            }
        }
    };
    let signature = "(const Args& p, const Place& z, const Row& row, const Step& step)";
    let (statements, inside) = body(e, |e| {
        bind(e);
        e.cond_at(&both_guard, 0, role)
    })?;
    let condition = if both_guard.is_always() { String::new() } else { format!(" && {inside}") };
    let _ = writeln!(
        text,
        "    FN bool inside{signature} {{\n{statements}      return row.in && step.in{condition};\n    }}"
    );
    let (statements, both) = body(e, |e| {
        bind(e);
        if of_both.is(0) { Ok(None) } else { e.int(&of_both, role).map(Some) }
    })?;
    let pointer = e.pointer(load.operand);
    let more = both.map_or(String::new(), |b| format!(" + {}", b.text));
    let _ = writeln!(
        text,
        "    FN auto address{signature} {{\n{statements}      return {pointer} + row.offset + step.offset{more};\n    }}"
    );
    Ok(text)
}

fn flatten(cond: &Cond, out: &mut Vec<Cond>) {
    match cond {
        Cond::Cmp(..) => out.push(cond.clone()),
        Cond::All(parts) => parts.iter().for_each(|c| flatten(c, out)),
    }
}

struct PartStruct<'a> {
    name: &'a str,
    function: &'a str,
    vars: &'a [VarId],
    kept: &'a [VarId],
    offset: Option<&'a Dim>,
    guard: &'a Cond,
    batch: &'a [VarId],
}

/// `struct Row` and `row(p, z, at)`, or the same of a step.
fn part_struct(e: &mut Emitter<'_>, part: &PartStruct<'_>, role: Role) -> Emit<String> {
    let volume = e.group().volume(part.vars);
    let extent = e.uniform(&volume, Role::Extent(part.vars.last().map_or(u32::MAX, |v| v.0))).text;
    let (decoded, vars) = decode(e, part.vars, "at");
    let (statements, (offset, guard)) = body(e, |e| {
        bind_place(e, part.batch);
        bind_all(e, &vars);
        let offset = match part.offset {
            Some(d) => Some(e.int(d, role)?),
            None => None,
        };
        Ok((offset, e.cond_at(part.guard, 0, role)?))
    })?;
    let mut text = format!("    struct {} {{\n      bool in;\n", part.name);
    let mut sets = String::new();
    for var in part.kept {
        let _ = writeln!(text, "      int c{};", var.0);
        let value = vars.iter().find(|(v, _)| v == var).map_or("0", |(_, t)| t.as_str());
        let _ = writeln!(sets, "      out.c{} = {value};", var.0);
    }
    if let Some(offset) = offset {
        let _ = writeln!(text, "      {} offset;", offset.type_name());
        let _ = writeln!(sets, "      out.offset = {};", offset.text);
    }
    let also = if part.guard.is_always() { String::new() } else { format!(" && {guard}") };
    let _ = writeln!(
        text,
        "    }};\n    FN {name} {function}(const Args& p, const Place& z, int at) {{\n{decoded}{statements}      \
         {name} out;\n      out.in = at < {extent}{also};\n{sets}      return out;\n    }}",
        name = part.name,
        function = part.function,
    );
    Ok(text)
}

/// Rows and steps that keep coordinates, for any expression.
fn any(e: &mut Emitter<'_>, batch: &[VarId], side: &Side, real: &str) -> Emit<String> {
    let always = Cond::always();
    let used = e.dependencies().of(side.element).vars.clone();
    let kept =
        |vars: &[VarId]| vars.iter().copied().filter(|v| used.contains(v)).collect::<Vec<_>>();
    let (row_vars, step_vars) = (kept(&side.rows), kept(&side.steps));
    let mut text = String::new();
    for (name, function, vars, kept) in
        [("Row", "row", &side.rows, &row_vars), ("Step", "step", &side.steps, &step_vars)]
    {
        let part = PartStruct { name, function, vars, kept, offset: None, guard: &always, batch };
        text += &part_struct(e, &part, Role::Other)?;
    }
    let (statements, value) = body(e, |e| {
        bind_place(e, batch);
        for (vars, from) in [(&row_vars, "row"), (&step_vars, "step")] {
            for var in vars {
                e.bind(*var, Int::narrow(format!("{from}.c{}", var.0)));
            }
        }
        e.value(side.element)
    })?;
    let _ = writeln!(
        text,
        "    FN {real} value(const Args& p, const Place& z, const Row& row, const Step& step) {{\n      if \
         (!(row.in && step.in)) return ({real})0;\n{statements}      return ({real}){};\n    }}",
        value.lane(0)
    );
    Ok(text)
}
