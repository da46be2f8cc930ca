//! Weights from frequencies to the mel scale.

use super::super::builder::{OpResult, Tensor, wrong};
use super::super::call::Call;
use super::table::{Entry, onnx};
use aot_ir::{Constant, DType, exec};

pub(super) const RULES: &[Entry] = &[onnx("MelWeightMatrix", mel_weights)];

/// Most elements of the matrix.
const MAX_ELEMENTS: i64 = 1 << 24;

/// The matrix `[frequencies, bands]` of triangles that reach from one band's centre to the next one's, all
/// computed at build time.
fn mel_weights(c: &mut Call<'_>) -> OpResult<Vec<Tensor>> {
    let names = ["number of bands", "length", "sample rate", "lower edge", "upper edge"];
    let mut values = [0.0; 5];
    for (n, (value, name)) in values.iter_mut().zip(names).enumerate() {
        let what = format!("the {name} of MelWeightMatrix");
        match c.input_numbers(n, &what)?.as_deref() {
            Some(&[one]) => *value = one,
            _ => return wrong(format!("{what} has to be one number")),
        }
    }
    let [bands, length, rate, lower, upper] = values;
    let dtype = c.dtype_attr("output_datatype")?.unwrap_or(DType::F32);
    let (bands, rows) = (bands as i64, (length / 2.0).floor() as i64 + 1);
    if bands < 1 || length < 0.0 || rate <= 0.0 || lower < 0.0 || upper < lower {
        return wrong(format!("{bands} bands, length {length}, rate {rate}, {lower}..{upper} Hz"));
    }
    if rows.checked_mul(bands).is_none_or(|n| n > MAX_ELEMENTS) {
        return wrong(format!("a matrix of {rows} x {bands} elements is too large"));
    }
    let mel = |hertz: f64| 2595.0 * (1.0 + hertz / 700.0).log10();
    let step = (mel(upper) - mel(lower)) / (bands + 2) as f64;
    // The frequency bin at each band's start; the band ends where the one after the next starts.
    let edge = |i: i64| -> i64 {
        let hertz = 700.0 * (10f64.powf((i as f64 * step + mel(lower)) / 2595.0) - 1.0);
        ((length + 1.0) * hertz / rate).floor() as i64
    };
    let mut matrix = vec![0.0; (rows * bands) as usize];
    for band in 0..bands {
        let (low, centre, high) = (edge(band), edge(band + 1), edge(band + 2));
        for row in low.max(0)..high.max(centre + 1).min(rows) {
            let weight = if row == centre {
                1.0
            } else if row < centre {
                (row - low) as f64 / (centre - low) as f64
            } else {
                (high - row) as f64 / (high - centre) as f64
            };
            matrix[(row * bands + band) as usize] = weight;
        }
    }
    let shape = vec![rows as usize, bands as usize];
    match exec::Tensor::from_f64(dtype, shape.clone(), &matrix) {
        Ok(tensor) => {
            let bytes = tensor.to_bytes().into();
            Ok(vec![c.constant(Constant { name: String::new(), dtype, shape, bytes })])
        }
        Err(error) => wrong(error.to_string()),
    }
}
