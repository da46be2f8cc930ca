//! Windows over spatial axes as serial folds: pooling and depthwise convolution.

use super::LowerError;
use super::builder::Builder;
use aot_ir::dim::{Atom, Cond, VarId};
use aot_ir::op::{BinaryOp, ConvAttrs, PoolAttrs, PoolKind, UnaryOp};
use aot_ir::{DType, Dim, Scalar, ValueId};
use aot_kernels::group::{ExprId, FoldOp};

/// Variables over a window and the operand's spatial coordinates.
struct Window {
    vars: Vec<VarId>,
    kernel: Vec<Dim>,
    at: Vec<Dim>,
}

fn window(
    b: &mut Builder<'_>,
    coords: &[Dim],
    kernel: &[Dim],
    strides: &[i64],
    dilations: &[i64],
    pads: &[(Dim, Dim)],
) -> Window {
    let (vars, offsets) = b.space(kernel);
    let at = (0..kernel.len())
        .map(|i| coords[i].scaled(strides[i]) + offsets[i].scaled(dilations[i]) - &pads[i].0);
    let at = at.collect();
    Window { vars, kernel: offsets, at }
}

pub(super) fn pool(
    b: &mut Builder<'_>,
    attrs: &PoolAttrs,
    x: ValueId,
    coords: &[Dim],
) -> Result<ExprId, LowerError> {
    let graph = b.plan.graph;
    let (shape, dtype) = (&graph[x].shape, graph[x].dtype);
    let w = window(b, &coords[2..], &attrs.kernel, &attrs.strides, &attrs.dilations, &attrs.pads);
    let mut source = coords[..2].to_vec();
    source.extend(w.at.iter().cloned());
    let mut inside = Cond::always();
    for (at, extent) in w.at.iter().zip(&shape[2..]) {
        inside = inside.and(b.within(at, extent));
    }
    match attrs.kind {
        PoolKind::Max => {
            let lowest =
                if dtype.is_float() { Scalar::Float(f64::NEG_INFINITY) } else { lowest(dtype) };
            let body = b.value_where(x, &source, &inside, lowest)?;
            Ok(b.fold(FoldOp::Max, w.vars, body))
        }
        PoolKind::Average { count_include_pad } => {
            let body = b.value_where(x, &source, &inside, Scalar::Int(0))?;
            let sum = b.fold(FoldOp::Sum, w.vars.clone(), body);
            // Elements that count: inside the operand, or inside the padded operand.
            let mut counted = Cond::always();
            if count_include_pad {
                for ((at, extent), (low, high)) in w.at.iter().zip(&shape[2..]).zip(&attrs.pads) {
                    counted = counted.and(b.within(&(at + low), &(extent + low + high)));
                }
            } else {
                counted = inside;
            }
            let sum_type = b.dtype(sum);
            let count = match b.scope().decide_cond(&counted) {
                Some(true) => {
                    let n = attrs.kernel.iter().product();
                    b.coord(&n, sum_type)
                }
                _ => {
                    let one = Dim::atom(Atom::Select(counted, Dim::ONE, Dim::ZERO));
                    let one = b.coord(&one, sum_type);
                    b.fold(FoldOp::Sum, w.vars, one)
                }
            };
            Ok(b.binary(BinaryOp::Div, sum, count))
        }
        PoolKind::Lp(p) => {
            let body = b.value_where(x, &source, &inside, Scalar::Int(0))?;
            let abs = b.unary(UnaryOp::Abs, body);
            let power = b.constant(Scalar::Float(p as f64), dtype);
            let body = if p == 1 { abs } else { b.binary(BinaryOp::Pow, abs, power) };
            let sum = b.fold(FoldOp::Sum, w.vars, body);
            let inverse = b.constant(Scalar::Float(1.0 / p as f64), dtype);
            Ok(if p == 1 { sum } else { b.binary(BinaryOp::Pow, sum, inverse) })
        }
    }
}

fn lowest(dtype: DType) -> Scalar {
    match dtype {
        DType::I8 => Scalar::Int(i8::MIN.into()),
        DType::I16 => Scalar::Int(i16::MIN.into()),
        DType::I32 => Scalar::Int(i32::MIN.into()),
        DType::I64 => Scalar::Int(i64::MIN),
        _ => Scalar::Int(0),
    }
}

/// A convolution with few input channels per group, each output element by itself.
pub(super) fn depthwise(
    b: &mut Builder<'_>,
    attrs: &ConvAttrs,
    x: ValueId,
    weights: ValueId,
    coords: &[Dim],
) -> Result<ExprId, LowerError> {
    let graph = b.plan.graph;
    let shape = &graph[x].shape;
    let kernel = &graph[weights].shape;
    let (channels, mut vars) = {
        let (vars, coords) = b.space(&kernel[1..2]);
        (coords[0].clone(), vars)
    };
    let w = window(b, &coords[2..], &kernel[2..], &attrs.strides, &attrs.dilations, &attrs.pads);
    let mut inside = Cond::always();
    for (at, extent) in w.at.iter().zip(&shape[2..]) {
        inside = inside.and(b.within(at, extent));
    }
    let scope = b.scope();
    let outputs_per_group = scope.floor_div(&kernel[0], &attrs.groups.into());
    let group = scope.floor_div(&coords[1], &outputs_per_group);
    let mut source = vec![coords[0].clone(), group * &kernel[1] + &channels];
    source.extend(w.at.iter().cloned());
    let a = b.value_where(x, &source, &inside, Scalar::Int(0))?;
    let mut place = vec![coords[1].clone(), channels];
    place.extend(w.kernel.iter().cloned());
    let k = b.value_at(weights, &place)?;
    let product = b.binary(BinaryOp::Mul, a, k);
    vars.extend(w.vars);
    Ok(b.fold(FoldOp::Sum, vars, product))
}
