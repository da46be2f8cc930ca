//! What leaves loops, and what stays.

use super::super::testing::{count, equal, input, weights};
use super::super::{Options, run};
use super::*;
use aot_ir::dim::{Cmp, Cond};
use aot_ir::op::{BinaryOp, ReduceOp, UnaryOp};
use aot_ir::{DType, Scalar, Symbol};

/// A loop over the rows of `x [n, 3]`, with a body that is given.
fn repeated(
    start: usize,
    body: impl FnOnce(&mut Graph, &Dim, &[ValueId]) -> Vec<ValueId>,
) -> Graph {
    let mut g = Graph::new("test");
    let n = g.symbols.add(Symbol::new("n", 1, 9, 1));
    let n = g.symbols.dim(n);
    let x = g.add_input("x", DType::F32, vec![n.clone(), 3.into()]);
    let w = weights(&mut g, &[3, 3]);
    let mut operands: Vec<ValueId> = (0..start).map(|_| input(&mut g, &[1, 3])).collect();
    operands.extend([x, w]);
    let iteration = g.symbols.add(Symbol::counter("i", n.clone(), 9));
    let mut inner = Graph::new("body");
    inner.symbols = g.symbols.clone();
    let inputs: Vec<ValueId> =
        operands.iter().map(|v| inner.add_input("v", DType::F32, g[*v].shape.clone())).collect();
    let outputs = body(&mut inner, &g.symbols.dim(iteration), &inputs);
    g.symbols = inner.symbols.clone();
    let collected = outputs.len() - start;
    inner.outputs = outputs.into_iter().map(|v| ("y".to_owned(), v)).collect();
    let attrs = LoopAttrs {
        body: inner,
        iteration,
        count: n,
        carried: start,
        turns: None,
        backward: vec![false; collected],
    };
    let results = g.add(Op::Loop(Box::new(attrs)), &operands, "loop").unwrap();
    g.outputs = results.into_iter().map(|v| ("y".to_owned(), v)).collect();
    g
}

fn row(g: &mut Graph, x: ValueId, at: &Dim) -> ValueId {
    let (starts, sizes) = (vec![at.clone(), Dim::ZERO], vec![Dim::ONE, 3.into()]);
    g.add1(Op::Slice { starts, sizes, steps: vec![1; 2] }, &[x], "row").unwrap()
}

fn only_loop(g: &Graph) -> &LoopAttrs {
    let found = g.nodes().find_map(|(_, node)| match &node.op {
        Op::Loop(attrs) => Some(&**attrs),
        _ => None,
    });
    found.expect("a loop")
}

fn passed(g: &Graph) -> Graph {
    assert_eq!(g.check(), Ok(()));
    let after = run(g, &Options::default()).unwrap();
    assert_eq!(after.check(), Ok(()));
    for n in [1, 4] {
        equal(g, &after, &[n, 0]);
    }
    after
}

#[test]
fn what_does_not_vary_is_done_once() {
    let g = repeated(1, |g, at, v| {
        let shares = g.add1(Op::MatMul, &[v[1], v[2]], "shares").unwrap();
        let turned = g.add1(Op::Transpose { perm: vec![1, 0] }, &[v[2]], "turned").unwrap();
        let own = g.add1(Op::MatMul, &[v[0], turned], "own").unwrap();
        let share = row(g, shares, at);
        let next = g.add1(Op::Binary(BinaryOp::Add), &[own, share], "next").unwrap();
        vec![next, next, shares]
    });
    let after = passed(&g);
    let attrs = only_loop(&after);
    assert_eq!(count(&after, |op| *op == Op::MatMul), 1);
    assert_eq!(count(&attrs.body, |op| *op == Op::MatMul), 1);
    // The turned weights are a constant; what is collected and does not vary is spread.
    assert_eq!(count(&attrs.body, |op| matches!(op, Op::Transpose { .. })), 0);
    assert_eq!((attrs.stacked(), attrs.body.inputs.len()), (1, 3));
}

#[test]
fn movement_is_done_within() {
    let mut g = repeated(1, |g, at, v| {
        let share = row(g, v[1], at);
        let next = g.add1(Op::Binary(BinaryOp::Add), &[v[0], share], "next").unwrap();
        vec![next]
    });
    // The operand becomes a part of something larger.
    let (_, node) = g.nodes().next().unwrap();
    let (op, inputs) = (node.op.clone(), node.inputs.clone());
    let n = g[inputs[1]].shape[0].clone();
    let sum = g.add1(Op::Binary(BinaryOp::Add), &[inputs[1], inputs[1]], "sum").unwrap();
    let sum = g.add1(Op::Unary(UnaryOp::Exp), &[sum], "exp").unwrap();
    let flip =
        Op::Slice { starts: vec![&n - 1, Dim::ZERO], sizes: vec![n, 3.into()], steps: vec![-1, 1] };
    let part = g.add1(flip, &[sum], "part").unwrap();
    let results = g.add(op, &[inputs[0], part, inputs[2]], "again").unwrap();
    g.outputs = vec![("y".to_owned(), results[0])];
    let after = passed(&g);
    assert_eq!(count(&after, |op| matches!(op, Op::Slice { .. })), 0);
    assert!(count(&only_loop(&after).body, |op| matches!(op, Op::Slice { .. })) > 0);
}

#[test]
fn what_nothing_needs_goes() {
    let mut g = repeated(3, |g, at, v| {
        let share = row(g, v[3], at);
        // The second state stays as it is; the third one feeds itself alone.
        let next = g.add1(Op::Binary(BinaryOp::Mul), &[v[0], v[1]], "next").unwrap();
        let next = g.add1(Op::Binary(BinaryOp::Add), &[next, share], "next").unwrap();
        let idle = g.add1(Op::MatMul, &[v[2], v[4]], "idle").unwrap();
        vec![next, v[1], idle, next, idle]
    });
    g.outputs.truncate(2);
    let after = passed(&g);
    let attrs = only_loop(&after);
    assert_eq!((attrs.carried, attrs.stacked(), attrs.body.inputs.len()), (1, 0, 3));
    assert_eq!(count(&attrs.body, |op| *op == Op::MatMul), 0);
    // The state that stays is its operand.
    assert_eq!(after.outputs[1].1, after.inputs[2]);
}

/// Nothing of a branch is done before it is known that it is taken, but for what is made of weights.
#[test]
fn branches_keep_their_work() {
    let mut g = Graph::new("test");
    let n = g.symbols.add(Symbol::new("n", 1, 9, 1));
    let n = g.symbols.dim(n);
    let x = g.add_input("x", DType::F32, vec![n.clone(), 3.into()]);
    let w = weights(&mut g, &[3, 3]);
    let long = Cond::Cmp(Cmp::Lt, 3.into(), n.clone());
    let taken = Scope::new(&g.symbols).select(&long, &Dim::ONE, &Dim::ZERO);
    let iteration = g.symbols.add(Symbol::counter("i", Dim::ONE, 1));
    let mut body = Graph::new("body");
    body.symbols = g.symbols.clone();
    let inputs = [x, w].map(|v| body.add_input("v", DType::F32, g[v].shape.clone()));
    let square = body.add1(Op::MatMul, &[inputs[1], inputs[1]], "square").unwrap();
    let y = body.add1(Op::MatMul, &[inputs[0], square], "y").unwrap();
    body.outputs = vec![("y".to_owned(), y)];
    let attrs =
        LoopAttrs { body, iteration, count: taken, carried: 0, turns: None, backward: vec![false] };
    let rows = g.add1(Op::Loop(Box::new(attrs)), &[x, w], "branch").unwrap();
    g.outputs = vec![("rows".to_owned(), rows)];
    let after = passed(&g);
    // The square of the weights is a constant.
    assert_eq!(count(&only_loop(&after).body, |op| *op == Op::MatMul), 1);
    assert_eq!(count(&after, |op| *op == Op::MatMul), 0);
}

#[test]
fn sizes_that_nothing_needs_are_not_bound_in_bodies() {
    let of = |needed: bool| {
        repeated(1, |g, at, inputs| {
            let row = row(g, inputs[1], at);
            let next = g.add1(Op::Binary(BinaryOp::Add), &[inputs[0], row], "add").unwrap();
            let symbol = g.symbols.add(Symbol::in_run("many", 0, 3));
            let sum = Op::Reduce { op: ReduceOp::Sum, axes: vec![0, 1], keep_dims: false };
            let sum = g.add1(sum, &[next], "sum").unwrap();
            let size = g.add1(Op::Cast(DType::I64), &[sum], "size").unwrap();
            g.bindings.push(Binding { symbol, size });
            let extent = if needed { g.symbols.dim(symbol) } else { Dim::ONE };
            let shape = vec![extent, 3.into()];
            let fill = Op::Fill { shape, value: Scalar::Float(1.0), dtype: DType::F32 };
            let ones = g.add1(fill, &[], "ones").unwrap();
            let sum = Op::Reduce { op: ReduceOp::Sum, axes: vec![0], keep_dims: true };
            let ones = g.add1(sum, &[ones], "count").unwrap();
            vec![g.add1(Op::Binary(BinaryOp::Add), &[next, ones], "both").unwrap()]
        })
    };
    for needed in [true, false] {
        let graph = of(needed);
        let after = run(&graph, &Options::default()).unwrap();
        assert_eq!((after.check(), graph.check()), (Ok(()), Ok(())));
        assert_eq!(only_loop(&after).body.bindings.len(), usize::from(needed));
    }
}
