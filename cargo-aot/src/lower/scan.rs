//! The anchor of scans.

use super::LowerError;
use super::anchors::Anchored;
use super::builder::Builder;
use aot_ir::op::{BinaryOp, ScanOp};
use aot_ir::{DType, Dim, Node, Op, Scalar};
use aot_kernels::group::{Anchor, FoldOp, compute_type};

pub(super) fn scan(b: &mut Builder<'_>, node: &Node) -> Result<Anchored, LowerError> {
    let Op::Scan { op, axis, exclusive, reverse } = node.op else {
        return Err(LowerError::internal(&node.name, &format!("{} is no scan", node.op.name())));
    };
    let x = node.inputs[0];
    let graph = b.plan.graph;
    let (shape, dtype) = (&graph[x].shape, graph[x].dtype);
    let along = b.var(&shape[axis]);
    let outer: Vec<Dim> = shape
        .iter()
        .enumerate()
        .map(|(i, extent)| if i == axis { Dim::ONE } else { extent.clone() })
        .collect();
    let (rows, mut coords) = b.space(&outer);
    coords[axis] = Dim::var(along);
    let value = b.value_at(x, &coords)?;
    let fold = match op {
        ScanOp::Sum => FoldOp::Sum,
        ScanOp::Prod => FoldOp::Prod,
        ScanOp::Max => FoldOp::Max,
        ScanOp::Min => FoldOp::Min,
        op => return Err(LowerError::unsupported(node, op.name())),
    };
    let compute = b.dtype(value);
    let mut result = b.acc(0, compute);
    if dtype.is_int() && compute_type(dtype) != dtype {
        // Before the first element stands the extreme of the type that values have, not of the one that
        // they are combined in; sums and products wrap.
        result = match op {
            ScanOp::Max => {
                let lowest = b.constant(Scalar::Int(narrow_limits(dtype).0), dtype);
                b.binary(BinaryOp::Max, result, lowest)
            }
            ScanOp::Min => {
                let highest = b.constant(Scalar::Int(narrow_limits(dtype).1), dtype);
                b.binary(BinaryOp::Min, result, highest)
            }
            _ => b.cast(result, dtype),
        };
    }
    let anchor = Anchor::Scan { rows, along, op: fold, value, exclusive, reverse };
    Ok(Anchored { anchor, coords, result, per_element: true })
}

/// The lowest and highest value of an integer type below 32 bits.
fn narrow_limits(dtype: DType) -> (i64, i64) {
    let bits = dtype.bits();
    match dtype.is_signed_int() {
        true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        false => (0, (1 << bits) - 1),
    }
}
