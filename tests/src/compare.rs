//! Comparison of tensors.

use aot_ir::DType;

/// `‖a - b‖ / ‖b‖`, where NaN equals NaN and equal infinities are equal.
///
/// # Panics
/// When the lengths differ.
pub fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len(), "results of different sizes");
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

/// The greatest [`distance`] of a row (along the last axis), each against the larger of its own and
/// the mean row's norm, so that rows of rounding noise do not count.
///
/// # Panics
/// When the lengths differ.
pub fn row_distance(a: &[f64], b: &[f64], width: usize) -> f64 {
    assert_eq!(a.len(), b.len(), "results of different sizes");
    let width = width.max(1);
    let rows = (b.len() / width).max(1) as f64;
    let total: f64 = b.iter().filter(|v| v.is_finite()).map(|v| v * v).sum();
    let mean = (total / rows).sqrt();
    let pairs = a.chunks(width).zip(b.chunks(width));
    pairs
        .map(|(x, y)| {
            let norm: f64 = y.iter().filter(|v| v.is_finite()).map(|v| v * v).sum();
            let own = norm.sqrt();
            distance(x, y) * if own == 0.0 { 1.0 } else { own / own.max(mean) }
        })
        .fold(0.0, |worst, d| if d > worst || d.is_nan() { d } else { worst })
}

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
