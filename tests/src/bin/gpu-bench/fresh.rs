//! Calls that make a tensor for their output, as generated crates do.

use super::placed::Call;
use super::{Failure, microseconds, quantiles};
use aot_ir::DType;
use aot_runtime::loaded::Loaded;
use aot_runtime::{Awaited, Output, Result, Tensor};
use std::time::Instant;

/// Calls of a size, after one that is not counted.
const CALLS: usize = 5;

/// Means over the sizes of what calls take, as JSON: with a tensor that gets its elements from the run, and with one of
/// zeros that are overwritten. Null unless the model has one output, in binary32 and of rank 3.
pub(super) fn measure(loaded: &Loaded, calls: &[Call]) -> Result<serde_json::Value, Failure> {
    let outputs = &loaded.signature().outputs;
    if !matches!(outputs.as_slice(), [port] if port.dtype == DType::F32 && port.shape.len() == 3) {
        return Ok(serde_json::Value::Null);
    }
    let mean = |one: fn(&Loaded, &Call) -> Result<f64>| -> Result<f64, Failure> {
        let mut sum = 0.0;
        for call in calls {
            one(loaded, call)?;
            let times = (0..CALLS).map(|_| one(loaded, call)).collect::<Result<Vec<_>>>()?;
            sum += quantiles(times)[0];
        }
        Ok(sum / calls.len().max(1) as f64)
    };
    Ok(serde_json::json!({ "awaited": mean(awaited)?, "zeroed": mean(zeroed)? }))
}

fn awaited(loaded: &Loaded, call: &Call) -> Result<f64> {
    let start = Instant::now();
    let inputs = call.refs()?;
    let sizes = loaded.bind(&inputs)?;
    let mut output = Awaited::<f32, 3>::new(sizes.output(0)?)?;
    loaded.run(&sizes, None, &inputs, &mut [output.erase()])?;
    std::hint::black_box(output.tensor()?);
    Ok(microseconds(start))
}

fn zeroed(loaded: &Loaded, call: &Call) -> Result<f64> {
    let start = Instant::now();
    let inputs = call.refs()?;
    let sizes = loaded.bind(&inputs)?;
    let mut output = Tensor::<f32, 3>::zeros(sizes.output(0)?)?;
    loaded.run(&sizes, None, &inputs, &mut [Output::from(&mut output).erase()])?;
    std::hint::black_box(output);
    Ok(microseconds(start))
}
