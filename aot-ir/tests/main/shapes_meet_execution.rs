//! Symbolic shape rules against what execution gives, for random operators and sizes.

use aot_ir::exec::{Executor, Tensor};
use aot_ir::op::{
    BinaryOp, ConvAttrs, CoordinateMap, NearestRounding, PadMode, PoolAttrs, PoolKind, ReduceOp,
    ResizeAttrs, ResizeMode, ScanOp,
};
use aot_ir::{DType, Dim, Graph, Op, Scalar, Scope, Symbol, ValueId};
use proptest::prelude::*;

/// `n` in 1..=6, `h` in 8..=40 by 8, `w` in 3..=15 by 4.
fn graph() -> (Graph, [Dim; 3]) {
    let mut g = Graph::new("test");
    let n = g.symbols.add(Symbol::new("n", 1, 6, 1));
    let h = g.symbols.add(Symbol::new("h", 8, 40, 8));
    let w = g.symbols.add(Symbol::new("w", 3, 15, 4));
    let dims = [n, h, w].map(|s| g.symbols.dim(s));
    (g, dims)
}

/// Adds a random operator on a value of rank 4; `None` where the choice does not fit the shape.
fn step(g: &mut Graph, x: ValueId, choice: u8, a: i64, b: i64) -> Option<ValueId> {
    let shape = g[x].shape.clone();
    let axis = (b.unsigned_abs() % 4) as usize;
    let pads = vec![(Dim::from(a % 2), Dim::from(b % 2)); 2];
    let op = match choice {
        0 => {
            let mut perm = vec![0, 1, 2, 3];
            perm.swap(axis, (a % 4) as usize);
            Op::Transpose { perm }
        }
        1 => {
            let merged = &shape[2] * &shape[3];
            Op::Reshape { shape: vec![shape[0].clone(), shape[1].clone(), merged, Dim::ONE] }
        }
        2 => {
            let scope = Scope::new(&g.symbols);
            let start = scope.min(&Dim::from(a), &(&shape[axis] - 1));
            let step = 1 + b % 3;
            let room = &shape[axis] - &start;
            let size = scope.ceil_div(&room, &Dim::from(step));
            let (mut starts, mut sizes, mut steps) = (vec![Dim::ZERO; 4], shape, vec![1; 4]);
            (starts[axis], sizes[axis], steps[axis]) = (start, size, step);
            Op::Slice { starts, sizes, steps }
        }
        3 => {
            let (mut low, mut high) = (vec![Dim::ZERO; 4], vec![Dim::ZERO; 4]);
            (low[axis], high[axis]) = (Dim::from(a), Dim::from(b));
            let modes = [PadMode::Edge, PadMode::Reflect, PadMode::Constant(Scalar::Float(1.0))];
            Op::Pad { low, high, mode: modes[(a % 3) as usize] }
        }
        4 => Op::Reduce { op: ReduceOp::Max, axes: vec![axis], keep_dims: true },
        5 => Op::Scan { op: ScanOp::Max, axis, exclusive: false, reverse: a % 2 == 0 },
        6 => Op::Pool(PoolAttrs {
            kind: PoolKind::Max,
            kernel: vec![Dim::from(1 + a), Dim::from(1 + b)],
            strides: vec![1 + a % 3, 1 + b % 3],
            pads,
            dilations: vec![1, 1 + a % 2],
            ceil_mode: b % 2 == 0,
        }),
        7 => {
            let channels = shape[1].as_const()?;
            let w = Op::Fill {
                shape: [2, channels, 1 + a % 3, 1 + b % 3].map(Dim::from).to_vec(),
                value: Scalar::Float(0.5),
                dtype: DType::F32,
            };
            let w = g.add1(w, &[], "w").ok()?;
            let (strides, dilations) = (vec![1 + a % 2, 1 + b % 2], vec![1, 1 + a % 2]);
            let conv = Op::Conv(ConvAttrs { strides, pads, dilations, groups: 1 });
            return g.add1(conv, &[x, w], "conv").ok();
        }
        8 => {
            let sizes = vec![shape[0].clone(), shape[1].clone(), shape[2].scaled(2), &shape[3] + a];
            Op::Resize(ResizeAttrs {
                mode: ResizeMode::Nearest(NearestRounding::Floor),
                coordinates: CoordinateMap::Asymmetric,
                sizes,
                scales: vec![None; 4],
                exclude_outside: false,
            })
        }
        9 => return g.add1(Op::Concat { axis }, &[x, x], "cat").ok(),
        10 => {
            let perm = vec![0, 1, 3, 2];
            let t = g.add1(Op::Transpose { perm }, &[x], "t").ok()?;
            return g.add1(Op::MatMul, &[x, t], "mm").ok();
        }
        _ => {
            let one = Op::Reduce { op: ReduceOp::Sum, axes: vec![axis], keep_dims: true };
            let one = g.add1(one, &[x], "sum").ok()?;
            return g.add1(Op::Binary(BinaryOp::Max), &[one, x], "max").ok();
        }
    };
    g.add1(op, &[x], "op").ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn symbolic_shapes_evaluate_to_concrete_ones(
        steps in proptest::collection::vec((0..12u8, 0..5i64, 0..5i64), 1..7),
        atoms in (1..=6i64, 1..=5i64, 0..=3i64),
    ) {
        let (mut g, [n, h, w]) = graph();
        let x = g.add_input("x", DType::F32, vec![n, Dim::from(3), h, w]);
        let mut value = x;
        for (choice, a, b) in steps {
            if let Some(next) = step(&mut g, value, choice, a, b) {
                // Keep what is executed small.
                let scope = Scope::new(&g.symbols);
                let size: Dim = g[next].shape.iter().product();
                if scope.interval(&size).hi < 4_000_000 {
                    value = next;
                }
            }
        }
        g.outputs.push(("y".into(), value));
        prop_assert_eq!(g.check(), Ok(()));
        let atoms = [atoms.0, atoms.1, atoms.2];
        let shape: Vec<usize> =
            g[x].shape.iter().map(|d| d.eval(&atoms[..]).unwrap() as usize).collect();
        let elements = shape.iter().product();
        let input = Tensor::from_vec(shape, (0..elements).map(|i| i as f32).collect()).unwrap();
        let executor = Executor::new(&g).unwrap();
        let mut wrong = None;
        let result = executor.run_observed(&[input], &mut |id, tensor| {
            let expected: Vec<i64> =
                g[id].shape.iter().map(|d| d.eval(&atoms[..]).unwrap_or(-1)).collect();
            let found: Vec<i64> = tensor.shape().iter().map(|&d| d as i64).collect();
            if expected != found || tensor.dtype() != g[id].dtype {
                wrong.get_or_insert((g[id].name.clone(), expected, found));
            }
        });
        prop_assert_eq!(wrong, None);
        // A run fails only where a recorded guard does not hold.
        let guards_hold = g.guards.iter().all(|guard| guard.check(&g.symbols, &atoms).is_ok());
        prop_assert_eq!(result.is_ok(), guards_hold, "{:?}", result.err().map(|e| e.to_string()));
    }
}
