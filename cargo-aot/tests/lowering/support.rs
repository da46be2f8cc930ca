//! Graphs for tests, and the comparison of interpreted groups with the reference executor.

use aot_ir::dim::Symbol;
use aot_ir::exec::{Executor, Tensor};
use aot_ir::op::{BinaryOp, UnaryOp};
use aot_ir::{Constant, DType, Dim, Graph, Op, ValueId};
use cargo_aot::lower::arena::plan_arena;
use cargo_aot::lower::interpret::interpret;
use cargo_aot::lower::{LowerOptions, Precision, lower};

/// A small deterministic generator (xorshift64*).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// In -1..1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    /// In 0..n.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }
}

/// A graph in the making.
pub(crate) struct Net {
    pub(crate) graph: Graph,
    random: Random,
    nodes: usize,
}

impl Net {
    pub(crate) fn new() -> Self {
        Self { graph: Graph::new("net"), random: Random::new(7), nodes: 0 }
    }

    pub(crate) fn symbol(&mut self, name: &str, lo: i64, hi: i64, step: i64) -> Dim {
        let id = self.graph.symbols.add(Symbol::new(name, lo, hi, step));
        self.graph.symbols.dim(id)
    }

    pub(crate) fn input(&mut self, dtype: DType, shape: &[Dim]) -> ValueId {
        let name = format!("x{}", self.graph.inputs.len());
        self.graph.add_input(name, dtype, shape.to_vec())
    }

    /// A constant of random floats.
    pub(crate) fn weight(&mut self, shape: &[usize]) -> ValueId {
        let n: usize = shape.iter().product();
        let scale = (shape.iter().skip(1).product::<usize>().max(1) as f64).sqrt().recip();
        let values: Vec<f32> = (0..n).map(|_| (self.random.unit() * scale) as f32).collect();
        self.floats(shape, &values)
    }

    pub(crate) fn floats(&mut self, shape: &[usize], values: &[f32]) -> ValueId {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let constant = Constant {
            name: "w".into(),
            dtype: DType::F32,
            shape: shape.to_vec(),
            bytes: bytes.into(),
        };
        self.graph.add_constant(constant).unwrap()
    }

    pub(crate) fn ints(&mut self, shape: &[usize], values: &[i64]) -> ValueId {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let constant = Constant {
            name: "i".into(),
            dtype: DType::I64,
            shape: shape.to_vec(),
            bytes: bytes.into(),
        };
        self.graph.add_constant(constant).unwrap()
    }

    pub(crate) fn op(&mut self, op: Op, inputs: &[ValueId]) -> ValueId {
        self.nodes += 1;
        let name = format!("{}_{}", op.name(), self.nodes);
        self.graph.add1(op, inputs, name).unwrap()
    }

    pub(crate) fn add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.op(Op::Binary(BinaryOp::Add), &[a, b])
    }

    pub(crate) fn mul(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.op(Op::Binary(BinaryOp::Mul), &[a, b])
    }

    pub(crate) fn unary(&mut self, op: UnaryOp, x: ValueId) -> ValueId {
        self.op(Op::Unary(op), &[x])
    }

    pub(crate) fn output(&mut self, value: ValueId) {
        let name = format!("y{}", self.graph.outputs.len());
        self.graph.outputs.push((name, value));
    }
}

/// Constant extents.
pub(crate) fn dims(shape: &[i64]) -> Vec<Dim> {
    shape.iter().map(|d| Dim::from(*d)).collect()
}

/// Random inputs for sizes given by name; integers are in `0..4`.
pub(crate) fn inputs(graph: &Graph, sizes: &[(&str, i64)], seed: u64) -> (Vec<i64>, Vec<Tensor>) {
    let atoms: Vec<i64> = graph
        .symbols
        .iter()
        .map(|(_, s)| {
            let size = sizes.iter().find(|(name, _)| *name == s.name).unwrap().1;
            s.atom_of(size).unwrap()
        })
        .collect();
    let mut random = Random::new(seed + 11);
    let tensors = graph.inputs.iter().map(|v| {
        let value = &graph[*v];
        let shape: Vec<usize> =
            value.shape.iter().map(|d| d.eval(&atoms[..]).unwrap() as usize).collect();
        let n: usize = shape.iter().product();
        let values: Vec<f64> = (0..n)
            .map(|_| match value.dtype {
                DType::Bool => random.below(2) as f64,
                t if t.is_int() => random.below(4) as f64,
                _ => random.unit() * 2.0,
            })
            .collect();
        Tensor::from_f64(value.dtype, shape, &values).unwrap()
    });
    (atoms.clone(), tensors.collect())
}

/// `‖a - b‖ / ‖b‖`, where NaN equals NaN and equal infinities are equal.
pub(crate) fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let (mut difference, mut norm) = (0.0, 0.0);
    for (x, y) in a.iter().zip(b) {
        if (x.is_nan() && y.is_nan()) || x == y {
            norm += if y.is_finite() { y * y } else { 0.0 };
            continue;
        }
        difference += (x - y) * (x - y);
        norm += y * y;
    }
    if difference == 0.0 { 0.0 } else { (difference / f64::max(norm, 1e-30)).sqrt() }
}

/// Compares the interpreted plan with the executor at the given sizes.
pub(crate) fn check_at(graph: &Graph, precision: Precision, tolerance: f64, sizes: &[(&str, i64)]) {
    let options = LowerOptions { precision, precision_for: Vec::new() };
    let plan = lower(graph, &options).unwrap();
    let bounds: Vec<i64> = graph.symbols.iter().map(|(_, s)| s.hi).collect();
    let arena = plan_arena(&plan, &bounds);
    let (atoms, tensors) = inputs(graph, sizes, 3);
    let expected = Executor::wide(graph).unwrap().run(&tensors).unwrap();
    let bytes: Vec<Vec<u8>> = tensors.iter().map(Tensor::to_bytes).collect();
    let bytes: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
    let found = interpret(&plan, &arena, &atoms, &bytes).unwrap();
    for ((name, _), (found, expected)) in graph.outputs.iter().zip(found.iter().zip(&expected)) {
        let shape = expected.shape().to_vec();
        let found = Tensor::from_bytes(expected.dtype(), shape, found).unwrap();
        let d = distance(&found.to_f64(), &expected.to_f64());
        assert!(d <= tolerance, "{name}: off by {d:e}\n{found:?}\n{expected:?}");
    }
}

/// As [`check_at`] for a graph without symbols, in f32.
pub(crate) fn check(net: &Net) {
    check_at(&net.graph, Precision::F32, 1e-5, &[]);
}

/// How many groups a run has.
pub(crate) fn steps(graph: &Graph) -> usize {
    let options = LowerOptions { precision: Precision::F32, precision_for: Vec::new() };
    lower(graph, &options).unwrap().steps.len()
}
