//! Comparison of tensors.

use aot_ir::DType;
use aot_ir::exec::Tensor;

pub use aot_ir::exec::{distance, row_distance};

/// What results may differ by from an `f64` reference on equal inputs.
pub fn tolerance(precision: &str, output: DType) -> f64 {
    match (precision, output) {
        (_, t) if !t.is_float() => 0.0,
        ("f16", _) => 2e-3,
        ("bf16", _) => 1.5e-2,
        ("tf32", _) => 2e-3,
        _ => 1e-5,
    }
}

/// The place of the first element that is off by more than ONNX's own runner allows (1e-3 relative,
/// 1e-7 absolute, or of the largest element where that is above 1: sums that cancel leave so much), or by
/// more than a unit in the last place of a narrow float.
pub fn first_difference(found: &Tensor, expected: &Tensor) -> Option<usize> {
    let (relative, absolute) = match found.dtype() {
        DType::F16 => (2e-3, 1e-6),
        DType::Bf16 => (1.6e-2, 1e-6),
        _ => (1e-3, 1e-7),
    };
    let (found, expected) = (found.to_f64(), expected.to_f64());
    let largest = expected.iter().map(|x| x.abs()).filter(|x| x.is_finite()).fold(1.0, f64::max);
    let absolute = absolute * largest;
    found.iter().zip(&expected).position(|(&a, &b)| {
        let near = (a - b).abs() <= absolute + relative * b.abs();
        !(a == b || near || (a.is_nan() && b.is_nan()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_finite_has_to_be_the_same() {
        const NAN: f64 = f64::NAN;
        const INF: f64 = f64::INFINITY;
        let rows = [NAN, INF, -INF, 1.0];
        assert_eq!(distance(&rows, &rows), 0.0);
        assert_eq!(row_distance(&rows, &rows, 2), 0.0);
        for wrong in [[0.0, INF, -INF, 1.0], [NAN, 1e30, -INF, 1.0], [NAN, INF, INF, 1.0]] {
            for (a, b) in [(&wrong, &rows), (&rows, &wrong)] {
                // NaN is no small distance either.
                for d in [distance(a, b), row_distance(a, b, 2)] {
                    assert!(d.is_nan() || d > 1e30, "{d} between {a:?} and {b:?}");
                }
            }
        }
        assert!((distance(&[1.0, 1.1], &[1.0, 1.0]) - 0.1 / 2f64.sqrt()).abs() < 1e-12);
    }
}
