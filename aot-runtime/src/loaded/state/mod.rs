//! What a model keeps from one run to the next.

mod saved;

use super::{Signature, Sizes};
use crate::device::Memory;
use crate::ports::{InputData, InputRef, OutputRef};
use crate::{Device, Result};
use saved::Saved;

/// The tensors that the next run finds; none before the first run.
#[derive(Debug, Default)]
pub(super) struct State {
    kept: Option<Vec<Kept>>,
}

/// One of them, on the device, row-major.
#[derive(Debug)]
struct Kept {
    shape: Vec<usize>,
    memory: Memory,
    /// Memory of a run before, for the next one to write to.
    spare: Option<Memory>,
}

/// What a run makes for the next one.
struct Made {
    shape: Vec<usize>,
    memory: Memory,
}

impl State {
    /// The shapes of all inputs: those of state among those of the caller's.
    pub(super) fn shapes(
        &self,
        signature: &Signature,
        inputs: &[InputRef<'_>],
    ) -> Result<Vec<Vec<usize>>> {
        let kept = match &self.kept {
            Some(kept) => kept.iter().map(|kept| kept.shape.clone()).collect(),
            None => signature.first_shapes(inputs)?,
        };
        let (mut kept, mut others) = (kept.into_iter(), inputs.iter());
        let shapes = (0..signature.inputs.len()).map(|i| match signature.is_kept(i) {
            true => kept.next().unwrap_or_default(),
            false => others.next().map(|input| input.shape.to_vec()).unwrap_or_default(),
        });
        Ok(shapes.collect())
    }

    /// Does a run of these sizes with what is kept among the caller's tensors, and keeps what it makes. After a run
    /// that fails everything is as it was.
    pub(super) fn run(
        &mut self,
        (signature, device, sizes): (&Signature, &Device, &Sizes),
        inputs: &[InputRef<'_>],
        outputs: &mut [OutputRef<'_>],
        run: impl FnOnce(&[InputRef<'_>], &mut [OutputRef<'_>]) -> Result<()>,
    ) -> Result<()> {
        let kept = match &mut self.kept {
            Some(kept) => kept,
            None => {
                let shapes = signature.first_shapes(inputs)?;
                let ports = signature.state.iter().map(|s| &signature.inputs[s.input as usize]);
                let kept = ports.zip(shapes).map(|(port, shape)| {
                    let bytes = byte_length(port.dtype, &shape)?;
                    let mut memory = device.allocate(bytes)?;
                    memory.write(&vec![0; bytes])?;
                    Ok(Kept { shape, memory, spare: None })
                });
                self.kept.insert(kept.collect::<Result<_>>()?)
            }
        };
        let mut made = Vec::with_capacity(kept.len());
        for (state, kept) in signature.state.iter().zip(kept.iter_mut()) {
            let output = state.output as usize;
            let shape = sizes.outputs()[output].clone();
            let bytes = byte_length(signature.outputs[output].dtype, &shape)?;
            let memory = match kept.spare.take().filter(|spare| spare.bytes() == bytes) {
                Some(spare) => spare,
                None => device.allocate(bytes)?,
            };
            made.push(Made { shape, memory });
        }
        let mut others = inputs.iter();
        let mut all_inputs = Vec::with_capacity(signature.inputs.len());
        for (i, port) in signature.inputs.iter().enumerate() {
            let state = signature.state.iter().position(|s| s.input as usize == i);
            match state {
                Some(k) => all_inputs.push(InputRef {
                    dtype: port.dtype,
                    shape: &kept[k].shape,
                    data: InputData::Device(&kept[k].memory),
                }),
                None => all_inputs.extend(others.next().copied()),
            }
        }
        let mut slots: Vec<Option<&mut Made>> = made.iter_mut().map(Some).collect();
        let mut others = outputs.iter_mut();
        let mut all_outputs = Vec::with_capacity(signature.outputs.len());
        for (j, port) in signature.outputs.iter().enumerate() {
            let state = signature.state.iter().position(|s| s.output as usize == j);
            match state.and_then(|k| slots[k].take()) {
                Some(Made { shape, memory }) => {
                    all_outputs.push(OutputRef::device(port.dtype, memory, shape));
                }
                None => all_outputs.extend(others.next().map(OutputRef::reborrow)),
            }
        }
        run(&all_inputs, &mut all_outputs)?;
        let shapes: Vec<Vec<usize>> = all_outputs.iter().map(|o| o.shape().to_vec()).collect();
        drop(all_outputs);
        let is_made = |j: usize| signature.state.iter().any(|s| s.output as usize == j);
        let theirs = shapes.into_iter().enumerate().filter(|(j, _)| !is_made(*j));
        for (output, (_, shape)) in outputs.iter_mut().zip(theirs) {
            output.set_shape(shape);
        }
        for (kept, Made { shape, memory }) in kept.iter_mut().zip(made) {
            kept.spare = Some(std::mem::replace(&mut kept.memory, memory));
            kept.shape = shape;
        }
        Ok(())
    }

    /// A copy.
    pub(super) fn duplicate(&self) -> Result<Self> {
        let Some(kept) = &self.kept else { return Ok(Self::default()) };
        let copies = kept.iter().map(|Kept { shape, memory, .. }| {
            Ok(Kept { shape: shape.clone(), memory: memory.duplicate()?, spare: None })
        });
        Ok(Self { kept: Some(copies.collect::<Result<_>>()?) })
    }

    /// All of it as bytes that say what they are.
    pub(super) fn save(&self, signature: &Signature) -> Result<Vec<u8>> {
        let mut saved = Saved::new(signature);
        for (kept, state) in self.kept.iter().flatten().zip(&signature.state) {
            let mut bytes = Vec::new();
            kept.memory.read(&mut bytes)?;
            saved.add(&signature.inputs[state.input as usize], &kept.shape, &bytes);
        }
        saved.write()
    }

    /// What was saved of a session of the same model.
    pub(super) fn restore(signature: &Signature, device: &Device, bytes: &[u8]) -> Result<Self> {
        let saved = Saved::read(signature, bytes)?;
        if saved.tensors.is_empty() {
            return Ok(Self::default());
        }
        let mut kept = Vec::with_capacity(saved.tensors.len());
        for (tensor, data) in saved.parts()? {
            let mut memory = device.allocate(data.len())?;
            memory.write(data)?;
            kept.push(Kept { shape: tensor.extents()?, memory, spare: None });
        }
        Ok(Self { kept: Some(kept) })
    }
}

fn byte_length(dtype: aot_ir::DType, shape: &[usize]) -> Result<usize> {
    let elements = crate::tensor::elements_of(shape);
    let bytes = elements.and_then(|n| dtype.bytes_for(n as u64));
    let bytes = bytes.and_then(|n| usize::try_from(n).ok());
    bytes.ok_or_else(|| crate::Error::Elements { found: 0, shape: shape.to_vec() })
}
