//! Graphs for the passes' tests, and the check that a pass keeps what a graph computes.

use aot_ir::exec::{Executor, Tensor};
use aot_ir::{Constant, DType, Dim, Graph, Op, ValueId};

/// An `F32` input of constant extents.
pub(super) fn input(g: &mut Graph, shape: &[i64]) -> ValueId {
    let name = format!("x{}", g.inputs.len());
    g.add_input(name, DType::F32, shape.iter().map(|&d| Dim::from(d)).collect())
}

/// An `F32` constant.
pub(super) fn constant(g: &mut Graph, shape: &[usize], values: &[f32]) -> ValueId {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let constant = Constant {
        name: "c".into(),
        dtype: DType::F32,
        shape: shape.to_vec(),
        bytes: bytes.into(),
    };
    g.add_constant(constant).expect("sizes match")
}

/// An `F32` constant with varied values.
pub(super) fn weights(g: &mut Graph, shape: &[usize]) -> ValueId {
    let n: usize = shape.iter().product();
    constant(g, shape, &(0..n).map(|i| wave(i, 29)).collect::<Vec<_>>())
}

fn wave(i: usize, by: usize) -> f32 {
    ((i * by + i * i % 7) % 31) as f32 / 16.0 - 1.0
}

/// Values for every input: extents evaluated with `atoms`, integers in 0..2.
pub(super) fn inputs(g: &Graph, atoms: &[i64]) -> Vec<Tensor> {
    let one = |(k, &id): (usize, &ValueId)| {
        let value = &g[id];
        let shape: Vec<usize> =
            value.shape.iter().map(|d| d.eval(atoms).expect("bound") as usize).collect();
        let n: usize = shape.iter().product();
        let values: Vec<f64> = (0..n)
            .map(|i| match value.dtype.is_float() {
                true => f64::from(wave(i, 17 + 2 * k)),
                false => ((i / 2 + k) % 2) as f64,
            })
            .collect();
        Tensor::from_f64(value.dtype, shape, &values).expect("sizes match")
    };
    g.inputs.iter().enumerate().map(one).collect()
}

/// Requires that two graphs give the same results, up to rounding.
#[track_caller]
pub(super) fn equal(before: &Graph, after: &Graph, atoms: &[i64]) {
    let inputs = inputs(before, atoms);
    let run = |g: &Graph| Executor::new(g).expect("fits").run(&inputs).expect("runs");
    let (a, b) = (run(before), run(after));
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(&b) {
        assert_eq!((a.dtype(), a.shape()), (b.dtype(), b.shape()));
        let (a, b) = (a.to_f64(), b.to_f64());
        let norm = a.iter().filter(|x| x.is_finite()).fold(1e-3f64, |m, x| m.max(x.abs()));
        for (i, (x, y)) in a.iter().zip(&b).enumerate() {
            let same = x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= 1e-5 * norm;
            assert!(same, "element {i}: {x} became {y}");
        }
    }
}

/// How many nodes have an operator that satisfies `f`.
pub(super) fn count(g: &Graph, f: impl Fn(&Op) -> bool) -> usize {
    g.nodes().filter(|(_, n)| f(&n.op)).count()
}
