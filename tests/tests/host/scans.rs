//! Running combinations.

use super::builder::{Builder, var};
use super::cases::{Case, fixed};
use aot_ir::op::BinaryOp;
use aot_ir::{DType, Dim, Symbol, Symbols};
use aot_kernels::group::{FoldOp, Group};

/// A running combination of `2 x` along the last axis of `[rows, columns]` or the second one of
/// `[outer, columns, rows]`, from which `x` is subtracted.
fn running(
    storage: DType,
    op: FoldOp,
    [outer, columns, rows]: [Dim; 3],
    flags: (bool, bool),
) -> Group {
    let mut b = Builder::new("scan");
    let (o, j, i) = (b.var(outer.clone()), b.var(columns.clone()), b.var(rows.clone()));
    let [x, y] = [0; 2].map(|_| b.operand(storage, &outer * &columns * &rows));
    let flat = (var(o) * &columns + var(j)) * &rows + var(i);
    let x = b.load(x, flat.clone());
    let twice = b.binary(BinaryOp::Add, x, x);
    let dtype = b.dtype(x);
    let r = b.acc(0, dtype);
    let r = b.binary(BinaryOp::Sub, r, x);
    b.store(y, flat, r);
    b.scan(&[o, i], j, (op, twice), flags)
}

/// Groups of the family Scan.
pub(crate) fn scans() -> Vec<Case> {
    use DType as D;
    use FoldOp as F;
    let shape = |s: [i64; 3]| s.map(Dim::from);
    let mut cases = Vec::new();
    for (i, n) in [0, 1, 4, 31, 32, 33, 257, 5000].into_iter().enumerate() {
        for (j, (outer, rows)) in [(5, 1), (3, 37), (1, 1)].into_iter().enumerate() {
            let (dtype, op) = [
                (D::I64, F::Sum),
                (D::F32, F::Max),
                (D::I32, F::Sum),
                (D::F64, F::Min),
                (D::U64, F::Prod),
            ][(i + 2 * j) % 5];
            for flags in [(false, false), (true, true), (false, true), (true, false)] {
                let name = format!("scan_{n}_{outer}_{rows}_{}_{}", flags.0, flags.1).leak();
                cases.push(fixed(name, running(dtype, op, shape([outer, n, rows]), flags)));
            }
        }
    }
    for (name, dtype, size) in [
        ("scan_f16", D::F16, [300, 64, 1]),
        ("scan_f16_long", D::F16, [2, 4096, 1]),
        ("scan_bf16_columns", D::Bf16, [2, 40, 300]),
        ("scan_i8_columns", D::I8, [1, 1000, 20]),
        ("scan_f32_wide", D::F32, [2, 20, 20_000]),
    ] {
        cases.push(fixed(name, running(dtype, F::Sum, shape(size), (true, false))));
    }
    for (name, last) in [("scan_dynamic", true), ("scan_dynamic_columns", false)] {
        let mut symbols = Symbols::default();
        let n = symbols.add(Symbol::new("n", 0, 100_000, 1));
        let rows = Dim::from(if last { 1 } else { 6 });
        let group = running(D::I64, F::Sum, [Dim::from(2), symbols.dim(n), rows], (false, true));
        cases.push(Case { name, group, symbols, atoms: vec![777] });
    }
    cases
}
