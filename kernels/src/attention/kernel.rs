//! Schedules and text of attention kernels.

use crate::code::{Emit, Emitter, Int, Part, Role, Value};
use crate::contraction::access::{Access, Side, classify};
use crate::contraction::output::output;
use crate::contraction::schedule::{supported, tile_bytes};
use crate::contraction::side::{bind_place, body, place, side};
use crate::group::{Anchor, Attention, Group, MathType};
use crate::kernel::{Kernel, KernelError};
use aot_ir::dim::{Cond, VarId};
use aot_ir::{Arch, DType, Symbols};
use std::fmt::Write;

const ENTRY: &str = "aot_attention";
/// The widest heads: beyond, tiles would not fit registers and shared memory.
pub const MAX_WIDTH: i64 = 256;
/// Bytes that the least asynchronous copy has.
const SMALLEST_COPY: i64 = 4;
/// Bytes of shared memory that a block of any architecture but sm_75 may have.
const SHARED_LIMIT: u32 = 99 << 10;
/// That of sm_75.
const SHARED_LIMIT_75: u32 = 64 << 10;
/// Registers of a thread that operands and sums may have: with more, the compiler spills.
const REGISTERS: u32 = 190;
/// The columns of one matrix instruction, the least of a step.
const LEAST_COLUMNS: u32 = 16;

/// Kernels for a group whose anchor is [`Anchor::Attention`].
///
/// # Errors
/// If an expression can't be computed on a GPU, or heads are not of a constant width up to 256.
pub fn kernels(group: &Group, symbols: &Symbols, arch: Arch) -> Result<Vec<Kernel>, KernelError> {
    let mut e = Emitter::new(group, symbols);
    let Anchor::Attention(a) = &group.anchor else {
        return Err(e.unsupported("its anchor is no attention"));
    };
    let head = |var: VarId| {
        let width = group.extent(var).as_const().filter(|w| (1..=MAX_WIDTH).contains(w));
        width.map(|w| (w as u32).next_multiple_of(16))
    };
    let (Some(depth), Some(width)) = (head(a.qk), head(a.width)) else {
        return Err(e.unsupported("attention needs heads of a constant width up to 256"));
    };
    // Scores in TF32 would lose more than the softmax forgives; f32 covers it.
    let math = match supported(a.math, arch) {
        half @ (MathType::F16 | MathType::Bf16) => half,
        _ => MathType::F32,
    };
    let sides = [
        ("Q", Side { rows: vec![a.row], steps: vec![a.qk], element: a.q }),
        ("K", Side { rows: vec![a.col], steps: vec![a.qk], element: a.k }),
        ("V", Side { rows: vec![a.width], steps: vec![a.col], element: a.v }),
    ];
    e.require(Part::Base);
    e.require(Part::Types);
    let mut problem = format!(
        "struct Problem {{\n  static constexpr bool kCausal = {}, kMaskedRowIsZero = {};\n",
        a.causal, a.masked_row_is_zero
    );
    for (name, var) in [("rows", a.row), ("columns", a.col), ("width", a.width)] {
        let dim = group.extent(var).clone();
        let extent = e.uniform(&dim, Role::Extent(var.0)).text;
        let _ = writeln!(problem, "  FN int {name}(const Args& p) {{ return {extent}; }}");
    }
    problem += &place(&mut e, &a.batch);
    let mut accesses = Vec::new();
    for (name, of) in &sides {
        let mut access = classify(&mut e, of, math, SMALLEST_COPY);
        if math == MathType::F32
            && let Access::Direct { load, along_k, .. } = access
        {
            access = Access::Gathered { load, lanes_along_rows: !along_k };
        }
        problem += &side(&mut e, name, &a.batch, of, &access, "float")?;
        accesses.push(access);
    }
    let (out, along_n) = output(&mut e, &a.batch, &[a.row], &[a.width], 1, DType::F32)?;
    problem += &out;
    problem += &score(&mut e, a)?;
    problem += "};\n";
    let problem = problem.replace("  FN ", "  static FN ");

    let limit = if arch.capability() < 80 { SHARED_LIMIT_75 } else { SHARED_LIMIT };
    let schedule = match math {
        MathType::F32 => fma(depth, width, limit),
        _ => mma(math, depth, width, &accesses, along_n, limit),
    };
    let Some(Schedule { headers, engine, name, rows, threads, shared }) = schedule else {
        return Err(e.unsupported("heads are too wide for this architecture's shared memory"));
    };
    let scope = group.scope(symbols);
    let tiles = scope.ceil_div(group.extent(a.row), &i64::from(rows).into());
    let blocks = tiles * group.volume(&a.batch);
    e.leave_surplus(&blocks, false);
    let body =
        format!("  extern __shared__ __align__(128) char memory[];\n  {engine}::run(p, memory);\n");
    let function = e.function(ENTRY, threads, &body);
    let source = format!("{}{headers}{}{problem}{function}", e.prelude(), e.declaration());
    let (args, sizes) = e.arguments();
    Ok(vec![Kernel {
        source,
        entry: ENTRY.to_owned(),
        options: Vec::new(),
        schedule: name,
        when: Cond::always(),
        blocks,
        early: false,
        threads,
        shared,
        args,
        sizes,
    }])
}

/// `score(p, z, row, column, dot)`.
fn score(e: &mut Emitter<'_>, a: &Attention) -> Emit<String> {
    let (statements, value) = body(e, |e| {
        bind_place(e, &a.batch);
        e.bind(a.row, Int::narrow("row"));
        e.bind(a.col, Int::narrow("column"));
        e.bind_acc(0, Value { dtype: DType::F32, lanes: vec!["dot".to_owned()] });
        e.value(a.score)
    })?;
    Ok(format!(
        "  FN float score(const Args& p, const Place& z, int row, int column, float dot) \
         {{\n{statements}    return {};\n  }}\n",
        value.lane(0)
    ))
}

struct Schedule {
    headers: String,
    engine: String,
    name: String,
    /// Rows of a block.
    rows: u32,
    threads: u32,
    /// Bytes of dynamic shared memory.
    shared: u32,
}

fn mma(
    math: MathType,
    depth: u32,
    width: u32,
    accesses: &[Access],
    along_n: bool,
    limit: u32,
) -> Option<Schedule> {
    // Queries, scores and sums are in registers, beside addresses and what is on its way.
    let registers = |columns: u32| depth / 4 + columns / 2 + width / 2;
    let (warps, columns, stages, shared) = [
        (4, 64, 2),
        (4, 64, 1),
        (4, 32, 2),
        (4, 32, 1),
        (4, LEAST_COLUMNS, 1),
        (2, LEAST_COLUMNS, 1),
    ]
    .into_iter()
    .map(|(warps, columns, stages)| {
        let rows = warps * 16;
        let stage = tile_bytes(&accesses[1], columns, depth, 2)
            + tile_bytes(&accesses[2], width, columns, 2);
        let loop_bytes = tile_bytes(&accesses[0], rows, depth, 2) + stages * stage;
        let slices = if along_n { rows * (width + 8) } else { 16 * (rows + 4) } * 4;
        (warps, columns, stages, loop_bytes.max(slices))
    })
    .find(|&(_, columns, _, shared)| {
        shared <= limit && (columns == LEAST_COLUMNS || registers(columns) <= REGISTERS)
    })?;
    let rows = warps * 16;
    let unit = if math == MathType::Bf16 { "MathBf16" } else { "MathF16" };
    Some(Schedule {
        headers: [
            include_str!("../../cuda/mma.cuh"),
            include_str!("../../cuda/async.cuh"),
            include_str!("../../cuda/tile.cuh"),
            include_str!("../../cuda/slice.cuh"),
            include_str!("../../cuda/attention_mma.cuh"),
        ]
        .concat(),
        engine: format!(
            "AttentionMma<Problem, {unit}, {depth}, {width}, {warps}, {columns}, {stages}>"
        ),
        name: format!("mma {rows} rows, {columns} columns, {stages} stages"),
        rows,
        threads: warps * 32,
        shared,
    })
}

fn fma(depth: u32, width: u32, limit: u32) -> Option<Schedule> {
    let (rows, columns, shared) = [(32, 32), (16, 16), (8, 16)]
        .into_iter()
        .map(|(rows, columns): (u32, u32)| {
            let floats = rows * (depth.max(width) + 1)
                + columns * (depth + 1)
                + columns * (width + 1)
                + rows * (columns + 1);
            (rows, columns, floats * 4)
        })
        .find(|(_, _, shared)| *shared <= limit)?;
    Some(Schedule {
        headers: [
            include_str!("../../cuda/mma.cuh"),
            include_str!("../../cuda/async.cuh"),
            include_str!("../../cuda/tile.cuh"),
            include_str!("../../cuda/attention_fma.cuh"),
        ]
        .concat(),
        engine: format!("AttentionFma<Problem, {depth}, {width}, {rows}, {columns}>"),
        name: format!("fma {rows} rows, {columns} columns"),
        rows,
        threads: 128,
        shared,
    })
}
