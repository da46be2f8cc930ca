//! Groups that stand for what models need.

use super::builder::{Builder, var};
use aot_ir::dim::Cond;
use aot_ir::op::{BinaryOp, ScatterReduction, UnaryOp};
use aot_ir::{DType, Dim, Scalar, Symbol, Symbols};
use aot_kernels::group::{Expr, FoldOp, Group};

/// A group with its symbols and values for them.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) group: Group,
    pub(crate) symbols: Symbols,
    pub(crate) atoms: Vec<i64>,
}

pub(crate) fn fixed(name: &'static str, group: Group) -> Case {
    Case { name, group, symbols: Symbols::default(), atoms: Vec::new() }
}

/// `y = gelu(x + bias)` over rows of `columns` elements.
pub(crate) fn bias_gelu(storage: DType, rows: i64, columns: i64) -> Group {
    let mut b = Builder::new("gelu");
    let (i, j) = (b.var(rows), b.var(columns));
    let x = b.operand(storage, rows * columns);
    let bias = b.operand(storage, columns);
    let y = b.operand(storage, rows * columns);
    let flat = var(i) * columns + var(j);
    let x = b.load(x, flat.clone());
    let bias = b.load(bias, var(j));
    let x = b.binary(BinaryOp::Add, x, bias);
    let c = b.float(std::f64::consts::FRAC_1_SQRT_2);
    let t = b.binary(BinaryOp::Mul, x, c);
    let t = b.unary(UnaryOp::Erf, t);
    let one = b.float(1.0);
    let t = b.binary(BinaryOp::Add, t, one);
    let half = b.float(0.5);
    let x = b.binary(BinaryOp::Mul, x, half);
    let r = b.binary(BinaryOp::Mul, x, t);
    b.store(y, flat, r);
    b.map(&[i, j])
}

fn residual(storage: DType, n: i64) -> Group {
    let mut b = Builder::new("add");
    let (i, j) = (b.var(7), b.var(n));
    let operands = [0; 3].map(|_| b.operand(storage, 7 * n));
    let flat = var(i) * n + var(j);
    let x = b.load(operands[0], flat.clone());
    let z = b.load(operands[1], flat.clone());
    let r = b.binary(BinaryOp::Add, x, z);
    let r = b.unary(UnaryOp::Relu, r);
    b.store(operands[2], flat, r);
    b.map(&[i, j])
}

fn transposed() -> Group {
    let mut b = Builder::new("transpose");
    let (i, j) = (b.var(33), b.var(20));
    let x = b.operand(DType::F16, 660);
    let y = b.operand(DType::F32, 660);
    let x = b.load(x, var(j) * 33 + var(i));
    b.store(y, var(i) * 20 + var(j), x);
    b.map(&[i, j])
}

/// Rows of a table by index, negative ones from the end, plus positions; symbolic sizes.
fn embedding() -> Case {
    let mut symbols = Symbols::default();
    let batch = symbols.add(Symbol::new("batch", 1, 64, 1));
    let sequence = symbols.add(Symbol::new("sequence", 1, 512, 1));
    let (batch, sequence) = (symbols.dim(batch), symbols.dim(sequence));
    let mut b = Builder::new("embedding");
    let (i, s, j) = (b.var(batch.clone()), b.var(sequence.clone()), b.var(48));
    let ids = b.operand(DType::I64, &batch * &sequence);
    let table = b.operand(DType::F32, 100 * 48);
    let positions = b.operand(DType::F16, 512 * 48);
    let y = b.operand(DType::F16, &batch * &sequence * 48);
    let row = var(i) * &sequence + var(s);
    let id = b.load(ids, row.clone());
    let zero = b.expr(DType::I64, Expr::Const(Scalar::Int(0)));
    let count = b.expr(DType::I64, Expr::Const(Scalar::Int(100)));
    let negative = b.binary(BinaryOp::Lt, id, zero);
    let shifted = b.binary(BinaryOp::Add, id, count);
    let id = b.expr(DType::I64, Expr::Select(negative, shifted, id));
    let at = b.coordinate(id);
    let x = b.load(table, at * 48 + var(j));
    let position = b.load(positions, var(s) * 48 + var(j));
    let r = b.binary(BinaryOp::Add, x, position);
    b.store(y, row * 48 + var(j), r);
    let group = b.map(&[i, s, j]);
    Case { name: "embedding", group, symbols, atoms: vec![3, 17] }
}

/// A padded 3×3 maximum with stride 2, channels last.
fn max_pool() -> Group {
    let (h, w, c) = (9, 10, 12);
    let (oh, ow) = (5, 5);
    let mut b = Builder::new("pool");
    let [y, x, ch] = [oh, ow, c].map(|e| b.var(e));
    let [ky, kx] = [3, 3].map(|e| b.var(e));
    let input = b.operand(DType::F16, h * w * c);
    let output = b.operand(DType::F16, oh * ow * c);
    let (iy, ix) = (var(y) * 2 + var(ky) - 1, var(x) * 2 + var(kx) - 1);
    let guard = Cond::within(&iy, &Dim::from(h)).and(Cond::within(&ix, &Dim::from(w)));
    let offset = (iy * w + ix) * c + var(ch);
    let v = b.guarded(input, offset, guard, Scalar::Float(f64::NEG_INFINITY));
    let v = b.fold(FoldOp::Max, &[ky, kx], v);
    b.store(output, (var(y) * ow + var(x)) * c + var(ch), v);
    b.map(&[y, x, ch])
}

/// A slice of a larger buffer is written: half of a concatenation along the last axis.
fn concat_part(width: i64) -> Group {
    let mut b = Builder::new("concat");
    let (i, j) = (b.var(6), b.var(width));
    let x = b.operand(DType::F32, 6 * width);
    let y = b.operand(DType::F32, 6 * 40);
    let x = b.load(x, var(i) * width + var(j));
    let x = b.unary(UnaryOp::Sigmoid, x);
    b.store(y, var(i) * 40 + var(j) + 8, x);
    b.map(&[i, j])
}

/// Updates are added to the rows that indices name.
fn scatter_add(storage: DType, combine: ScatterReduction) -> Group {
    let mut b = Builder::new("scatter");
    let (i, j) = (b.var(30), b.var(5));
    let ids = b.operand(DType::I32, 30);
    let updates = b.operand(storage, 150);
    let out = b.operand(storage, 10 * 5);
    let id = b.load(ids, var(i));
    let ten = b.expr(DType::I32, Expr::Const(Scalar::Int(10)));
    let id = b.binary(BinaryOp::Mod, id, ten);
    let at = b.coordinate(id);
    let x = b.load(updates, var(i) * 5 + var(j));
    b.store(out, at * 5 + var(j), x).combine = combine;
    b.map(&[i, j])
}

/// Every storage type, converted to another.
fn conversion(from: DType, to: DType, count: i64) -> Group {
    let mut b = Builder::new("cast");
    let i = b.var(count);
    let x = b.operand(from, count);
    let y = b.operand(to, count);
    let x = b.load(x, var(i));
    let x = b.cast(x, to);
    b.store(y, var(i), x);
    b.map(&[i])
}

/// Rows of five 4-bit elements from columns, or to the end of longer rows.
fn packed(part: bool) -> Group {
    let mut b = Builder::new("pack");
    let (i, j) = (b.var(7), b.var(5));
    let x = b.operand(DType::U8, 35);
    let row = if part { 9 } else { 5 };
    let y = b.operand(DType::U4, 7 * row);
    let x = b.load(x, var(j) * 7 + var(i));
    b.store(y, var(i) * row + var(j) + row - 5, x);
    b.map(&[i, j])
}

/// A sum over channels of one convolution group with an index map of its own.
fn depthwise() -> Group {
    let (h, w, c) = (6, 7, 16);
    let mut b = Builder::new("depthwise");
    let [y, x, ch] = [h, w, c].map(|e| b.var(e));
    let [ky, kx] = [5, 5].map(|e| b.var(e));
    let input = b.operand(DType::F16, h * w * c);
    let weight = b.operand(DType::F16, 25 * c);
    let output = b.operand(DType::F16, h * w * c);
    let (iy, ix) = (var(y) + var(ky) - 2, var(x) + var(kx) - 2);
    let guard = Cond::within(&iy, &Dim::from(h)).and(Cond::within(&ix, &Dim::from(w)));
    let v = b.guarded(input, (iy * w + ix) * c + var(ch), guard, Scalar::Float(0.0));
    let k = b.load(weight, (var(ky) * 5 + var(kx)) * c + var(ch));
    let v = b.binary(BinaryOp::Mul, v, k);
    let v = b.fold(FoldOp::Sum, &[ky, kx], v);
    let zero = b.float(0.0);
    let six = b.float(6.0);
    let v = b.binary(BinaryOp::Max, v, zero);
    let v = b.binary(BinaryOp::Min, v, six);
    b.store(output, (var(y) * w + var(x)) * c + var(ch), v);
    b.map(&[y, x, ch])
}

/// An operator of two numbers of one type.
fn binary(op: BinaryOp, dtype: DType) -> Group {
    let mut b = Builder::new("binary");
    let i = b.var(97);
    let [x, z] = [0; 2].map(|_| b.operand(dtype, 97));
    let out = if op.is_comparison() { DType::Bool } else { dtype };
    let y = b.operand(out, 97);
    let (x, z) = (b.load(x, var(i)), b.load(z, var(i)));
    let r = b.binary(op, x, z);
    b.store(y, var(i), r);
    b.map(&[i])
}

/// Groups of the family Map.
pub(crate) fn maps() -> Vec<Case> {
    let mut cases = vec![
        fixed("bias_gelu_f16", bias_gelu(DType::F16, 9, 40)),
        fixed("bias_gelu_odd", bias_gelu(DType::F32, 9, 37)),
        fixed("residual_bf16", residual(DType::Bf16, 41)),
        fixed("residual_f32", residual(DType::F32, 64)),
        fixed("transposed", transposed()),
        embedding(),
        fixed("max_pool", max_pool()),
        fixed("depthwise", depthwise()),
        fixed("concat_aligned", concat_part(32)),
        fixed("concat_odd", concat_part(27)),
    ];
    use ScatterReduction as S;
    for (name, storage, combine) in [
        ("scatter_add_f32", DType::F32, S::Add),
        ("scatter_add_f16", DType::F16, S::Add),
        ("scatter_max_i8", DType::I8, S::Max),
        ("scatter_mul_i64", DType::I64, S::Mul),
        ("scatter_min_f64", DType::F64, S::Min),
    ] {
        cases.push(fixed(name, scatter_add(storage, combine)));
    }
    for (name, from, to) in [
        ("cast_f16_i8", DType::F16, DType::I8),
        ("cast_f32_bf16", DType::F32, DType::Bf16),
        ("cast_f64_i64", DType::F64, DType::I64),
        ("cast_i4_f32", DType::I4, DType::F32),
        ("cast_u4_i32", DType::U4, DType::I32),
        ("cast_u16_bool", DType::U16, DType::Bool),
        ("cast_bool_f32", DType::Bool, DType::F32),
        ("cast_f32_u32", DType::F32, DType::U32),
        ("cast_f32_u64", DType::F32, DType::U64),
        ("cast_f32_e4m3", DType::F32, DType::F8E4M3),
        ("cast_e5m2_f32", DType::F8E5M2, DType::F32),
        ("cast_f32_e4m3fnuz", DType::F32, DType::F8E4M3Fnuz),
        ("cast_e4m3fnuz_f16", DType::F8E4M3Fnuz, DType::F16),
        ("cast_f32_e5m2fnuz", DType::F32, DType::F8E5M2Fnuz),
        ("cast_e5m2fnuz_f32", DType::F8E5M2Fnuz, DType::F32),
        ("cast_f32_e8m0", DType::F32, DType::F8E8M0),
        ("cast_e8m0_f32", DType::F8E8M0, DType::F32),
        ("cast_e2m1_f32", DType::F4E2M1, DType::F32),
        ("cast_i2_f16", DType::I2, DType::F16),
        ("cast_u2_i32", DType::U2, DType::I32),
    ] {
        cases.push(fixed(name, conversion(from, to, 61)));
    }
    for (name, from, to, count) in [
        ("cast_f32_i4_odd", DType::F32, DType::I4, 61),
        ("cast_i8_u4_even", DType::I8, DType::U4, 62),
        ("cast_f16_u4_words", DType::F16, DType::U4, 140_001),
        ("cast_u8_i4_words", DType::U8, DType::I4, 140_006),
        ("cast_f32_e2m1_odd", DType::F32, DType::F4E2M1, 61),
        ("cast_f16_e2m1_words", DType::F16, DType::F4E2M1, 140_001),
        ("cast_f32_i2_odd", DType::F32, DType::I2, 61),
        ("cast_i8_u2_words", DType::I8, DType::U2, 140_003),
    ] {
        cases.push(fixed(name, conversion(from, to, count)));
    }
    cases.push(fixed("u4_transposed", packed(false)));
    cases.push(fixed("u4_part", packed(true)));
    use BinaryOp as B;
    for (name, op, dtype) in [
        ("mod_f32", B::Mod, DType::F32),
        ("mod_i32", B::Mod, DType::I32),
        ("div_i64", B::Div, DType::I64),
        ("min_f16", B::Min, DType::F16),
        ("max_f32", B::Max, DType::F32),
        ("shl_u32", B::Shl, DType::U32),
        ("lt_bool", B::Lt, DType::Bool),
        ("ge_f32", B::Ge, DType::F32),
        ("mul_u64", B::Mul, DType::U64),
    ] {
        cases.push(fixed(name, binary(op, dtype)));
    }
    cases
}

/// Layer normalisation of `x + z`, with the sum stored too.
pub(crate) fn layer_norm(storage: DType, rows: impl Into<Dim>, columns: i64) -> Group {
    let rows = rows.into();
    let mut b = Builder::new("norm");
    let (i, j) = (b.var(rows.clone()), b.var(columns));
    let [x, z] = [0; 2].map(|_| b.operand(storage, &rows * columns));
    let [scale, shift] = [0; 2].map(|_| b.operand(storage, columns));
    let [y, sum] = [0; 2].map(|_| b.operand(storage, &rows * columns));
    let flat = var(i) * columns + var(j);
    let x = b.load(x, flat.clone());
    let z = b.load(z, flat.clone());
    let x = b.binary(BinaryOp::Add, x, z);
    let n = b.expr(DType::F32, Expr::Coord(Dim::from(columns)));
    let total = b.acc(0, DType::F32);
    let mean = b.binary(BinaryOp::Div, total, n);
    let shifted = b.binary(BinaryOp::Sub, x, mean);
    let square = b.binary(BinaryOp::Mul, shifted, shifted);
    let squares = b.acc(1, DType::F32);
    let variance = b.binary(BinaryOp::Div, squares, n);
    let epsilon = b.float(1e-12);
    let biased = b.binary(BinaryOp::Add, variance, epsilon);
    let root = b.unary(UnaryOp::Sqrt, biased);
    let inverse = b.unary(UnaryOp::Reciprocal, root);
    let r = b.binary(BinaryOp::Mul, shifted, inverse);
    let scale = b.load(scale, var(j));
    let shift = b.load(shift, var(j));
    let r = b.binary(BinaryOp::Mul, r, scale);
    let r = b.binary(BinaryOp::Add, r, shift);
    b.store(y, flat.clone(), r);
    b.store(sum, flat, x);
    b.reduce(&[i], &[j], &[(FoldOp::Sum, x), (FoldOp::Sum, square)])
}

/// Softmax over the last axis, or over the first one.
fn softmax(storage: DType, rows: i64, columns: i64, last: bool) -> Group {
    let mut b = Builder::new("softmax");
    let (i, j) = (b.var(rows), b.var(columns));
    let [x, y] = [0; 2].map(|_| b.operand(storage, rows * columns));
    let flat = if last { var(i) * columns + var(j) } else { var(j) * rows + var(i) };
    let x = b.load(x, flat.clone());
    let greatest = b.acc(0, DType::F32);
    let shifted = b.binary(BinaryOp::Sub, x, greatest);
    let exp = b.unary(UnaryOp::Exp, shifted);
    let sum = b.acc(1, DType::F32);
    let r = b.binary(BinaryOp::Div, exp, sum);
    b.store(y, flat, r);
    b.reduce(&[i], &[j], &[(FoldOp::Max, x), (FoldOp::Sum, exp)])
}

/// One reduction over the axes `1, 2` of `[n, h, w, c]` or the last two of `[n, c, h, w]`.
fn pooled(storage: DType, op: FoldOp, shape: [i64; 4], channels_last: bool) -> Group {
    let [n, c, h, w] = shape;
    let mut b = Builder::new("global pool");
    let [vn, vc, vh, vw] = shape.map(|e| b.var(e));
    let x = b.operand(storage, n * c * h * w);
    let compute = aot_kernels::group::compute_type(storage);
    let arg = matches!(op, FoldOp::ArgMax { .. } | FoldOp::ArgMin { .. });
    let y = b.operand(if arg { DType::I64 } else { storage }, n * c);
    let offset = if channels_last {
        ((var(vn) * h + var(vh)) * w + var(vw)) * c + var(vc)
    } else {
        ((var(vn) * c + var(vc)) * h + var(vh)) * w + var(vw)
    };
    let x = b.load(x, offset);
    let r = b.acc(0, if arg { DType::I64 } else { compute });
    b.store(y, var(vn) * c + var(vc), r).per_element = false;
    b.reduce(&[vn, vc], &[vh, vw], &[(op, x)])
}

/// Groups of the family Reduce.
pub(crate) fn reductions() -> Vec<Case> {
    let mut symbols = Symbols::default();
    let batch = symbols.add(Symbol::new("batch", 1, 4096, 1));
    let dynamic = layer_norm(DType::F16, symbols.dim(batch), 384);
    let arg = |last| FoldOp::ArgMax { last };
    let mut cases = vec![
        Case { name: "layer_norm_dynamic", group: dynamic, symbols, atoms: vec![5] },
        fixed("layer_norm_f16", layer_norm(DType::F16, 4096, 384)),
        fixed("layer_norm_f32_odd", layer_norm(DType::F32, 5, 37)),
        fixed("layer_norm_long", layer_norm(DType::F32, 3, 5000)),
        fixed("layer_norm_single", layer_norm(DType::F32, 9, 1)),
        fixed("softmax_classes", softmax(DType::F32, 6, 6625, true)),
        fixed("softmax_small", softmax(DType::F16, 1000, 4, true)),
        fixed("softmax_columns", softmax(DType::F16, 64, 20, false)),
        fixed("softmax_columns_long", softmax(DType::F16, 24, 3000, false)),
        fixed("softmax_columns_odd", softmax(DType::F32, 21, 1030, false)),
        fixed("softmax_long", softmax(DType::F32, 1, 70_000, true)),
    ];
    for (name, op) in [
        ("sum", FoldOp::Sum),
        ("prod", FoldOp::Prod),
        ("max", FoldOp::Max),
        ("min", FoldOp::Min),
        ("arg_max_first", arg(false)),
        ("arg_max_last", arg(true)),
        ("arg_min", FoldOp::ArgMin { last: false }),
    ] {
        for (layout, channels_last) in [("nchw", false), ("nhwc", true)] {
            for (size, shape) in [("odd", [2, 5, 3, 7]), ("even", [3, 16, 12, 20])] {
                let name = format!("{name}_{layout}_{size}").leak();
                cases.push(fixed(name, pooled(DType::F32, op, shape, channels_last)));
            }
        }
    }
    cases.push(fixed("sum_i64", pooled(DType::I64, FoldOp::Sum, [2, 3, 4, 5], false)));
    cases.push(fixed("max_u8", pooled(DType::U8, FoldOp::Max, [2, 32, 4, 5], true)));
    cases.push(fixed("sum_f32_few", pooled(DType::F32, FoldOp::Sum, [1, 64, 64, 64], true)));
    cases.push(fixed("arg_f64_few", pooled(DType::F64, arg(true), [2, 8, 40, 40], true)));
    cases.push(fixed("max_f16_big", pooled(DType::F16, FoldOp::Max, [2, 512, 40, 40], true)));
    cases
}
