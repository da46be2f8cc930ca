//! What recognition of patterns shares.

use aot_ir::dim::Cmp;
use aot_ir::op::{BinaryOp, ReduceOp, UnaryOp};
use aot_ir::{DType, Dim, Graph, Node, Op, Scalar, Scope, ValueId};

/// The node that makes a value.
pub(super) fn node(g: &Graph, value: ValueId) -> Option<&Node> {
    g.producer(value).map(|id| &g[id])
}

/// The operand of a unary operator that makes the value.
pub(super) fn unary(g: &Graph, value: ValueId, op: UnaryOp) -> Option<ValueId> {
    let node = node(g, value)?;
    (node.op == Op::Unary(op)).then(|| node.inputs[0])
}

/// The operands of a binary operator that makes the value.
pub(super) fn binary(g: &Graph, value: ValueId, op: BinaryOp) -> Option<(ValueId, ValueId)> {
    let node = node(g, value)?;
    (node.op == Op::Binary(op)).then(|| (node.inputs[0], node.inputs[1]))
}

/// The number that every element of the value is, as far as the graph's structure says: a constant of
/// one element, or a fill. (Other constants may change with the weights.)
pub(super) fn scalar(g: &Graph, value: ValueId) -> Option<Scalar> {
    if let Some(constant) = g.constant_of(value) {
        let elements = constant.shape.iter().product::<usize>();
        return (elements == 1).then(|| first(constant.dtype, &constant.bytes)).flatten();
    }
    match node(g, value)? {
        Node { op: Op::Fill { value, .. }, .. } => Some(*value),
        Node { op: Op::Expand { .. } | Op::Reshape { .. }, inputs, .. } => scalar(g, inputs[0]),
        _ => None,
    }
}

fn first(dtype: DType, bytes: &[u8]) -> Option<Scalar> {
    let tensor = aot_ir::exec::Tensor::from_bytes(dtype, vec![1], bytes).ok()?;
    Some(match dtype {
        DType::Bool => Scalar::Bool(tensor.to_i64()[0] != 0),
        t if t.is_float() => Scalar::Float(tensor.to_f64()[0]),
        _ => Scalar::Int(tensor.to_i64()[0]),
    })
}

/// As [`scalar`], for floats.
pub(super) fn float(g: &Graph, value: ValueId) -> Option<f64> {
    match scalar(g, value)? {
        Scalar::Float(f) => Some(f),
        _ => None,
    }
}

/// Whether a value is this number everywhere.
pub(super) fn is(g: &Graph, value: ValueId, number: f64) -> bool {
    scalar(g, value).is_some_and(|s| s.as_f64() == number)
}

/// The operand and the scalar of a commutative operator with a scalar on either side.
pub(super) fn with_scalar(g: &Graph, value: ValueId, op: BinaryOp) -> Option<(ValueId, f64)> {
    let (a, b) = binary(g, value, op)?;
    match (float(g, a), float(g, b)) {
        (_, Some(c)) => Some((a, c)),
        (Some(c), None) => Some((b, c)),
        (None, None) => None,
    }
}

/// The operand and the axes, if the value is a reduction of it that keeps the rank (by itself, or
/// through a reshape that puts extents of 1 back).
pub(super) fn reduction(g: &Graph, value: ValueId, op: ReduceOp) -> Option<(ValueId, Vec<usize>)> {
    let producer = node(g, value)?;
    match &producer.op {
        Op::Reduce { op: found, axes, keep_dims: true } if *found == op => {
            Some((producer.inputs[0], axes.clone()))
        }
        Op::Reshape { shape } => {
            let inner = node(g, producer.inputs[0])?;
            let Op::Reduce { op: found, axes, .. } = &inner.op else { return None };
            let kept: Vec<Dim> = g[inner.inputs[0]]
                .shape
                .iter()
                .enumerate()
                .map(|(i, d)| if axes.contains(&i) { Dim::ONE } else { d.clone() })
                .collect();
            (*found == op && kept == *shape).then(|| (inner.inputs[0], axes.clone()))
        }
        _ => None,
    }
}

/// Whether two shapes are proved equal.
pub(super) fn same_shape(g: &Graph, a: &[Dim], b: &[Dim]) -> bool {
    let scope = Scope::new(&g.symbols);
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b || scope.proves_eq(a, b))
}

/// Whether two values are proved to have one shape.
pub(super) fn same_extents(g: &Graph, a: ValueId, b: ValueId) -> bool {
    same_shape(g, &g[a].shape, &g[b].shape)
}

/// The shape that pointwise operands give, if that is proved.
pub(super) fn broadcast(g: &Graph, a: &[Dim], b: &[Dim]) -> Option<Vec<Dim>> {
    let scope = Scope::new(&g.symbols);
    let rank = a.len().max(b.len());
    let at = |s: &[Dim], axis: usize| {
        (axis + s.len()).checked_sub(rank).map_or(Dim::ONE, |i| s[i].clone())
    };
    (0..rank)
        .map(|axis| {
            let (x, y) = (at(a, axis), at(b, axis));
            if x.is(1) || scope.decide(Cmp::Eq, &x, &y) == Some(true) {
                Some(y)
            } else if y.is(1) {
                Some(x)
            } else {
                None
            }
        })
        .collect()
}

/// The permutation that swaps the last two of `rank` axes.
pub(super) fn swap_last_two(rank: usize) -> Vec<usize> {
    let mut perm: Vec<usize> = (0..rank).collect();
    if rank >= 2 {
        perm.swap(rank - 1, rank - 2);
    }
    perm
}

/// Adds a float constant of one element with rank 0.
pub(super) fn add_float(
    g: &mut Graph,
    dtype: DType,
    value: f64,
    name: &str,
) -> Result<ValueId, aot_ir::GraphError> {
    let op = Op::Fill { shape: Vec::new(), value: Scalar::Float(value), dtype };
    g.add1(op, &[], name)
}
