//! The text of contraction kernels.

use super::access::{Access, Side, classify};
use super::collapse::collapse;
use super::output::output;
use super::schedule::{
    Choice, Engine, FEW_COLUMNS, FEW_ROWS, Tile, blocks, choices, few_blocks, few_bytes,
    shared_bytes, supported,
};
use super::side::{place, side};
use crate::code::{Emit, Emitter, Part, Role};
use crate::group::{Anchor, Contraction, Group, MathType};
use crate::kernel::{Kernel, KernelError};
use aot_ir::dim::VarId;
use aot_ir::{Arch, DType, Dim, Symbols};

/// Bytes that the least asynchronous copy has.
const SMALLEST_COPY: i64 = 4;

/// Kernels for a group whose anchor is [`Anchor::Contraction`].
///
/// # Errors
/// If an expression can't be computed on a GPU, or a side has more than 2³¹ rows.
pub fn kernels(group: &Group, symbols: &Symbols, arch: Arch) -> Result<Vec<Kernel>, KernelError> {
    let group = collapse(group);
    let Anchor::Contraction(c) = &group.anchor else {
        return Err(Emitter::new(&group, symbols).unsupported("its anchor is no contraction"));
    };
    let scope = group.scope(symbols);
    let math = supported(c.math, arch);
    let (batch, m, n) = (group.volume(&c.batch), group.volume(&c.m), group.volume(&c.n));
    let chosen = choices(&scope, math, arch, [&batch, &m, &n], &group.volume(&c.k));
    chosen
        .into_iter()
        .map(|choice| {
            let blocks = match choice.tile {
                Some(tile) if !choice.is_few => blocks(&scope, tile, [&batch, &m, &n]),
                _ => few_blocks(&scope, &batch, &n),
            };
            kernel(&group, c, symbols, math, &choice, blocks)
        })
        .collect()
}

const ENTRY: &str = "aot_contraction";

/// Threads of a block; without a tile, those of few rows.
fn threads(tile: Option<Tile>) -> u32 {
    match tile.map(|tile| tile.engine) {
        Some(Engine::Mma { warps_m, warps_n, .. }) => warps_m * warps_n * 32,
        Some(Engine::Fma) => 256,
        None => 128,
    }
}

fn kernel(
    group: &Group,
    c: &Contraction,
    symbols: &Symbols,
    math: MathType,
    choice: &Choice,
    blocks: Dim,
) -> Emit<Kernel> {
    let mut e = Emitter::new(group, symbols);
    let left = Side { rows: c.m.clone(), steps: c.k.clone(), element: c.a };
    let right = Side { rows: c.n.clone(), steps: c.k.clone(), element: c.b };
    let a = classify(&mut e, &left, math, SMALLEST_COPY);
    let b = classify(&mut e, &right, math, SMALLEST_COPY);
    let (real, dtype) = match math {
        MathType::F64 => ("double", DType::F64),
        MathType::I32 => ("int", DType::I32),
        _ => ("float", DType::F32),
    };
    e.require(Part::Base);
    e.require(Part::Types);
    // Blocks without matrix instructions gain nothing by it (kernels/NOTES.md).
    if !matches!(choice.tile, Some(Tile { engine: Engine::Fma, .. })) {
        for side in [&a, &b] {
            if let Access::Direct { load, .. } = side {
                e.prefetch(load.operand);
            }
        }
    }
    // One text may be for several choices, whose numbers of blocks may vary or not.
    let varies = [&c.batch, &c.m, &c.n].iter().any(|vars| group.volume(vars).as_const().is_none());
    e.leave_surplus(&blocks, varies);
    let mut problem = String::from("struct Problem {\n");
    for (name, vars) in [("m", &c.m), ("n", &c.n), ("k", &c.k)] {
        let extent = volume(&mut e, vars)?;
        problem += &format!("  FN int {name}(const Args& p) {{ return {extent}; }}\n");
    }
    problem += &place(&mut e, &c.batch);
    problem += &side(&mut e, "A", &c.batch, &left, &a, real)?;
    problem += &side(&mut e, "B", &c.batch, &right, &b, real)?;
    let (out, along_n) = output(&mut e, &c.batch, &c.m, &c.n, 0, dtype)?;
    problem += &out;
    problem += "};\n";
    let problem = problem.replace("  FN ", "  static FN ");

    let threads = threads(choice.tile);
    let few = format!(
        "ContractionFew<Problem, {real}, {FEW_ROWS}, {FEW_COLUMNS}, {threads}>::run(p, memory);"
    );
    let (mut headers, call, mut name) = match choice.tile {
        Some(tile) => {
            let (headers, engine, name) = engine(math, tile, real);
            let call = format!("{engine}::run(p, memory);");
            let both = format!("if (Problem::m(p) <= {FEW_ROWS}) {few} else {call}");
            (headers, if choice.few { both } else { call }, name)
        }
        None => (common(), few, format!("few rows, {FEW_COLUMNS} columns, {threads} threads")),
    };
    if choice.few && choice.tile.is_some() {
        name += ", or few rows";
    }
    if choice.few {
        headers += include_str!("../../cuda/contraction_few.cuh");
    }
    let body = format!("  extern __shared__ __align__(128) char memory[];\n  {call}\n");
    let function = e.function(ENTRY, threads, &body);
    let source = format!("{}{headers}{}{problem}{function}", e.prelude(), e.declaration());
    let few = few_bytes(threads, dtype);
    let shared = match choice.tile {
        Some(tile) => {
            shared_bytes(tile, math, &a, &b, along_n).max(if choice.few { few } else { 0 })
        }
        None => few,
    };
    let (args, sizes) = e.arguments();
    Ok(Kernel {
        source,
        entry: ENTRY.to_owned(),
        options: Vec::new(),
        schedule: name,
        when: choice.when.clone(),
        blocks,
        early: choice.early,
        threads,
        shared,
        args,
        sizes,
    })
}

/// The number of a side's rows, or of the elements that are summed.
fn volume(e: &mut Emitter<'_>, vars: &[VarId]) -> Emit<String> {
    let volume = e.group().volume(vars);
    let extent = e.uniform(&volume, Role::Extent(vars.last().map_or(u32::MAX, |v| v.0)));
    if extent.wide {
        return Err(e.unsupported("a side has more than 2147483647 rows"));
    }
    Ok(extent.text)
}

/// Headers that all schedules have.
fn common() -> String {
    [
        include_str!("../../cuda/mma.cuh"),
        include_str!("../../cuda/async.cuh"),
        include_str!("../../cuda/tile.cuh"),
        include_str!("../../cuda/slice.cuh"),
    ]
    .concat()
}

/// Headers, the instance of the device code, and the schedule's name.
fn engine(math: MathType, tile: Tile, real: &str) -> (String, String, String) {
    let Tile { m, n, k, engine } = tile;
    let common = common();
    match engine {
        Engine::Mma { warps_m, warps_n, stages } => {
            let unit = match math {
                MathType::Bf16 => "MathBf16",
                MathType::Tf32 => "MathTf32",
                _ => "MathF16",
            };
            (
                common + include_str!("../../cuda/contraction_mma.cuh"),
                format!(
                    "ContractionMma<Problem, {unit}, {m}, {n}, {k}, {warps_m}, {warps_n}, {stages}>"
                ),
                format!("mma {m}x{n}x{k}, {stages} stages"),
            )
        }
        Engine::Fma => (
            common + include_str!("../../cuda/contraction_fma.cuh"),
            format!("ContractionFma<Problem, {real}, {}, {}, {k}>", m / 16, n / 16),
            format!("fma {m}x{n}x{k}"),
        ),
    }
}
