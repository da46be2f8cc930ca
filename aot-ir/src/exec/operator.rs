//! One operator on tensors.

use super::error::ExecError;
use super::executor::Executor;
use super::sizes::Sizes;
use super::tensor::{Storage, Tensor, storage};
use super::{loops, ops};
use crate::{Def, Dim, NodeId, Op, Symbols, Value};

/// The results of an operator on these operands.
///
/// Size expressions in the attributes and in the bodies of loops are evaluated with the symbols' atoms, by id.
///
/// # Errors
/// When operands do not fit the operator, or their values do not: an index out of range, say. When a symbol has no atom.
pub fn evaluate(op: &Op, operands: Vec<Tensor>, atoms: &[i64]) -> Result<Vec<Tensor>, ExecError> {
    run(op, operands, atoms, false)
}

/// As [`evaluate`]; with floats held in `f64` when `wide`.
pub(super) fn run(
    op: &Op,
    operands: Vec<Tensor>,
    atoms: &[i64],
    wide: bool,
) -> Result<Vec<Tensor>, ExecError> {
    if let Op::Loop(attrs) = op {
        if !op.is_sized_by(atoms) {
            return Err(ExecError::value("a loop mentions a size that is not given"));
        }
        let body = Executor::with_mode(&attrs.body, wide)?;
        let mut sizes = Sizes::of_atoms(atoms, attrs.body.symbols.len());
        return loops::run(attrs, &body, operands, &mut sizes);
    }
    let op = op.map_dims(&mut |dim| dim.eval(atoms).map(Dim::from))?;
    let values: Vec<Value> = operands
        .iter()
        .map(|x| Value {
            name: String::new(),
            dtype: x.dtype(),
            shape: x.shape().iter().map(|&d| Dim::from(d as i64)).collect(),
            def: Def::Node(NodeId(0), 0),
        })
        .collect();
    let values: Vec<&Value> = values.iter().collect();
    let inferred = op.infer(&values, &Symbols::default())?;
    let mut results = Vec::with_capacity(1);
    let [(dtype, shape)] = inferred.outputs.as_slice() else {
        return Err(ExecError::value(format!("{} has several results", op.name())));
    };
    let shape = sizes(shape)?;
    let result = apply(&op, operands, &shape, wide)?;
    debug_assert_eq!((result.dtype(), result.shape()), (*dtype, shape.as_slice()));
    results.push(if wide && storage(*dtype, true) == Storage::F64 {
        result.widened()
    } else {
        result
    });
    Ok(results)
}

fn sizes(dims: &[Dim]) -> Result<Vec<usize>, ExecError> {
    ops_constants(dims)?
        .into_iter()
        .map(|c| usize::try_from(c).map_err(|_| ExecError::value(format!("an extent is {c}"))))
        .collect()
}

fn ops_constants(dims: &[Dim]) -> Result<Vec<i64>, ExecError> {
    let all = dims
        .iter()
        .map(|dim| dim.as_const().ok_or_else(|| ExecError::value(format!("{dim} is no constant"))));
    all.collect()
}

fn take<const N: usize>(operands: Vec<Tensor>) -> Result<[Tensor; N], ExecError> {
    let found = operands.len();
    operands
        .try_into()
        .map_err(|_| ExecError::value(format!("expected {N} operands, found {found}")))
}

/// Runs a kernel; shapes, types and attributes were checked by the operator's rule.
fn apply(op: &Op, operands: Vec<Tensor>, shape: &[usize], wide: bool) -> Result<Tensor, ExecError> {
    match op {
        Op::Unary(op) => {
            let [x] = take(operands)?;
            ops::unary(*op, x)
        }
        Op::Binary(op) => {
            let [a, b] = take(operands)?;
            ops::binary(*op, a, b, shape)
        }
        Op::Select => {
            let [condition, a, b] = take(operands)?;
            ops::select(&condition, &a, &b, shape)
        }
        Op::Cast(to) => {
            let [x] = take(operands)?;
            Ok(ops::cast::cast(&x, *to, wide))
        }
        Op::Iota { axis, dtype, .. } => ops::iota(shape, *axis, *dtype, wide),
        Op::Dims { dims, .. } => ops::dims(dims, &[], shape),
        Op::Fill { value, dtype, .. } => Tensor::filled(*dtype, shape.to_vec(), *value),
        Op::Reshape { .. } => {
            let [x] = take(operands)?;
            x.with_shape(shape.to_vec())
        }
        Op::Transpose { perm } => {
            let [x] = take(operands)?;
            Ok(ops::transpose(&x, perm))
        }
        Op::Slice { starts, steps, .. } => {
            let [x] = take(operands)?;
            ops::slice(&x, &ops_constants(starts)?, shape, steps)
        }
        Op::Pad { low, mode, .. } => {
            let [x] = take(operands)?;
            ops::pad(&x, &ops_constants(low)?, *mode, shape)
        }
        Op::Expand { .. } => {
            let [x] = take(operands)?;
            ops::expand(&x, shape)
        }
        Op::Concat { axis } => ops::concat(&operands, *axis, shape),
        Op::Gather { axis } => {
            let [data, indices] = take(operands)?;
            ops::gather(&data, &indices, *axis, shape)
        }
        Op::GatherElements { axis } => {
            let [data, indices] = take(operands)?;
            ops::gather_elements(&data, &indices, *axis)
        }
        Op::GatherNd { batch_dims } => {
            let [data, indices] = take(operands)?;
            ops::gather_nd(&data, &indices, *batch_dims, shape)
        }
        Op::ScatterElements { axis, reduction } => {
            let [data, indices, updates] = take(operands)?;
            ops::scatter_elements(data, &indices, &updates, *axis, *reduction)
        }
        Op::ScatterNd { reduction } => {
            let [data, indices, updates] = take(operands)?;
            ops::scatter_nd(data, &indices, &updates, *reduction)
        }
        Op::Reduce { op, axes, .. } => {
            let [x] = take(operands)?;
            ops::reduce(*op, x, axes, shape)
        }
        Op::ArgReduce { max, axis, last, .. } => {
            let [x] = take(operands)?;
            ops::arg_reduce(x, *axis, *max, *last, shape)
        }
        Op::Scan { op, axis, exclusive, reverse } => {
            let [x] = take(operands)?;
            ops::scan(*op, x, *axis, *exclusive, *reverse)
        }
        Op::MatMul => {
            let [a, b] = take(operands)?;
            ops::matmul(&a, &b, shape)
        }
        Op::Conv(attrs) => {
            let [x, w] = take(operands)?;
            ops::conv(&x, &w, attrs, shape)
        }
        Op::ConvTranspose { conv, .. } => {
            let [x, w] = take(operands)?;
            ops::conv_transpose(&x, &w, conv, shape)
        }
        Op::Attention(attrs) => ops::attention(&operands, attrs, shape),
        Op::Softmax { axis, log } => {
            let [x] = take(operands)?;
            ops::softmax(x, *axis, *log)
        }
        Op::Normalize { axes, epsilon, centered } => {
            let [x] = take(operands)?;
            ops::normalize(x, axes, epsilon.as_f64(), *centered)
        }
        Op::Pool(attrs) => {
            let [x] = take(operands)?;
            ops::pool(&x, attrs, shape)
        }
        Op::Resize(attrs) => {
            let [x] = take(operands)?;
            ops::resize(&x, attrs, shape)
        }
        Op::Host(op) => {
            let files: Vec<Vec<u8>> = operands.iter().map(Tensor::to_bytes).collect();
            let files: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
            Tensor::from_bytes(op.result_type(), shape.to_vec(), &op.evaluate(&files, &[])?)
        }
        Op::Loop(_) => Err(ExecError::value("a loop has several results")),
    }
}
