//! How far results are from a reference.

/// `‖a - b‖ / ‖b‖`, where NaN equals NaN and equal infinities are equal; NaN where the lengths differ.
pub fn distance(a: &[f64], b: &[f64]) -> f64 {
    if a.len() != b.len() {
        return f64::NAN;
    }
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
/// the mean row's norm, so that rows of rounding noise do not count; NaN where the lengths differ.
pub fn row_distance(a: &[f64], b: &[f64], width: usize) -> f64 {
    if a.len() != b.len() {
        return f64::NAN;
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_counts() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        assert_eq!(distance(&[nan, inf, 3.0], &[nan, inf, 3.0]), 0.0);
        assert!(distance(&[nan, 1.0], &[1.0, 1.0]).is_nan());
        assert!(distance(&[inf], &[1.0]) > 1e9 && distance(&[1.0], &[1.0, 2.0]).is_nan());
        assert!((distance(&[3.0, 4.5], &[3.0, 4.0]) - 0.1).abs() < 1e-12);
    }

    #[test]
    fn one_wrong_row_shows() {
        let right: Vec<f64> = (0..4000).map(|i| f64::from(i % 7) - 3.0).collect();
        let mut wrong = right.clone();
        wrong[1200..1204].iter_mut().for_each(|x| *x += 1.0);
        assert!(distance(&wrong, &right) < 0.02);
        assert!(row_distance(&wrong, &right, 4) > 0.3);
    }
}
