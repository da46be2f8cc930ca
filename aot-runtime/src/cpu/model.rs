//! A graph on the CPU.

use aot_ir::exec::{ExecError, Executor, Tensor};
use aot_ir::{Def, Graph, GuardError, ValueId};
use std::time::{Duration, Instant};

use crate::device::Memory;
use crate::loaded::Signature;
use crate::ports::{InputData, InputRef, OutputData, OutputRef};
use crate::profile::Span;
use crate::{Error, Result};

/// A graph that the reference executor runs.
#[derive(Debug)]
pub(crate) struct CpuModel {
    executor: Executor,
    weight_bytes: u64,
}

impl CpuModel {
    pub(crate) fn load(graph: &Graph) -> Result<Self> {
        if let Some(op) = graph.on_host().into_iter().find(|op| !op.is_available()) {
            return Err(Error::FeatureOff(op.feature()));
        }
        let weight_bytes = graph.constants().map(|(_, c)| c.bytes.len() as u64).sum();
        Ok(Self { executor: Executor::new(graph).map_err(failed)?, weight_bytes })
    }

    pub(crate) fn signature(&self) -> Signature {
        Signature::of_graph(self.executor.graph())
    }

    pub(crate) fn weight_bytes(&self) -> u64 {
        self.weight_bytes
    }

    pub(crate) fn run(
        &self,
        signature: &Signature,
        inputs: &[InputRef<'_>],
        outputs: &mut [OutputRef<'_>],
    ) -> Result<()> {
        self.run_observed(signature, inputs, outputs, &mut |_, _| {})
    }

    /// Runs the graph; what its nodes did, and how long that took.
    pub(crate) fn profile(
        &self,
        signature: &Signature,
        inputs: &[InputRef<'_>],
        outputs: &mut [OutputRef<'_>],
    ) -> Result<Vec<Span>> {
        let graph = self.executor.graph();
        let began = Instant::now();
        let mut start = Duration::ZERO;
        let mut spans: Vec<Span> = Vec::new();
        self.run_observed(signature, inputs, outputs, &mut |value, _| {
            let Def::Node(id, output) = graph[value].def else { return };
            let now = began.elapsed();
            if output == 0 {
                let node = &graph[id];
                let (what, nodes) = (node.op.name().to_owned(), vec![node.name.clone()]);
                let time = now - start;
                spans.push(Span { what, nodes, start, time, work: None, floor: None });
            }
            start = now;
        })?;
        Ok(spans)
    }

    fn run_observed(
        &self,
        signature: &Signature,
        inputs: &[InputRef<'_>],
        outputs: &mut [OutputRef<'_>],
        observe: &mut dyn FnMut(ValueId, &Tensor),
    ) -> Result<()> {
        let mut tensors = Vec::with_capacity(inputs.len());
        for (i, input) in inputs.iter().enumerate() {
            let bytes = match input.data {
                InputData::Host(bytes) => bytes,
                InputData::Device(Memory::Host(bytes)) => bytes.as_slice(),
                #[cfg(feature = "cuda")]
                InputData::Device(_) => return Err(other_device(format!("input {i}"))),
            };
            let tensor = Tensor::from_bytes(input.dtype, input.shape.to_vec(), bytes);
            tensors.push(tensor.map_err(|e| Error::Execution(format!("input {i}: {e}")))?);
        }
        let results =
            self.executor.run_observed(&tensors, observe).map_err(|error| match error {
                ExecError::Bind(source) => signature.at_line(source),
                ExecError::Guard(GuardError::Unequal { node, lhs, rhs, left, right }) => {
                    Error::Guard { node, lhs, rhs, left, right }
                }
                other => failed(other),
            })?;
        let named = signature.outputs.iter().map(|port| port.name.as_str());
        for (i, ((output, result), name)) in outputs.iter_mut().zip(results).zip(named).enumerate()
        {
            if output.dtype != result.dtype() {
                return Err(Error::Execution(format!("output {i} has an unforeseen type")));
            }
            output.resize(name, result.shape().to_vec())?;
            let bytes = result.to_bytes();
            match &mut output.data {
                OutputData::Host(sink) => sink.store(&bytes),
                OutputData::Device { memory: memory @ Memory::Host(_), .. } => {
                    memory.write(&bytes)?;
                }
                #[cfg(feature = "cuda")]
                OutputData::Device { .. } => return Err(other_device(format!("output {i}"))),
            }
        }
        Ok(())
    }
}

#[cfg(feature = "cuda")]
fn other_device(name: String) -> Error {
    Error::OtherDevice { name, found: "a GPU".to_owned(), expected: "the CPU".to_owned() }
}

fn failed(error: ExecError) -> Error {
    Error::Execution(error.to_string())
}
