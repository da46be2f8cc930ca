//! The exponential function of binary32, in a form that compilers vectorise.

/// `eˣ`, within 1.5 units in the last place.
///
/// `x = n ln 2 + r` with `|r| <= ln 2 / 2`; `eʳ` is a polynomial (Taylor's of degree 7, whose remainder is below 1e-8
/// there), scaled by two powers of two so that subnormal results and infinity come out right.
pub(super) fn exp(x: f32) -> f32 {
    // Adding and subtracting 1.5 · 2²³ rounds to an integer.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts; the first has zeros at the end, so that its product with n is exact.
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let clamped = x.clamp(-105.0, 89.0);
    let n = (clamped * std::f32::consts::LOG2_E + ROUND) - ROUND;
    let r = (clamped - n * LN2_HIGH) - n * LN2_LOW;
    let mut p = 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * (r * r) + r + 1.0;
    let n = n as i32;
    let half = n >> 1;
    let power = |e: i32| f32::from_bits(((e + 127) as u32) << 23);
    let value = p * power(half) * power(n - half);
    if x.is_nan() { x } else { value }
}

#[cfg(test)]
mod tests {
    use super::exp;

    #[test]
    fn close_to_the_exact_value_everywhere() {
        let mut x = -104.0f32;
        while x < 88.7 {
            let exact = f64::from(x).exp();
            let found = f64::from(exp(x));
            let unit = (exact * f64::from(f32::EPSILON)).max(1.5e-45);
            assert!((found - exact).abs() <= 1.5 * unit, "{x}: {found} is not {exact}");
            x += 0.003_7;
        }
    }

    #[test]
    fn limits() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert_eq!(exp(100.0), f32::INFINITY);
        assert_eq!(exp(-200.0), 0.0);
        assert!(exp(f32::NAN).is_nan());
    }
}
