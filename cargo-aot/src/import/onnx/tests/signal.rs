//! Fourier transforms against their definition.

use super::make::*;
use aot_ir::exec::{Executor, Tensor};
use std::f64::consts::PI;

/// The transform of `samples` complex numbers, all frequencies.
fn definition(samples: &[f64], inverse: bool) -> Vec<f64> {
    let n = samples.len() / 2;
    let sign = if inverse { 1.0 } else { -1.0 };
    let mut out = Vec::new();
    for k in 0..n {
        let (mut re, mut im) = (0.0, 0.0);
        for (i, x) in samples.chunks(2).enumerate() {
            let (sin, cos) = (sign * 2.0 * PI * ((i * k) % n) as f64 / n as f64).sin_cos();
            re += x[0] * cos - x[1] * sin;
            im += x[0] * sin + x[1] * cos;
        }
        let scale = if inverse { n as f64 } else { 1.0 };
        out.extend([re / scale, im / scale]);
    }
    out
}

/// Compares a transform of `n` samples with its definition; `dim` is what the model calls the length.
fn check(n: usize, dim: &str, dims: &str, inverse: bool) {
    let nodes = vec![node("DFT", "x", "y").int("axis", 1).int("inverse", inverse.into())];
    let inputs = vec![value("x", 11, &format!("1 {dim} 2"))];
    let imported = import_ok(&model(17, inputs, vec![], nodes, "y"), dims);
    let samples: Vec<f64> = (0..2 * n).map(|i| ((i * i) as f64 * 0.37).sin()).collect();
    let x = Tensor::from_vec(vec![1, n, 2], samples.clone()).unwrap();
    let y = Executor::new(&imported.graph).unwrap().run(&[x]).unwrap();
    let expected = definition(&samples, inverse);
    let found = y[0].to_f64();
    assert_eq!(y[0].shape(), [1, n, 2]);
    for (i, (a, b)) in found.iter().zip(&expected).enumerate() {
        assert!((a - b).abs() < 1e-9 * n as f64, "{n} samples, element {i}: {a}, expected {b}");
    }
}

#[test]
fn lengths_of_every_kind_agree_with_the_definition() {
    for inverse in [false, true] {
        check(1, "1", "", inverse);
        check(7, "n", "n=1..64", inverse);
        // Longer than what is one product: two lengths, one of them longer still, and a prime one.
        check(1500, "1500", "", inverse);
        check(2062, "2062", "", inverse);
        check(1031, "1031", "", inverse);
    }
}
