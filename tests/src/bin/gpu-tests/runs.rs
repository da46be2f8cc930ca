//! Runs of networks, with tensors of the host.

use aot_ir::exec::Tensor;
use aot_runtime::loaded::Loaded;
use aot_runtime::{Device, InputRef, OutputRef};
use aot_tests::device::{has_device_tensor, on_device};

/// Tensors with their bytes as inputs of a run.
pub(super) fn on_host<'a>(
    tensors: &'a [Tensor],
    bytes: &'a [Vec<u8>],
) -> Result<Vec<InputRef<'a>>, String> {
    let input = |(t, b): (&'a Tensor, &'a Vec<u8>)| InputRef::host(t.dtype(), t.shape(), b);
    let refs: aot_runtime::Result<_> = tensors.iter().zip(bytes).map(input).collect();
    refs.map_err(|e| e.to_string())
}

/// What a run gives that finds all bits set in its outputs; those of element types that have no
/// [`DeviceTensor`](aot_runtime::DeviceTensor) are not prepared so.
pub(super) fn poisoned(
    device: &Device,
    loaded: &Loaded,
    inputs: &[Tensor],
) -> Result<Vec<Tensor>, String> {
    let text = |e: aot_runtime::Error| e.to_string();
    let ports = &loaded.signature().outputs;
    if ports.iter().any(|port| !has_device_tensor(port.dtype)) {
        return on_gpu(loaded, inputs);
    }
    let bytes: Vec<Vec<u8>> = inputs.iter().map(Tensor::to_bytes).collect();
    let refs = on_host(inputs, &bytes)?;
    let sizes = loaded.bind(&refs).map_err(text)?;
    let mut outputs = Vec::new();
    for (port, shape) in ports.iter().zip(sizes.outputs()) {
        let elements: usize = shape.iter().product();
        let bytes = port.dtype.bytes_for(elements as u64).unwrap_or(0) as usize;
        outputs.push(on_device(device, port.dtype, shape, &vec![0xff; bytes]).map_err(text)?);
    }
    let mut sinks: Vec<OutputRef<'_>> = outputs.iter_mut().map(|t| t.output()).collect();
    loaded.run(&sizes, None, &refs, &mut sinks).map_err(text)?;
    let shapes: Vec<Vec<usize>> = sinks.iter().map(|sink| sink.shape().to_vec()).collect();
    drop(sinks);
    let tensors = outputs.iter().zip(ports).zip(&shapes);
    tensors
        .map(|((output, port), shape)| {
            let bytes = output.bytes().map_err(text)?;
            Tensor::from_bytes(port.dtype, shape.clone(), &bytes).map_err(|e| e.to_string())
        })
        .collect()
}

/// What a run gives.
pub(super) fn on_gpu(loaded: &Loaded, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
    let text = |e: aot_runtime::Error| e.to_string();
    let bytes: Vec<Vec<u8>> = inputs.iter().map(Tensor::to_bytes).collect();
    let refs = on_host(inputs, &bytes)?;
    let sizes = loaded.bind(&refs).map_err(text)?;
    let ports = &loaded.signature().outputs;
    let mut sinks: Vec<Vec<u8>> = vec![Vec::new(); ports.len()];
    let mut outputs: Vec<OutputRef<'_>> = ports
        .iter()
        .zip(sizes.outputs())
        .zip(&mut sinks)
        .map(|((port, shape), sink)| OutputRef::bytes(port.dtype, shape, sink))
        .collect();
    loaded.run(&sizes, None, &refs, &mut outputs).map_err(text)?;
    let shapes: Vec<Vec<usize>> = outputs.iter().map(|output| output.shape().to_vec()).collect();
    drop(outputs);
    ports
        .iter()
        .zip(&shapes)
        .zip(&sinks)
        .map(|((port, shape), bytes)| {
            Tensor::from_bytes(port.dtype, shape.clone(), bytes).map_err(|e| e.to_string())
        })
        .collect()
}
