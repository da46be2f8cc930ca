//! What a model keeps from one run to the next.

mod layout;
mod saved;

use std::borrow::Cow;

use super::{Signature, Sizes};
use crate::device::Memory;
use crate::ports::{InputData, InputRef, OutputRef};
use crate::{Device, Error, Result};
use layout::Layout;
use saved::Saved;

/// The tensors that the next run finds; none before the first run.
#[derive(Debug, Default)]
pub(super) struct State {
    kept: Option<Vec<Kept>>,
}

/// One of them, on the device: row-major, or as runs append to it.
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

impl Kept {
    /// What a first run with these other inputs finds: zeros.
    fn initial(
        signature: &Signature,
        device: &Device,
        inputs: &[InputRef<'_>],
    ) -> Result<Vec<Self>> {
        let shapes = signature.first_shapes(inputs)?;
        let kept = signature.state.iter().zip(shapes).map(|(state, shape)| {
            let port = &signature.inputs[state.input as usize];
            let layout = Layout::new(port, state.appended, &shape)?;
            let mut memory = device.allocate(layout.bytes())?;
            memory.clear()?;
            Ok(Self { shape, memory, spare: None })
        });
        kept.collect()
    }
}

impl State {
    /// The shapes of what a run with these other inputs finds, in order.
    pub(super) fn shapes(
        &self,
        signature: &Signature,
        inputs: &[InputRef<'_>],
    ) -> Result<Vec<Cow<'_, [usize]>>> {
        Ok(match &self.kept {
            Some(kept) => kept.iter().map(|kept| Cow::Borrowed(&*kept.shape)).collect(),
            None => signature.first_shapes(inputs)?.into_iter().map(Cow::Owned).collect(),
        })
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
        let mut first = match self.kept {
            Some(_) => Vec::new(),
            None => Kept::initial(signature, device, inputs)?,
        };
        let kept = self.kept.as_mut().unwrap_or(&mut first);
        let mut made = Vec::with_capacity(kept.len());
        for (state, kept) in signature.state.iter().zip(kept.iter_mut()) {
            let output = state.output as usize;
            let shape = sizes.outputs()[output].clone();
            if state.appended.is_some() {
                made.push(Made { shape, memory: alias(&kept.memory)? });
                continue;
            }
            let bytes = byte_length(signature.outputs[output].dtype, &shape)?;
            let memory = match kept.spare.take().filter(|spare| spare.bytes() == bytes) {
                Some(spare) => spare,
                None => device.allocate(bytes)?,
            };
            made.push(Made { shape, memory });
        }
        let (mut states, mut others) =
            (signature.state.iter().zip(&*kept).peekable(), inputs.iter());
        let mut all_inputs = Vec::with_capacity(signature.inputs.len());
        for (i, port) in signature.inputs.iter().enumerate() {
            match states.next_if(|(state, _)| state.input as usize == i) {
                Some((_, Kept { shape, memory, .. })) => {
                    let data = InputData::Device(memory);
                    all_inputs.push(InputRef { dtype: port.dtype, shape, data });
                }
                None => all_inputs.extend(others.next().copied()),
            }
        }
        let mut slots: Vec<Option<&mut Made>> = signature.outputs.iter().map(|_| None).collect();
        for (state, made) in signature.state.iter().zip(&mut made) {
            slots[state.output as usize] = Some(made);
        }
        let mut others = outputs.iter_mut();
        let mut theirs = Vec::with_capacity(others.len());
        let mut all_outputs = Vec::with_capacity(signature.outputs.len());
        for (port, slot) in signature.outputs.iter().zip(slots) {
            match slot {
                Some(Made { shape, memory }) => {
                    all_outputs.push(OutputRef::device(port.dtype, memory, shape));
                }
                None => {
                    theirs.push(all_outputs.len());
                    all_outputs.extend(others.next().map(OutputRef::reborrow));
                }
            }
        }
        run(&all_inputs, &mut all_outputs)?;
        let theirs = theirs.iter().filter_map(|j| all_outputs.get(*j));
        let shapes: Vec<Vec<usize>> = theirs.map(|output| output.shape().to_vec()).collect();
        drop(all_outputs);
        for (output, shape) in outputs.iter_mut().zip(shapes) {
            output.set_shape(shape);
        }
        let states = signature.state.iter().zip(kept.iter_mut());
        for ((state, kept), Made { shape, memory }) in states.zip(made) {
            kept.shape = shape;
            if state.appended.is_none() {
                kept.spare = Some(std::mem::replace(&mut kept.memory, memory));
            }
        }
        if self.kept.is_none() {
            self.kept = Some(first);
        }
        Ok(())
    }

    /// Bytes on the device, those of memory that waits for the next run included.
    pub(super) fn bytes(&self) -> u64 {
        let kept = self.kept.iter().flatten();
        let own = kept.map(|k| k.memory.bytes() + k.spare.as_ref().map_or(0, Memory::bytes));
        own.map(|bytes| bytes as u64).sum()
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
            let port = &signature.inputs[state.input as usize];
            let layout = Layout::new(port, state.appended, &kept.shape)?;
            saved.add(port, &kept.shape, &layout.gather(&bytes));
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
        for ((tensor, data), state) in saved.parts()?.into_iter().zip(&signature.state) {
            let shape = tensor.extents()?;
            let port = &signature.inputs[state.input as usize];
            if state.appended.is_some_and(|a| shape[a.axis as usize] as u64 > a.capacity) {
                let reason = format!("`{}` is longer than the model holds", port.name);
                return Err(Error::SavedState { reason });
            }
            let layout = Layout::new(port, state.appended, &shape)?;
            let mut memory = device.allocate(layout.bytes())?;
            memory.write(&layout.spread(data))?;
            kept.push(Kept { shape, memory, spare: None });
        }
        Ok(Self { kept: Some(kept) })
    }
}

/// The memory of an input as that of the output that goes on in it.
fn alias(memory: &Memory) -> Result<Memory> {
    memory.share().ok_or_else(|| Error::artifact("the program", "the CPU appends to nothing"))
}

/// Does a run that is given all inputs and outputs, of which some lie as runs append to them.
pub(super) fn run_given(
    (signature, device): (&Signature, &Device),
    inputs: &[InputRef<'_>],
    outputs: &mut [OutputRef<'_>],
    run: impl FnOnce(&[InputRef<'_>], &mut [OutputRef<'_>]) -> Result<()>,
) -> Result<()> {
    let mut made: Vec<Option<Made>> = (0..outputs.len()).map(|_| None).collect();
    let mut kept: Vec<Option<Memory>> = (0..inputs.len()).map(|_| None).collect();
    for state in signature.state.iter().filter(|state| state.appended.is_some()) {
        let (input, output) = (state.input as usize, state.output as usize);
        let given = &inputs[input];
        let layout = Layout::new(&signature.inputs[input], state.appended, given.shape)?;
        let mut memory = device.allocate(layout.bytes())?;
        match given.data {
            InputData::Host(bytes) => memory.write(&layout.spread(bytes))?,
            InputData::Device(tensor) => {
                let mut bytes = Vec::new();
                tensor.read(&mut bytes)?;
                memory.write(&layout.spread(&bytes))?;
            }
        }
        made[output] =
            Some(Made { shape: outputs[output].shape().to_vec(), memory: alias(&memory)? });
        kept[input] = Some(memory);
    }
    let all_inputs: Vec<InputRef<'_>> = inputs
        .iter()
        .zip(&kept)
        .map(|(given, kept)| match kept {
            Some(memory) => InputRef { data: InputData::Device(memory), ..*given },
            None => *given,
        })
        .collect();
    let mut all_outputs: Vec<OutputRef<'_>> = outputs
        .iter_mut()
        .zip(&mut made)
        .map(|(given, made)| match made {
            Some(Made { shape, memory }) => OutputRef::device(given.dtype, memory, shape),
            None => given.reborrow(),
        })
        .collect();
    run(&all_inputs, &mut all_outputs)?;
    let shapes: Vec<Vec<usize>> = all_outputs.iter().map(|o| o.shape().to_vec()).collect();
    drop(all_outputs);
    for (output, shape) in outputs.iter_mut().zip(shapes) {
        output.set_shape(shape);
    }
    for state in signature.state.iter().filter(|state| state.appended.is_some()) {
        let output = state.output as usize;
        let Some(Made { shape, memory }) = &made[output] else { continue };
        let layout = Layout::new(&signature.outputs[output], state.appended, shape)?;
        let mut bytes = Vec::new();
        memory.read(&mut bytes)?;
        outputs[output].store(&layout.gather(&bytes))?;
    }
    Ok(())
}

fn byte_length(dtype: aot_ir::DType, shape: &[usize]) -> Result<usize> {
    let elements = crate::tensor::elements_of(shape);
    let bytes = elements.and_then(|n| dtype.bytes_for(n as u64));
    let bytes = bytes.and_then(|n| usize::try_from(n).ok());
    bytes.ok_or_else(|| Error::Elements { found: 0, shape: shape.to_vec() })
}
