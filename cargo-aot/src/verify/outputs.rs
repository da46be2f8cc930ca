//! Outputs beside their references.

use aot_ir::Graph;
use aot_ir::exec::{Tensor, distance, row_distance};

use super::error::VerifyError;
use super::report::OutputReport;
use super::subjects::tensor;
use super::tolerance::ROW;
use crate::npy::Array;

/// The outputs that arrays are expectations of.
pub(super) fn given<'g>(
    graph: &'g Graph,
    arrays: &[(String, Array)],
) -> Result<Vec<(&'g str, Tensor)>, VerifyError> {
    let mut expected = Vec::new();
    for (name, value) in &graph.outputs {
        let Some((_, array)) = arrays.iter().find(|(n, _)| n == name) else { continue };
        let value = &graph[*value];
        if array.dtype != value.dtype || array.shape.len() != value.shape.len() {
            return Err(VerifyError::Expected {
                name: name.clone(),
                found: format!("{} {:?}", array.dtype, array.shape),
                given: format!("{} {}", value.dtype, graph.symbols.show_shape(&value.shape)),
            });
        }
        expected.push((name.as_str(), tensor(array)?));
    }
    match (expected.is_empty(), graph.outputs.first()) {
        (true, Some((name, _))) => Err(VerifyError::NoArray(name.clone())),
        _ => Ok(expected),
    }
}

/// Compares the outputs of the compiled graph with references by name.
///
/// # Errors
/// When an output is missing or has another type or shape.
pub(super) fn compare(
    compiled: &Graph,
    found: &[Tensor],
    expected: &[(&str, Tensor)],
    tolerance: f64,
) -> Result<Vec<OutputReport>, String> {
    let reports = expected.iter().map(|(name, expected)| {
        let position = compiled.outputs.iter().position(|(n, _)| n == name);
        let found = position.and_then(|i| found.get(i));
        let found = found.ok_or_else(|| format!("there is no output `{name}`"))?;
        if (found.dtype(), found.shape()) != (expected.dtype(), expected.shape()) {
            return Err(format!(
                "output `{name}` is {} {:?} instead of {} {:?}",
                found.dtype(),
                found.shape(),
                expected.dtype(),
                expected.shape()
            ));
        }
        let (x, y) = (found.to_f64(), expected.to_f64());
        let error = error(expected, &x, &y);
        let row_error = match expected.dtype().is_float() {
            true => row_distance(&x, &y, expected.shape().last().copied().unwrap_or(1)),
            false => error,
        };
        let ok = error <= tolerance && row_error <= tolerance * ROW;
        Ok(OutputReport { name: (*name).to_owned(), error, row_error, tolerance, ok })
    });
    reports.collect()
}

/// The relative distance of floats; the share of other elements that differ. `like` has the type.
pub(super) fn error(like: &Tensor, found: &[f64], expected: &[f64]) -> f64 {
    if like.dtype().is_float() || found.len() != expected.len() {
        return distance(found, expected);
    }
    let different = found.iter().zip(expected).filter(|(x, y)| x != y).count();
    different as f64 / expected.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use aot_ir::{DType, Dim};

    use super::*;

    fn graph(dtype: DType) -> Graph {
        let mut graph = Graph::new("g");
        let x = graph.add_input("x", dtype, vec![Dim::from(2), Dim::from(2)]);
        graph.outputs.push(("y".into(), x));
        graph
    }

    fn floats(values: [f32; 4]) -> Tensor {
        Tensor::from_vec(vec![2, 2], values.to_vec()).unwrap()
    }

    #[test]
    fn errors_and_what_passes() {
        let graph = graph(DType::F32);
        let compare = |found: Tensor, tolerance| {
            compare(&graph, &[found], &[("y", floats([1.0, 2.0, 3.0, 4.0]))], tolerance)
        };
        let exact = &compare(floats([1.0, 2.0, 3.0, 4.0]), 0.0).unwrap()[0];
        assert!(exact.ok && exact.error == 0.0);
        let off = floats([1.0, 2.0, 3.0, 4.1]);
        assert!(compare(off.clone(), 0.02).unwrap()[0].ok && !compare(off, 0.01).unwrap()[0].ok);
        assert!(!compare(floats([f32::NAN, 2.0, 3.0, 4.0]), 1e9).unwrap()[0].ok);
        let other = Tensor::from_vec(vec![4], vec![1f32, 2.0, 3.0, 4.0]).unwrap();
        assert!(compare(other, 1.0).unwrap_err().contains("instead of"));
    }

    #[test]
    fn integers_count_by_element() {
        let ints = |v: [i64; 4]| Tensor::from_vec(vec![2, 2], v.to_vec()).unwrap();
        let graph = graph(DType::I64);
        let report =
            compare(&graph, &[ints([1, 2, 3, 9])], &[("y", ints([1, 2, 3, 4]))], 0.3).unwrap();
        assert!(report[0].error == 0.25 && report[0].ok);
    }

    #[test]
    fn expectations_must_be_of_an_output() {
        let graph = graph(DType::F32);
        let array = |dtype| Array { dtype, shape: vec![2, 2], bytes: vec![0; 16] };
        let given = |name: &str, dtype| given(&graph, &[(name.to_owned(), array(dtype))]);
        assert_eq!(given("y", DType::F32).unwrap().len(), 1);
        assert!(matches!(given("z", DType::F32), Err(VerifyError::NoArray(name)) if name == "y"));
        let error = given("y", DType::I32).unwrap_err().to_string();
        assert_eq!(error, "the expected `y` is i32 [2, 2], where the model gives f32 [2, 2]");
    }
}
