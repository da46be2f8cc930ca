//! Loops: shapes, values, checks.

use aot_ir::exec::{Executor, Tensor};
use aot_ir::op::{BinaryOp, LoopAttrs, ReduceOp};
use aot_ir::{Binding, DType, Dim, Graph, Op, Symbol, ValueId};

fn slice(graph: &mut Graph, x: ValueId, at: &Dim) -> ValueId {
    let shape = graph[x].shape.clone();
    let mut starts = vec![Dim::ZERO; shape.len()];
    starts[0] = at.clone();
    let mut sizes = shape.clone();
    sizes[0] = Dim::ONE;
    let op = Op::Slice { starts, sizes, steps: vec![1; shape.len()] };
    let part = graph.add1(op, &[x], "part").unwrap();
    graph.add1(Op::Reshape { shape: shape[1..].to_vec() }, &[part], "part").unwrap()
}

/// Running sums over the first axis of `x [n, 3]`, the last one first where `backward`; with `limit`, as long as the
/// first element is less.
fn sums(backward: bool, limit: bool) -> Graph {
    let mut graph = Graph::new("sums");
    let n = graph.symbols.add(Symbol::new("n", 1, 20, 1));
    let n = graph.symbols.dim(n);
    let x = graph.add_input("x", DType::F32, vec![n.clone(), Dim::from(3)]);
    let start = graph.add_input("start", DType::F32, vec![Dim::from(3)]);
    let iteration = graph.symbols.add(Symbol::counter("i", n.clone(), 20));
    let turns = limit.then(|| graph.symbols.add(Symbol::in_run("turns", 0, 20)));
    let mut body = Graph::new("body");
    body.symbols = graph.symbols.clone();
    let state = body.add_input("state", DType::F32, vec![Dim::from(3)]);
    let all = body.add_input("x", DType::F32, vec![n.clone(), Dim::from(3)]);
    let at = graph.symbols.dim(iteration);
    let row = slice(&mut body, all, &if backward { &n - 1 - &at } else { at });
    let next = body.add1(Op::Binary(BinaryOp::Add), &[state, row], "next").unwrap();
    if limit {
        let first = slice(&mut body, next, &Dim::ZERO);
        let most =
            Op::Fill { shape: Vec::new(), value: aot_ir::Scalar::Float(10.0), dtype: DType::F32 };
        let most = body.add1(most, &[], "most").unwrap();
        let go = body.add1(Op::Binary(BinaryOp::Lt), &[first, most], "go").unwrap();
        body.outputs.push(("go".into(), go));
    }
    body.outputs.push(("next".into(), next));
    body.outputs.push(("sum".into(), next));
    let attrs =
        LoopAttrs { body, iteration, count: n, carried: 1, turns, backward: vec![backward] };
    let mut operands = vec![start, x];
    if limit {
        let op = Op::Fill { shape: vec![], value: aot_ir::Scalar::Bool(true), dtype: DType::Bool };
        operands.insert(0, graph.add1(op, &[], "go").unwrap());
    }
    let out = graph.add(Op::Loop(Box::new(attrs)), &operands, "loop").unwrap();
    let lead = usize::from(limit);
    if let Some(symbol) = turns {
        graph.bindings.push(Binding { symbol, size: out[0] });
    }
    graph.outputs.push(("last".into(), out[lead]));
    graph.outputs.push(("sums".into(), out[lead + 1]));
    graph
}

fn run(graph: &Graph, rows: usize) -> Vec<Tensor> {
    assert_eq!(graph.check(), Ok(()));
    let x: Vec<f32> = (0..rows * 3).map(|i| i as f32).collect();
    let x = Tensor::from_vec(vec![rows, 3], x).unwrap();
    let start = Tensor::from_vec(vec![3], vec![1f32, 0.0, 0.0]).unwrap();
    Executor::new(graph).unwrap().run(&[x, start]).unwrap()
}

#[test]
fn loops_over_constants_are_repeated_as_often_as_sizes_say() {
    // The values that are added to are known; how often is not.
    let mut graph = Graph::new("count");
    let n = graph.symbols.add(Symbol::new("n", 0, 20, 1));
    let n = graph.symbols.dim(n);
    graph.add_input("x", DType::F32, vec![n.clone()]);
    let iteration = graph.symbols.add(Symbol::counter("i", n.clone(), 20));
    let one = Op::Fill { shape: vec![], value: aot_ir::Scalar::Float(1.0), dtype: DType::F32 };
    let mut body = Graph::new("body");
    body.symbols = graph.symbols.clone();
    let state = body.add_input("state", DType::F32, Vec::new());
    let step = body.add1(one.clone(), &[], "one").unwrap();
    let next = body.add1(Op::Binary(BinaryOp::Add), &[state, step], "next").unwrap();
    body.outputs.push(("next".into(), next));
    let start = graph.add1(one, &[], "one").unwrap();
    let attrs = LoopAttrs { body, iteration, count: n, carried: 1, turns: None, backward: vec![] };
    let last = graph.add1(Op::Loop(Box::new(attrs)), &[start], "loop").unwrap();
    graph.outputs.push(("last".into(), last));
    assert_eq!(graph.check(), Ok(()));
    let executor = Executor::new(&graph).unwrap();
    for n in [0usize, 3] {
        let x = Tensor::from_vec(vec![n], vec![0f32; n]).unwrap();
        assert_eq!(executor.run(&[x]).unwrap()[0].to_f64(), [n as f64 + 1.0]);
    }
}

#[test]
fn every_iteration_adds_and_is_collected() {
    let out = run(&sums(false, false), 3);
    assert_eq!(out[0].to_f64(), [10.0, 12.0, 15.0]);
    assert_eq!(out[1].shape(), [3, 3]);
    assert_eq!(out[1].to_f64(), [1.0, 1.0, 2.0, 4.0, 5.0, 7.0, 10.0, 12.0, 15.0]);
    let out = run(&sums(true, false), 2);
    assert_eq!(out[1].to_f64(), [4.0, 5.0, 7.0, 4.0, 4.0, 5.0]);
}

#[test]
fn a_condition_ends_it() {
    let out = run(&sums(false, true), 9);
    assert_eq!(out[0].to_f64(), [10.0, 12.0, 15.0]);
    assert_eq!(out[1].shape(), [3, 3]);
    let out = run(&sums(false, true), 2);
    assert_eq!(out[1].shape(), [2, 3]);
}

#[test]
fn indices_below_the_count_are_proved() {
    // A guard would be one on the iteration, which no input's shape gives.
    let graph = sums(true, false);
    let body = graph.nodes().find_map(|(_, n)| match &n.op {
        Op::Loop(attrs) => Some(&attrs.body),
        _ => None,
    });
    assert!(body.is_some_and(|body| body.guards.is_empty()));
}

#[test]
fn bodies_that_do_not_fit_are_refused() {
    let graph = sums(false, false);
    let (_, node) = graph.nodes().next_back().unwrap();
    let Op::Loop(attrs) = &node.op else { panic!("no loop") };
    let infer = |change: &dyn Fn(&mut LoopAttrs)| {
        let mut attrs = attrs.clone();
        change(&mut attrs);
        let operands: Vec<_> = node.inputs.iter().map(|v| &graph[*v]).collect();
        Op::Loop(attrs).infer(&operands, &graph.symbols).map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!(infer(&|_| ()), Ok(()));
    assert!(infer(&|a| a.carried = 3).is_err());
    assert!(infer(&|a| a.backward.clear()).is_err());
    assert!(infer(&|a| a.turns = Some(a.iteration)).is_err());
    assert!(infer(&|a| a.body.outputs.truncate(0)).is_err());
    let varying = infer(&|a| {
        let at = a.body.symbols.dim(a.iteration);
        let op = Op::Iota { shape: vec![at], axis: 0, dtype: DType::F32 };
        let value = a.body.add1(op, &[], "growing").unwrap();
        a.body.outputs[1].1 = value;
    });
    assert!(varying.unwrap_err().contains("another one at every iteration"));
}

#[test]
fn files_keep_loops_and_nothing_in_them_does_harm() {
    let graph = sums(false, true);
    let bytes = postcard::to_allocvec(&graph).unwrap();
    let back: Graph = postcard::from_bytes(&bytes).unwrap();
    assert_eq!(back, graph);
    for i in 0..bytes.len() {
        for flip in [1u8, 0x7f, 0xff] {
            let mut changed = bytes.clone();
            changed[i] ^= flip;
            let _ = postcard::from_bytes::<Graph>(&changed).map(|graph| graph.check());
        }
    }
}

#[test]
fn loops_in_loops() {
    let mut graph = Graph::new("nested");
    let start = graph.add_input("start", DType::I64, vec![]);
    let outer = graph.symbols.add(Symbol::counter("i", Dim::from(3), 3));
    let inner = graph.symbols.add(Symbol::counter("j", Dim::from(4), 4));
    let product = graph.symbols.dim(outer) * graph.symbols.dim(inner);
    let mut innermost = Graph::new("innermost");
    innermost.symbols = graph.symbols.clone();
    let sum = innermost.add_input("sum", DType::I64, vec![]);
    let term = innermost.add1(Op::Dims { dims: vec![product], scalar: true }, &[], "term").unwrap();
    let sum = innermost.add1(Op::Binary(BinaryOp::Add), &[sum, term], "sum").unwrap();
    innermost.outputs.push(("sum".into(), sum));
    let attrs = |body: Graph, iteration, count: i64, stacked: usize| {
        let (count, backward) = (Dim::from(count), vec![false; stacked]);
        Op::Loop(Box::new(LoopAttrs { body, iteration, count, carried: 1, turns: None, backward }))
    };
    let mut body = Graph::new("body");
    body.symbols = graph.symbols.clone();
    let state = body.add_input("state", DType::I64, vec![]);
    let state = body.add1(attrs(innermost, inner, 4, 0), &[state], "inner").unwrap();
    body.outputs.push(("state".into(), state));
    body.outputs.push(("each".into(), state));
    let out = graph.add(attrs(body, outer, 3, 1), &[start], "outer").unwrap();
    let total = Op::Reduce { op: ReduceOp::Sum, axes: vec![0], keep_dims: false };
    let total = graph.add1(total, &[out[1]], "total").unwrap();
    graph.outputs.push(("last".into(), out[0]));
    graph.outputs.push(("total".into(), total));
    assert_eq!(graph.check(), Ok(()));
    let start = Tensor::from_vec(vec![], vec![5i64]).unwrap();
    let found = Executor::new(&graph).unwrap().run(&[start]).unwrap();
    // 5, then 6 per unit of the outer iteration.
    assert_eq!(found[0].to_i64(), [5 + 6 + 12]);
    assert_eq!(found[1].to_i64(), [5 + 11 + 23]);
}
