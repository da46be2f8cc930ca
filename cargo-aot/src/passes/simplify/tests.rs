use super::super::testing::{constant, count, equal, input};
use super::super::{Options, run};
use aot_ir::op::{BinaryOp, ReduceOp, UnaryOp};
use aot_ir::{Constant, DType, Dim, Graph, Op, Symbol, ValueId};

fn dims(list: &[i64]) -> Vec<Dim> {
    list.iter().map(|&d| Dim::from(d)).collect()
}

/// Runs all passes on a graph with one output, checks the results, and gives what is left.
#[track_caller]
fn after(mut g: Graph, y: ValueId) -> Graph {
    g.outputs.push(("y".into(), y));
    let after = run(&g, &Options::default()).unwrap();
    equal(&g, &after, &[]);
    after
}

#[test]
fn neutral_operands_and_double_negations_go() {
    let mut g = Graph::new("test");
    let x = input(&mut g, &[2, 3]);
    let (zero, one) = (constant(&mut g, &[1], &[0.0]), constant(&mut g, &[], &[1.0]));
    let mut y = x;
    for (op, c) in [(BinaryOp::Add, zero), (BinaryOp::Mul, one), (BinaryOp::Div, one)] {
        y = g.add1(Op::Binary(op), &[y, c], "n").unwrap();
    }
    for _ in 0..2 {
        y = g.add1(Op::Unary(UnaryOp::Neg), &[y], "n").unwrap();
    }
    assert_eq!(after(g, y).nodes().len(), 0);
}

#[test]
fn a_neutral_operand_that_broadcasts_stays() {
    let mut g = Graph::new("test");
    let x = input(&mut g, &[3]);
    let zero = constant(&mut g, &[1, 1], &[0.0]);
    let y = g.add1(Op::Binary(BinaryOp::Add), &[x, zero], "n").unwrap();
    after(g, y);
}

#[test]
fn chains_of_movement_collapse() {
    let mut g = Graph::new("test");
    let x = input(&mut g, &[2, 3, 4]);
    let mut y = x;
    for op in [
        Op::Transpose { perm: vec![1, 2, 0] },
        Op::Transpose { perm: vec![2, 0, 1] },
        Op::Reshape { shape: dims(&[6, 4]) },
        Op::Reshape { shape: dims(&[2, 3, 1, 4]) },
        Op::Transpose { perm: vec![0, 2, 1, 3] },
        Op::Reshape { shape: dims(&[2, 3, 4]) },
        Op::Slice { starts: dims(&[0, 0, 0]), sizes: dims(&[2, 3, 4]), steps: vec![1; 3] },
        Op::Pad { low: dims(&[0; 3]), high: dims(&[0; 3]), mode: aot_ir::op::PadMode::Edge },
        Op::Expand { shape: dims(&[2, 3, 4]) },
        Op::Concat { axis: 1 },
    ] {
        y = g.add1(op, &[y], "m").unwrap();
    }
    assert_eq!(after(g, y).nodes().len(), 0);
}

#[test]
fn slices_compose_and_find_their_part() {
    let mut g = Graph::new("test");
    let (a, b) = (input(&mut g, &[2, 6]), input(&mut g, &[2, 4]));
    let joined = g.add1(Op::Concat { axis: 1 }, &[a, b], "cat").unwrap();
    let slice = |start: i64, size: i64, step: i64| Op::Slice {
        starts: dims(&[0, start]),
        sizes: dims(&[2, size]),
        steps: vec![1, step],
    };
    let y = g.add1(slice(6, 4, 1), &[joined], "s").unwrap();
    let y = g.add1(slice(3, 2, -2), &[y], "s").unwrap();
    let left = after(g, y);
    assert_eq!(left.nodes().len(), 1);
}

#[test]
fn casts_that_lose_nothing_vanish() {
    let mut g = Graph::new("test");
    let x = g.add_input("x", DType::U8, dims(&[4]));
    let mut y = x;
    for to in [DType::I32, DType::I64, DType::U8, DType::F32, DType::U8] {
        y = g.add1(Op::Cast(to), &[y], "c").unwrap();
    }
    assert_eq!(after(g, y).nodes().len(), 0);
    let mut g = Graph::new("test");
    let x = input(&mut g, &[4]);
    let narrow = g.add1(Op::Cast(DType::F16), &[x], "c").unwrap();
    let y = g.add1(Op::Cast(DType::F32), &[narrow], "c").unwrap();
    assert_eq!(after(g, y).nodes().len(), 2);
}

#[test]
fn powers_and_reciprocals_become_cheap() {
    let mut g = Graph::new("test");
    let x = input(&mut g, &[4]);
    let x = g.add1(Op::Unary(UnaryOp::Exp), &[x], "e").unwrap();
    let mut sum = x;
    for exponent in [2.0, 3.0, 0.5, -0.5, -1.0, 1.0] {
        let exponent = constant(&mut g, &[], &[exponent]);
        let p = g.add1(Op::Binary(BinaryOp::Pow), &[x, exponent], "p").unwrap();
        sum = g.add1(Op::Binary(BinaryOp::Add), &[sum, p], "s").unwrap();
    }
    let left = after(g, sum);
    assert_eq!(count(&left, |op| *op == Op::Binary(BinaryOp::Pow)), 0);
}

#[test]
fn sigmoid_written_out() {
    let mut g = Graph::new("test");
    let x = input(&mut g, &[4]);
    let one = constant(&mut g, &[], &[1.0]);
    let y = g.add1(Op::Unary(UnaryOp::Neg), &[x], "n").unwrap();
    let y = g.add1(Op::Unary(UnaryOp::Exp), &[y], "n").unwrap();
    let y = g.add1(Op::Binary(BinaryOp::Add), &[one, y], "n").unwrap();
    let y = g.add1(Op::Binary(BinaryOp::Div), &[one, y], "n").unwrap();
    let left = after(g, y);
    assert_eq!(left.nodes().len(), 1);
    assert_eq!(count(&left, |op| *op == Op::Unary(UnaryOp::Sigmoid)), 1);
}

#[test]
fn selections_with_known_conditions() {
    let mut g = Graph::new("test");
    let (a, b) = (input(&mut g, &[2, 2]), input(&mut g, &[2, 2]));
    let flag = g.add_constant(Constant {
        name: "t".into(),
        dtype: DType::Bool,
        shape: vec![1],
        bytes: vec![0u8].into(),
    });
    let flag = flag.unwrap();
    let y = g.add1(Op::Select, &[flag, a, b], "s").unwrap();
    assert_eq!(after(g, y).nodes().len(), 0);
}

#[test]
fn single_elements_need_no_reduction_or_gather() {
    let mut g = Graph::new("test");
    let n = g.symbols.add(Symbol::new("n", 1, 8, 1));
    let n = g.symbols.dim(n);
    let x = g.add_input("x", DType::F32, vec![n, Dim::ONE, Dim::from(3)]);
    let op = Op::Reduce { op: ReduceOp::Mean, axes: vec![1], keep_dims: false };
    let y = g.add1(op, &[x], "mean").unwrap();
    let index = g.add_constant(Constant {
        name: "i".into(),
        dtype: DType::I64,
        shape: vec![],
        bytes: (-1i64).to_le_bytes().to_vec().into(),
    });
    let y = g.add1(Op::Gather { axis: 1 }, &[y, index.unwrap()], "last").unwrap();
    g.outputs.push(("y".into(), y));
    let left = run(&g, &Options::default()).unwrap();
    assert_eq!(count(&left, |op| matches!(op, Op::Reduce { .. } | Op::Gather { .. })), 0);
    equal(&g, &left, &[5]);
}

/// As PyTorch's decompositions turn the last two axes of any number of them.
#[test]
fn reshapes_around_a_transpose_merge() {
    let mut g = Graph::new("test");
    let n = g.symbols.add(Symbol::new("n", 1, 5, 1));
    let n = g.symbols.dim(n);
    let rows = &n + 1;
    let shape = |list: &[&Dim]| list.iter().map(|&d| d.clone()).collect::<Vec<Dim>>();
    let [two, three, four, one] = [2, 3, 4, 1].map(Dim::from);
    let x = g.add_input("x", DType::F32, shape(&[&n, &two, &three, &rows, &four]));
    let batches = &n * &Dim::from(6);
    let mut y = x;
    for op in [
        Op::Reshape { shape: shape(&[&batches, &rows, &four]) },
        Op::Transpose { perm: vec![0, 2, 1] },
        Op::Reshape { shape: shape(&[&n, &Dim::from(6), &one, &four, &rows, &one]) },
        Op::Transpose { perm: vec![0, 1, 2, 4, 3, 5] },
    ] {
        y = g.add1(op, &[y], "m").unwrap();
    }
    g.outputs.push(("y".into(), y));
    let after = run(&g, &Options::default()).unwrap();
    equal(&g, &after, &[3]);
    assert_eq!(count(&after, |op| matches!(op, Op::Reshape { .. })), 1);
    assert_eq!(after.nodes().len(), 1);
}

#[test]
fn reshapes_that_join_what_was_transposed_stay() {
    let mut g = Graph::new("test");
    let x = input(&mut g, &[6, 4]);
    let mut y = x;
    for op in [
        Op::Reshape { shape: dims(&[2, 3, 4]) },
        Op::Transpose { perm: vec![0, 2, 1] },
        Op::Reshape { shape: dims(&[8, 3]) },
    ] {
        y = g.add1(op, &[y], "m").unwrap();
    }
    assert_eq!(after(g, y).nodes().len(), 3);
}
