//! The anchors of groups: reductions, norms, softmax, contractions, attention.

use super::LowerError;
use super::analysis::operand_type;
use super::builder::Builder;
use super::coords::broadcast;
use super::padding::{Padded, padded_to, row_axis};
use aot_ir::dim::{Atom, Cmp, Cond, VarId};
use aot_ir::op::{AttentionAttrs, BinaryOp, ConvAttrs, ReduceOp, UnaryOp};
use aot_ir::{DType, Dim, Node, Op, Scalar, ValueId};
use aot_kernels::group::{Anchor, Attention, Contraction, Expr, ExprId, FoldOp, MathType, Stage};

/// An anchor, and the node's result in terms of its variables.
pub(super) struct Anchored {
    pub(super) anchor: Anchor,
    pub(super) coords: Vec<Dim>,
    pub(super) result: ExprId,
    /// Whether the result is one per element of the space (else one per row).
    pub(super) per_element: bool,
}

/// `padded` are axes of the result, here and below.
pub(super) fn reduce(
    b: &mut Builder<'_>,
    node: &Node,
    padded: &[Padded],
) -> Result<Anchored, LowerError> {
    let x = node.inputs[0];
    let graph = b.plan.graph;
    let (shape, dtype) = (&graph[x].shape, graph[x].dtype);
    let padded = padded.iter().filter_map(|(axis, to)| Some((row_axis(&node.op, *axis)?, *to)));
    let padded: Vec<Padded> = padded.collect();
    let padded = padded.as_slice();
    match &node.op {
        Op::Reduce { op, axes, keep_dims } => {
            let (rows, over, source) = split_space(b, shape, axes, padded);
            let coords = reduced_coords(&source, axes, *keep_dims);
            let value = b.value_at(x, &source)?;
            let (value, boolean) = match b.dtype(value) {
                DType::Bool => (b.cast(value, DType::I32), true),
                _ => (value, false),
            };
            let stage_type = b.dtype(value);
            let fold = match op {
                ReduceOp::Sum | ReduceOp::Mean => FoldOp::Sum,
                ReduceOp::Prod => FoldOp::Prod,
                ReduceOp::Max => FoldOp::Max,
                ReduceOp::Min => FoldOp::Min,
                op => return Err(LowerError::unsupported(node, op.name())),
            };
            let mut result = b.acc(0, stage_type);
            if *op == ReduceOp::Mean {
                let n = count(b, shape, axes, stage_type);
                result = b.binary(BinaryOp::Div, result, n);
            }
            if boolean {
                result = b.cast(result, DType::Bool);
            }
            let anchor = Anchor::Reduce { rows, over, stages: vec![Stage { op: fold, value }] };
            Ok(Anchored { anchor, coords, result, per_element: false })
        }
        Op::ArgReduce { max, axis, keep_dims, last } => {
            let axes = [*axis];
            let (rows, over, source) = split_space(b, shape, &axes, padded);
            let coords = reduced_coords(&source, &axes, *keep_dims);
            let value = b.value_at(x, &source)?;
            let last = *last;
            let op = if *max { FoldOp::ArgMax { last } } else { FoldOp::ArgMin { last } };
            let result = b.acc(0, DType::I64);
            let anchor = Anchor::Reduce { rows, over, stages: vec![Stage { op, value }] };
            Ok(Anchored { anchor, coords, result, per_element: false })
        }
        Op::Softmax { axis, log } => {
            let (rows, over, source) = split_space(b, shape, &[*axis], padded);
            let value = b.value_at(x, &source)?;
            let compute = b.dtype(value);
            let greatest = b.acc(0, compute);
            let shifted = b.binary(BinaryOp::Sub, value, greatest);
            let exp = b.unary(UnaryOp::Exp, shifted);
            let sum = b.acc(1, compute);
            let result = if *log {
                let log_sum = b.unary(UnaryOp::Log, sum);
                b.binary(BinaryOp::Sub, shifted, log_sum)
            } else {
                b.binary(BinaryOp::Div, exp, sum)
            };
            let stages =
                vec![Stage { op: FoldOp::Max, value }, Stage { op: FoldOp::Sum, value: exp }];
            let anchor = Anchor::Reduce { rows, over, stages };
            Ok(Anchored { anchor, coords: source, result, per_element: true })
        }
        Op::Normalize { axes, epsilon, centered } => {
            let (rows, over, source) = split_space(b, shape, axes, padded);
            let value = b.value_at(x, &source)?;
            let compute = b.dtype(value);
            let n = count(b, shape, axes, compute);
            let mut stages = Vec::new();
            let mut shifted = value;
            if *centered {
                stages.push(Stage { op: FoldOp::Sum, value });
                let sum = b.acc(0, compute);
                let mean = b.binary(BinaryOp::Div, sum, n);
                shifted = b.binary(BinaryOp::Sub, value, mean);
            }
            let square = b.binary(BinaryOp::Mul, shifted, shifted);
            let squares = b.acc(stages.len() as u32, compute);
            stages.push(Stage { op: FoldOp::Sum, value: square });
            let mean_square = b.binary(BinaryOp::Div, squares, n);
            let epsilon = b.constant(*epsilon, dtype);
            let biased = b.binary(BinaryOp::Add, mean_square, epsilon);
            let root = b.unary(UnaryOp::Sqrt, biased);
            let inverse = b.unary(UnaryOp::Reciprocal, root);
            let result = b.binary(BinaryOp::Mul, shifted, inverse);
            let anchor = Anchor::Reduce { rows, over, stages };
            Ok(Anchored { anchor, coords: source, result, per_element: true })
        }
        op => Err(LowerError::internal(&node.name, &format!("{} is no reduction", op.name()))),
    }
}

/// Variables of rows, variables of their elements, and coordinates of the operand.
fn split_space(
    b: &mut Builder<'_>,
    shape: &[Dim],
    axes: &[usize],
    padded: &[Padded],
) -> (Vec<VarId>, Vec<VarId>, Vec<Dim>) {
    let (mut rows, mut over, mut coords) = (Vec::new(), Vec::new(), Vec::new());
    for (axis, extent) in shape.iter().enumerate() {
        let list = if axes.contains(&axis) { &mut over } else { &mut rows };
        coords.push(b.coordinate(extent, padded_to(padded, axis), list));
    }
    (rows, over, coords)
}

fn reduced_coords(source: &[Dim], axes: &[usize], keep_dims: bool) -> Vec<Dim> {
    let all = source.iter().enumerate();
    all.filter_map(|(axis, c)| match (axes.contains(&axis), keep_dims) {
        (false, _) => Some(c.clone()),
        (true, true) => Some(Dim::ZERO),
        (true, false) => None,
    })
    .collect()
}

fn count(b: &mut Builder<'_>, shape: &[Dim], axes: &[usize], dtype: DType) -> ExprId {
    let n: Dim = axes.iter().map(|a| &shape[*a]).product();
    b.coord(&n, dtype)
}

/// Evaluates matrix operands, preferring copies in the type that matrix units take.
fn operand(
    b: &mut Builder<'_>,
    math: MathType,
    value: ValueId,
    at: impl FnOnce(&mut Builder<'_>) -> Result<ExprId, LowerError>,
) -> Result<ExprId, LowerError> {
    debug_assert!(value.index() < b.plan.graph.values().len());
    b.prefer(Some(operand_type(math)));
    let out = at(b);
    b.prefer(None);
    out
}

fn accumulator(math: MathType) -> DType {
    match math {
        MathType::F64 => DType::F64,
        MathType::I32 => DType::I32,
        _ => DType::F32,
    }
}

pub(super) fn matmul(
    b: &mut Builder<'_>,
    node: &Node,
    math: MathType,
    padded: &[Padded],
) -> Result<Anchored, LowerError> {
    let graph = b.plan.graph;
    let (left, right) = (node.inputs[0], node.inputs[1]);
    let (ls, rs) = (&graph[left].shape, &graph[right].shape);
    let out = &graph[node.outputs[0]].shape;
    let (lr, rr, rank) = (ls.len(), rs.len(), out.len());
    let leading = rank - 2;
    let reads = |shape: &[Dim], axis: usize| {
        let skip = leading - (shape.len() - 2);
        axis >= skip && !shape[axis - skip].is(1)
    };
    let (mut batch, mut m, mut n) = (Vec::new(), Vec::new(), Vec::new());
    let mut coords = Vec::with_capacity(rank);
    for (axis, extent) in out[..leading].iter().enumerate() {
        if extent.is(1) {
            coords.push(Dim::ZERO);
            continue;
        }
        let var = b.var(extent);
        coords.push(Dim::var(var));
        match (reads(ls, axis), reads(rs, axis)) {
            (true, false) => m.push(var),
            (false, true) => n.push(var),
            _ => batch.push(var),
        }
    }
    coords.push(b.coordinate(&out[rank - 2], None, &mut m));
    coords.push(b.coordinate(&out[rank - 1], padded_to(padded, rank - 1), &mut n));
    let mut k = Vec::new();
    let at_k = b.coordinate(&ls[lr - 1], summed_to(b, left, lr - 1, math), &mut k);
    let mut at_left = broadcast(&coords[..leading], &ls[..lr - 2]);
    at_left.extend([coords[rank - 2].clone(), at_k.clone()]);
    let mut at_right = broadcast(&coords[..leading], &rs[..rr - 2]);
    at_right.extend([at_k.clone(), coords[rank - 1].clone()]);
    let a = operand(b, math, left, |b| b.value_at(left, &at_left))?;
    let right_at = operand(b, math, right, |b| b.value_at(right, &at_right))?;
    let (a, right_at) = (b.zeroed_past(a, &at_k), b.zeroed_past(right_at, &at_k));
    let (a, right_at) = (to_math(b, a, math), to_math(b, right_at, math));
    let result = b.acc(0, accumulator(math));
    let anchor = Anchor::Contraction(Contraction { batch, m, n, k, a, b: right_at, math });
    Ok(Anchored { anchor, coords, result, per_element: true })
}

/// How far a product goes along the axis of an operand that it sums over, if that is padded in memory.
fn summed_to(b: &Builder<'_>, value: ValueId, axis: usize, math: MathType) -> Option<i64> {
    b.plan.padding_of(value, axis, operand_type(math))
}

/// Integer products are taken in 32 bits.
fn to_math(b: &mut Builder<'_>, x: ExprId, math: MathType) -> ExprId {
    match math {
        MathType::I32 => b.cast(x, DType::I32),
        _ => x,
    }
}

/// How a spatial axis of a convolution relates operand, kernel and result.
struct Axis {
    at: Dim,
    inside: Cond,
}

pub(super) fn conv(
    b: &mut Builder<'_>,
    node: &Node,
    math: MathType,
    padded: &[Padded],
) -> Result<Anchored, LowerError> {
    let (attrs, transposed) = match &node.op {
        Op::Conv(attrs) => (attrs, false),
        Op::ConvTranspose { conv, .. } => (conv, true),
        op => {
            return Err(LowerError::internal(&node.name, &format!("{} no convolution", op.name())));
        }
    };
    let graph = b.plan.graph;
    let (x, w) = (node.inputs[0], node.inputs[1]);
    let (xs, ws) = (&graph[x].shape, &graph[w].shape);
    let out = &graph[node.outputs[0]].shape;
    let groups = Dim::from(attrs.groups);
    let scope = b.scope();
    let (in_per_group, out_per_group) =
        (scope.floor_div(&xs[1], &groups), scope.floor_div(&out[1], &groups));
    let (mut batch, mut m, mut n, mut k) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    // Padding follows all groups.
    let whole = |to: Option<i64>| to.filter(|_| groups.is(1));
    let group = b.coordinate(&groups, None, &mut batch);
    let image = b.coordinate(&out[0], None, &mut m);
    let places: Vec<Dim> = out[2..].iter().map(|d| b.coordinate(d, None, &mut m)).collect();
    let channel = b.coordinate(&out_per_group, whole(padded_to(padded, 1)), &mut n);
    let taps: Vec<Dim> = ws[2..].iter().map(|d| b.coordinate(d, None, &mut k)).collect();
    let in_channel = b.coordinate(&in_per_group, whole(summed_to(b, x, 1, math)), &mut k);
    let mut at_x = vec![image.clone(), &group * &in_per_group + &in_channel];
    let mut inside = Cond::always();
    for (i, (place, tap)) in places.iter().zip(&taps).enumerate() {
        let axis = spatial(b, attrs, i, place, tap, &xs[2 + i], transposed);
        at_x.push(axis.at);
        inside = inside.and(axis.inside);
    }
    let at_w = if transposed {
        [&group * &in_per_group + &in_channel, channel.clone()]
    } else {
        [&group * &out_per_group + &channel, in_channel.clone()]
    };
    let at_w: Vec<Dim> = at_w.into_iter().chain(taps).collect();
    let a = operand(b, math, x, |b| b.value_where(x, &at_x, &inside, Scalar::Int(0)))?;
    let wv = operand(b, math, w, |b| b.value_at(w, &at_w))?;
    let (a, wv) = (b.zeroed_past(a, &in_channel), b.zeroed_past(wv, &in_channel));
    let (a, wv) = (to_math(b, a, math), to_math(b, wv, math));
    let mut coords = vec![image, group * &out_per_group + channel];
    coords.extend(places);
    let result = b.acc(0, accumulator(math));
    let anchor = Anchor::Contraction(Contraction { batch, m, n, k, a, b: wv, math });
    Ok(Anchored { anchor, coords, result, per_element: true })
}

fn spatial(
    b: &Builder<'_>,
    attrs: &ConvAttrs,
    i: usize,
    place: &Dim,
    tap: &Dim,
    extent: &Dim,
    transposed: bool,
) -> Axis {
    let (stride, dilation) = (attrs.strides[i], attrs.dilations[i]);
    if !transposed {
        let at = place.scaled(stride) + tap.scaled(dilation) - &attrs.pads[i].0;
        return Axis { inside: b.within(&at, extent), at };
    }
    // place = at * stride + tap * dilation - pad, solved for `at` where it is whole.
    let scaled = place + &attrs.pads[i].0 - tap.scaled(dilation);
    if stride == 1 {
        return Axis { inside: b.within(&scaled, extent), at: scaled };
    }
    let scope = b.scope();
    let stride = Dim::from(stride);
    let whole = scope.cond(Cmp::Eq, &scope.modulo(&scaled, &stride), &Dim::ZERO);
    let at = scope.floor_div(&scaled, &stride);
    Axis { inside: whole.and(b.within(&at, extent)), at }
}

pub(super) fn attention(
    b: &mut Builder<'_>,
    node: &Node,
    attrs: &AttentionAttrs,
    math: MathType,
) -> Result<Anchored, LowerError> {
    let graph = b.plan.graph;
    let [q, k, v] = [node.inputs[0], node.inputs[1], node.inputs[2]];
    let shape = |v: ValueId| graph[v].shape.as_slice();
    let out = &graph[node.outputs[0]].shape;
    let rank = out.len();
    let (mut batch, mut coords) = (Vec::new(), Vec::new());
    for extent in &out[..rank - 2] {
        if extent.is(1) {
            coords.push(Dim::ZERO);
            continue;
        }
        let var = b.var(extent);
        batch.push(var);
        coords.push(Dim::var(var));
    }
    let columns = &shape(k)[shape(k).len() - 2];
    let row = b.var(&out[rank - 2]);
    let col = b.var(columns);
    let qk = b.var(&shape(q)[shape(q).len() - 1]);
    let width = b.var(&out[rank - 1]);
    let place = |b: &mut Builder<'_>, value: ValueId, last: [VarId; 2]| {
        let dims = shape(value);
        let mut at = broadcast(&coords, &dims[..dims.len() - 2]);
        at.extend(last.map(Dim::var));
        operand(b, math, value, |b| b.value_at(value, &at))
    };
    let q_at = place(b, q, [row, qk])?;
    let k_at = place(b, k, [col, qk])?;
    let v_at = place(b, v, [col, width])?;
    let dot = b.acc(0, DType::F32);
    let scale = b.float(attrs.scale.as_f64(), DType::F32);
    let mut score = b.binary(BinaryOp::Mul, dot, scale);
    let excluded = b.float(f64::NEG_INFINITY, DType::F32);
    if attrs.has_mask {
        let mask = node.inputs[3];
        let mut at = coords.clone();
        at.extend([Dim::var(row), Dim::var(col)]);
        let at = broadcast(&at, shape(mask));
        let value = b.value_at(mask, &at)?;
        score = if graph[mask].dtype == DType::Bool {
            b.select(value, score, excluded)
        } else {
            let value = b.cast(value, DType::F32);
            b.binary(BinaryOp::Add, score, value)
        };
    }
    if attrs.causal {
        let last = Dim::var(row) + columns - &out[rank - 2];
        let seen = Cond::Cmp(Cmp::Le, Dim::var(col), last);
        let seen = Dim::atom(Atom::Select(seen, Dim::ONE, Dim::ZERO));
        let seen = b.push(Expr::Coord(seen), DType::I64);
        let zero = b.push(Expr::Const(Scalar::Int(0)), DType::I64);
        let seen = b.binary(BinaryOp::Ne, seen, zero);
        score = b.select(seen, score, excluded);
    }
    coords.extend([Dim::var(row), Dim::var(width)]);
    let result = b.acc(1, DType::F32);
    let anchor = Anchor::Attention(Attention {
        batch,
        row,
        col,
        qk,
        width,
        q: q_at,
        k: k_at,
        v: v_at,
        score,
        causal: attrs.causal,
        masked_row_is_zero: attrs.masked_row_is_zero,
        math,
    });
    Ok(Anchored { anchor, coords, result, per_element: true })
}
