//! NonMaxSuppression: the best box of every class is taken, those that overlap it are dropped, and again.

use super::super::builder::{Element, Most, OpResult, Tensor, element_name, wrong};
use super::super::call::Call;
use super::selection::places;
use super::table::{Entry, onnx};
use aot_ir::op::{BinaryOp, LoopAttrs, ReduceOp};
use aot_ir::{DType, Dim, Graph, GraphError, Op, Scalar, ValueId};

pub(super) const RULES: &[Entry] = &[onnx("NonMaxSuppression", non_max_suppression)];

/// Corners of boxes, each `[batch, 1, boxes]`: the lesser and the greater of both axes.
struct Corners {
    low: [Tensor; 2],
    high: [Tensor; 2],
}

fn corners(c: &mut Call<'_>, boxes: Tensor) -> OpResult<Corners> {
    let mut parts = Vec::new();
    for i in 0..4 {
        let part = c.pick(boxes, 2, Dim::from(i))?;
        parts.push(c.unsqueeze(part, &[1])?);
    }
    let (mut low, mut high) = (Vec::new(), Vec::new());
    for axis in 0..2 {
        let (a, b) = (parts[axis], parts[axis + 2]);
        if c.flag("center_point_box", false) {
            // Centre and extent.
            let half = c.with(BinaryOp::Mul, b, 0.5)?;
            low.push(c.difference(a, half)?);
            high.push(c.sum(a, half)?);
        } else {
            // Any two opposite corners.
            low.push(c.binary(BinaryOp::Min, a, b)?);
            high.push(c.binary(BinaryOp::Max, a, b)?);
        }
    }
    Ok(Corners { low: [low[0], low[1]], high: [high[0], high[1]] })
}

/// The number of boxes to take of every class.
fn most_boxes(c: &mut Call<'_>, boxes: &Dim) -> OpResult<Dim> {
    let name = c.node.input.get(2).cloned().unwrap_or_default();
    match c.input_elements(2, "the number of boxes")?.as_deref() {
        None => Ok(Dim::ZERO),
        Some([Element::Known(most)]) => {
            let scope = c.scope();
            Ok(scope.max(&scope.min(most, boxes), &Dim::ZERO))
        }
        Some([most @ Element::Data(_)]) => {
            let (most, all) = (c.element(most)?, c.element(&Element::Known(boxes.clone()))?);
            let most = c.binary(BinaryOp::Min, most, all)?;
            let most = c.with(BinaryOp::Max, most, 0.0)?;
            c.size(most, &element_name(&name, 0), 0, &Most::Proved(boxes.clone()))
        }
        Some(_) => wrong("the number of boxes has to be a scalar"),
    }
}

fn non_max_suppression(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let (boxes, scores) = (c.x(0)?, c.x(1)?);
    let shape = c.shape(scores).to_vec();
    let ([batches, classes, count], 3) = (shape.as_slice(), c.rank(boxes)) else {
        return wrong("boxes [batch, boxes, 4] and scores [batch, classes, boxes] are needed");
    };
    let most = most_boxes(c, count)?;
    if most.is(0) {
        let none = c.scalar(0.0, DType::I64);
        return Ok(vec![c.expand(none, &[Dim::ZERO, Dim::from(3)])?]);
    }
    let (corners, float) = (corners(c, boxes)?, c.dtype(boxes));
    let threshold = match c.opt(3) {
        Some(t) => c.reshape(t, &[])?,
        None => c.scalar(0.0, float),
    };
    let live = match c.opt(4) {
        Some(t) => {
            let t = c.reshape(t, &[])?;
            c.binary(BinaryOp::Gt, scores, t)?
        }
        None => c.scalar(1.0, DType::Bool),
    };
    let live = c.expand(live, &shape)?;
    let Corners { low, high } = corners;
    let operands = [live, scores, low[0], low[1], high[0], high[1], threshold];
    let (iteration, body) = c.body(&most, &operands, suppress)?;
    let attrs = LoopAttrs {
        body,
        iteration,
        count: most.clone(),
        carried: 1,
        turns: None,
        backward: vec![false, false],
    };
    let results = c.ops(Op::Loop(Box::new(attrs)), &operands)?;
    let (best, found) = (results[1], results[2]);
    // From [taken, batch, class, 1] to the order of batches, classes, and scores within them.
    let all = batches * classes * &most;
    let mut flat = Vec::new();
    for t in [best, found] {
        let t = c.transpose(t, &[1, 2, 0, 3])?;
        flat.push(c.reshape(t, std::slice::from_ref(&all))?);
    }
    let name = c.extent_name(&c.output(0), 0);
    let at = places(c, flat[1], &name)?;
    let chosen = c.gather(flat[0], at, 0)?;
    let per_class = c.element(&Element::Known(most))?;
    let class = c.quotient(at, per_class)?;
    let classes = c.element(&Element::Known(classes.clone()))?;
    let batch = c.quotient(class, classes)?;
    let class = c.binary(BinaryOp::Mod, class, classes)?;
    let mut columns = Vec::new();
    for column in [batch, class, chosen] {
        columns.push(c.unsqueeze(column, &[1])?);
    }
    Ok(vec![c.concat(&columns, 1)?])
}

/// One turn: takes the best box that is left of every class, and drops it and those that overlap it.
///
/// Inputs: what is left `[batch, classes, boxes]`, scores, corners, threshold. Outputs: what is left then, the box
/// taken `[batch, classes, 1]`, and whether there was one.
fn suppress(g: &mut Graph, inputs: &[ValueId]) -> Result<(), GraphError> {
    let &[live, scores, y0, x0, y1, x1, threshold] = inputs else { return Ok(()) };
    let shape = g[live].shape.clone();
    let float = g[scores].dtype;
    let op = |g: &mut Graph, op: Op, operands: &[ValueId]| g.add1(op, operands, "suppress");
    let binary = |op: BinaryOp| Op::Binary(op);
    let fill =
        |value: f64, dtype| Op::Fill { shape: Vec::new(), value: Scalar::Float(value), dtype };
    let lowest = op(g, fill(f64::NEG_INFINITY, float), &[])?;
    let open = op(g, Op::Select, &[live, scores, lowest])?;
    let best = Op::ArgReduce { max: true, axis: 2, keep_dims: true, last: false };
    let best = op(g, best, &[open])?;
    let any = Op::Reduce { op: ReduceOp::Max, axes: vec![2], keep_dims: true };
    let found = op(g, any, &[live])?;
    let zero = op(g, fill(0.0, g[y0].dtype), &[])?;
    let (mut common, mut area, mut own) = (None, None, None);
    for (low, high) in [(y0, y1), (x0, x1)] {
        let mut of_best = Vec::new();
        for corner in [low, high] {
            let all = op(g, Op::Expand { shape: shape.clone() }, &[corner])?;
            of_best.push(op(g, Op::GatherElements { axis: 2 }, &[all, best])?);
        }
        let from = op(g, binary(BinaryOp::Max), &[low, of_best[0]])?;
        let to = op(g, binary(BinaryOp::Min), &[high, of_best[1]])?;
        let overlap = op(g, binary(BinaryOp::Sub), &[to, from])?;
        let overlap = op(g, binary(BinaryOp::Max), &[overlap, zero])?;
        let extent = op(g, binary(BinaryOp::Sub), &[high, low])?;
        let own_extent = op(g, binary(BinaryOp::Sub), &[of_best[1], of_best[0]])?;
        for (product, factor) in
            [(&mut common, overlap), (&mut area, extent), (&mut own, own_extent)]
        {
            *product = Some(match *product {
                None => factor,
                Some(other) => op(g, binary(BinaryOp::Mul), &[other, factor])?,
            });
        }
    }
    let (Some(common), Some(area), Some(own)) = (common, area, own) else { return Ok(()) };
    let both = op(g, binary(BinaryOp::Add), &[area, own])?;
    let union = op(g, binary(BinaryOp::Sub), &[both, common])?;
    let ratio = op(g, binary(BinaryOp::Div), &[common, union])?;
    let overlaps = op(g, binary(BinaryOp::Gt), &[ratio, threshold])?;
    let at = op(g, Op::Iota { shape: shape.clone(), axis: 2, dtype: DType::I64 }, &[])?;
    let taken = op(g, binary(BinaryOp::Eq), &[at, best])?;
    let dropped = op(g, binary(BinaryOp::Or), &[overlaps, taken])?;
    let kept = op(g, Op::Unary(aot_ir::op::UnaryOp::Not), &[dropped])?;
    let left = op(g, binary(BinaryOp::And), &[live, kept])?;
    for (name, value) in [("left", left), ("best", best), ("found", found)] {
        g.outputs.push((name.to_owned(), value));
    }
    Ok(())
}
