//! Tensors on a device whose types and ranks are known at run time only.

use aot_ir::DType;
use aot_runtime::{
    Device, DeviceTensor, Element, Error, InputRef, OutputRef, Result, TensorView, bf16, f16,
};

/// A tensor in a device's memory.
pub trait OnDevice {
    /// To be read by a run.
    fn input(&self) -> InputRef<'_>;

    /// To be written by a run.
    fn output(&mut self) -> OutputRef<'_>;

    /// Waits for what writes it and copies its elements, as models lay them out.
    ///
    /// # Errors
    /// When the device fails.
    fn bytes(&self) -> Result<Vec<u8>>;
}

impl<T: Element, const R: usize> OnDevice for DeviceTensor<T, R> {
    fn input(&self) -> InputRef<'_> {
        self.erase_input()
    }

    fn output(&mut self) -> OutputRef<'_> {
        self.erase()
    }

    fn bytes(&self) -> Result<Vec<u8>> {
        Ok(T::bytes_of(self.to_tensor()?.as_slice()).to_vec())
    }
}

/// Whether [`on_device`] makes tensors of an element type: not of those of less than a byte and of
/// narrow floats.
pub fn has_device_tensor(dtype: DType) -> bool {
    dtype.bits() >= 8 && !(dtype.bits() == 8 && dtype.is_float())
}

/// A tensor of the elements in `bytes`; those that `bytes` does not reach are zero.
///
/// # Errors
/// When the device fails, or there is no [`DeviceTensor`] of the type or the rank (above 8).
pub fn on_device(
    device: &Device,
    dtype: DType,
    shape: &[usize],
    bytes: &[u8],
) -> Result<Box<dyn OnDevice>> {
    match dtype {
        DType::Bool => typed::<bool>(device, shape, bytes),
        DType::I8 => typed::<i8>(device, shape, bytes),
        DType::U8 => typed::<u8>(device, shape, bytes),
        DType::I16 => typed::<i16>(device, shape, bytes),
        DType::U16 => typed::<u16>(device, shape, bytes),
        DType::I32 => typed::<i32>(device, shape, bytes),
        DType::U32 => typed::<u32>(device, shape, bytes),
        DType::I64 => typed::<i64>(device, shape, bytes),
        DType::U64 => typed::<u64>(device, shape, bytes),
        DType::F16 => typed::<f16>(device, shape, bytes),
        DType::Bf16 => typed::<bf16>(device, shape, bytes),
        DType::F32 => typed::<f32>(device, shape, bytes),
        DType::F64 => typed::<f64>(device, shape, bytes),
        _ => Err(Error::Execution(format!("no typed device tensor of {dtype}"))),
    }
}

fn typed<T: Element>(device: &Device, shape: &[usize], bytes: &[u8]) -> Result<Box<dyn OnDevice>> {
    let mut elements = vec![T::default(); shape.iter().product()];
    T::copy_from_bytes(&mut elements, bytes);
    match *shape {
        [] => ranked(device, &elements, []),
        [a] => ranked(device, &elements, [a]),
        [a, b] => ranked(device, &elements, [a, b]),
        [a, b, c] => ranked(device, &elements, [a, b, c]),
        [a, b, c, d] => ranked(device, &elements, [a, b, c, d]),
        [a, b, c, d, e] => ranked(device, &elements, [a, b, c, d, e]),
        [a, b, c, d, e, f] => ranked(device, &elements, [a, b, c, d, e, f]),
        [a, b, c, d, e, f, g] => ranked(device, &elements, [a, b, c, d, e, f, g]),
        [a, b, c, d, e, f, g, h] => ranked(device, &elements, [a, b, c, d, e, f, g, h]),
        _ => Err(Error::Execution(format!("no device tensor of rank {}", shape.len()))),
    }
}

fn ranked<T: Element, const R: usize>(
    device: &Device,
    elements: &[T],
    shape: [usize; R],
) -> Result<Box<dyn OnDevice>> {
    Ok(Box::new(DeviceTensor::upload(device, TensorView::new(elements, shape)?)?))
}
