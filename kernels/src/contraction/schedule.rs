//! Tiles, and the sizes that each is chosen for.

use super::access::Access;
use crate::group::MathType;
use aot_ir::dim::{Cmp, Cond};
use aot_ir::{Arch, DType, Dim, Scope};

/// Multiprocessors that a grid should at least fill: those of an H100 or H200; other GPUs in use have
/// between 40 and 170, where the same threshold costs little.
const PROCESSORS: i64 = 132;
/// Small tiles along m, and along n and the batch, up to which blocks are few: all of them together are at most a third
/// of the places that multiprocessors have for them.
const MOST_EARLY: i64 = 2;
/// See [`MOST_EARLY`].
const SCATTERED: i64 = 32;
/// Results in `n` from which the largest tile is considered.
const WIDE: i64 = 2048;

/// How a block works on its tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    /// Matrix instructions: warps along m and n, stages of the pipeline.
    Mma { warps_m: u32, warps_n: u32, stages: u32 },
    /// Fused multiply-add, 16 x 16 threads.
    Fma,
}

/// A block's tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tile {
    pub(super) m: u32,
    pub(super) n: u32,
    pub(super) k: u32,
    pub(super) engine: Engine,
}

/// The most rows for which elements of the other side go from memory to products; `cuda/contraction_few.cuh`.
pub(super) const FEW_ROWS: i64 = 8;
/// Columns of a block with few rows.
pub(super) const FEW_COLUMNS: u32 = 16;

/// A schedule and when it is chosen.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    /// Of products with more than a few rows. Where there may be both, the text has both, so that they are one kernel.
    pub(super) tile: Option<Tile>,
    /// Whether there may be few rows.
    pub(super) few: bool,
    /// Whether this choice is for few rows.
    pub(super) is_few: bool,
    /// [`Kernel::early`](crate::Kernel::early).
    pub(super) early: bool,
    pub(super) when: Cond,
}

/// The type that products are really computed in: architectures without an instruction for it use
/// binary32.
pub(crate) fn supported(math: MathType, arch: Arch) -> MathType {
    match math {
        MathType::Bf16 | MathType::Tf32 if arch.capability() < 80 => MathType::F32,
        math => math,
    }
}

/// Bytes of shared memory that a block may have.
fn shared_limit(arch: Arch) -> u32 {
    match arch.capability() {
        75 => 64 << 10,
        80 | 87 => 163 << 10,
        90 | 100 | 103 | 110 => 227 << 10,
        _ => 99 << 10,
    }
}

fn mma(m: u32, n: u32, k: u32, warps: [u32; 2], stages: u32) -> Tile {
    let [warps_m, warps_n] = warps;
    Tile { m, n, k, engine: Engine::Mma { warps_m, warps_n, stages } }
}

/// Products of a sum up to which a block takes a microsecond at most.
fn short(math: MathType) -> i64 {
    match math {
        MathType::F16 | MathType::Bf16 => 256,
        MathType::Tf32 => 128,
        _ => 64,
    }
}

/// Blocks that a grid for few rows has.
pub(super) fn few_blocks(scope: &Scope<'_>, batch: &Dim, n: &Dim) -> Dim {
    batch * scope.ceil_div(n, &i64::from(FEW_COLUMNS).into())
}

/// Blocks that a grid has.
pub(super) fn blocks(scope: &Scope<'_>, tile: Tile, [batch, m, n]: [&Dim; 3]) -> Dim {
    let along = |extent: &Dim, tile: u32| scope.ceil_div(extent, &i64::from(tile).into());
    batch * along(m, tile.m) * along(n, tile.n)
}

/// Schedules in the order in which they are tried; the last one's condition always holds.
pub(super) fn choices(
    scope: &Scope<'_>,
    math: MathType,
    arch: Arch,
    sizes: [&Dim; 3],
    products: &Dim,
) -> Vec<Choice> {
    let fma = |m, n, k| Tile { m, n, k, engine: Engine::Fma };
    let roomy = shared_limit(arch) >= 144 << 10;
    let old = arch.capability() < 80;
    let (large, medium, small) = match math {
        MathType::F64 => (None, None, fma(64, 64, 8)),
        MathType::I32 => (None, None, fma(64, 64, 16)),
        MathType::F32 => (None, Some(fma(128, 128, 8)), fma(64, 64, 16)),
        MathType::Tf32 => (None, Some(mma(128, 128, 32, [2, 2], 3)), mma(64, 64, 32, [2, 2], 3)),
        _ if old => (None, Some(mma(128, 128, 32, [2, 2], 2)), mma(64, 64, 32, [2, 2], 2)),
        _ => (
            Some(mma(128, 256, 32, [2, 4], if roomy { 4 } else { 3 })),
            Some(if roomy { mma(128, 128, 64, [2, 4], 3) } else { mma(128, 128, 32, [2, 2], 4) }),
            mma(64, 64, 64, [2, 2], 3),
        ),
    };
    let fills = |tile: Tile, waves: i64| {
        let blocks = blocks(scope, tile, sizes);
        scope.cond(Cmp::Le, &(waves * PROCESSORS).into(), &blocks)
    };
    let has_few = scope.cond(Cmp::Le, sizes[1], &FEW_ROWS.into());
    let few = scope.decide_cond(&has_few) != Some(false);
    let mut out = Vec::new();
    if few {
        let tile = (!has_few.is_always()).then_some(small);
        out.push(Choice { tile, few, is_few: true, early: true, when: has_few });
    }
    let short = scope.interval(products).hi <= short(math);
    let mut add = |tile: Tile, few: bool, early: bool, when: Cond| {
        let done = out.last().is_some_and(|c: &Choice| c.when.is_always());
        if !done && scope.decide_cond(&when) != Some(false) {
            out.push(Choice { tile: Some(tile), few, is_few: false, early: early || short, when });
        }
    };
    // Blocks that are few have multiprocessors of their own, wherever they are put.
    let most = |dim: &Dim| scope.interval(dim).hi;
    if most(sizes[0]).saturating_mul(most(sizes[2])) <= SCATTERED * i64::from(small.n) {
        let m_tiles = MOST_EARLY * i64::from(small.m);
        add(small, few, true, scope.cond(Cmp::Le, sizes[1], &m_tiles.into()));
    }
    if let Some(tile) = large
        && scope.interval(sizes[2]).lo >= WIDE
    {
        add(tile, false, false, fills(tile, 2));
    }
    if let Some(tile) = medium {
        add(tile, false, false, fills(tile, 1));
    }
    add(small, few, false, Cond::always());
    out
}

/// Bytes of one operand's tile in shared memory; see `cuda/tile.cuh`.
pub(crate) fn tile_bytes(access: &Access, rows: u32, depth: u32, element: u32) -> u32 {
    let chunk = 16 / element;
    let along_k = match access {
        Access::Direct { along_k, .. } => *along_k,
        _ => true,
    };
    let (lines, line) = if along_k { (rows, depth / chunk) } else { (depth, rows / chunk) };
    let permuted = line >= 2 && line.is_power_of_two() && (along_k || element == 2 || line >= 8);
    lines * 16 * if permuted { line } else { line | 1 }
}

/// Bytes of dynamic shared memory of a block of `threads` with few rows.
pub(super) fn few_bytes(threads: u32, sum: DType) -> u32 {
    threads / 32 * FEW_ROWS as u32 * FEW_COLUMNS * if sum == DType::F64 { 8 } else { 4 }
}

/// Bytes of dynamic shared memory of a block.
pub(super) fn shared_bytes(
    tile: Tile,
    math: MathType,
    a: &Access,
    b: &Access,
    stores_along_n: bool,
) -> u32 {
    match tile.engine {
        Engine::Mma { warps_m, warps_n, stages } => {
            let element = if math == MathType::Tf32 { 4 } else { 2 };
            let stage =
                tile_bytes(a, tile.m, tile.k, element) + tile_bytes(b, tile.n, tile.k, element);
            let slices = if stores_along_n {
                warps_m * 16 * (tile.n + 8) * 4
            } else {
                warps_n * 16 * (tile.m + 4) * 4
            };
            (stages * stage).max(slices)
        }
        Engine::Fma => {
            let element = if math == MathType::F64 { 8 } else { 4 };
            let pad = 16 / element;
            let stage = (tile.m + pad + tile.n + pad) * tile.k;
            let slices = 16 * (if stores_along_n { tile.n } else { tile.m } + 4);
            (2 * stage).max(slices) * element
        }
    }
}
