//! Comparison of tensors.

use aot_ir::DType;

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
