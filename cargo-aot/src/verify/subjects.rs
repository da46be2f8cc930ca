//! Runs of what is compared with the reference.

use std::collections::HashMap;
use std::rc::Rc;

use aot_ir::dim::{ShapePattern, bind};
use aot_ir::exec::{ExecError, Executor, Tensor};
use aot_ir::{DType, Graph, ValueId};
use aot_runtime::InputRef;
use aot_runtime::loaded::Loaded;

use super::kept::{Content, Kept};
use super::report::Subject;
use crate::lower::arena::plan_arena;
use crate::lower::interpret::{Memory, interpret_observed};
use crate::lower::plan::Plan;
use crate::npy::Array;
use crate::pipeline::run_once;

/// What a subject gave.
pub(super) struct Found {
    pub(super) subject: Subject,
    /// Outputs of the compiled model in order, or why there are none.
    pub(super) outputs: Result<Vec<Tensor>, String>,
    /// By the value of the imported graph.
    pub(super) layers: HashMap<ValueId, Content>,
}

impl Found {
    fn new(subject: Subject, run: Result<(Vec<Tensor>, Layers), String>) -> Self {
        match run {
            Ok((outputs, layers)) => Self { subject, outputs: Ok(outputs), layers },
            Err(reason) => Self { subject, outputs: Err(reason), layers: HashMap::new() },
        }
    }
}

type Layers = HashMap<ValueId, Content>;

/// The compiled graph by an executor.
pub(super) fn graph(
    subject: Subject,
    executor: &Executor,
    kept: &[Kept],
    inputs: &[Tensor],
) -> Found {
    Found::new(subject, observed(executor, kept, inputs).map_err(|error| error.to_string()))
}

fn observed(
    executor: &Executor,
    kept: &[Kept],
    inputs: &[Tensor],
) -> Result<(Vec<Tensor>, Layers), ExecError> {
    let sources: HashMap<ValueId, ValueId> = kept.iter().map(|k| (k.compiled, k.source)).collect();
    let mut layers = HashMap::new();
    let outputs = executor.run_observed(inputs, &mut |value, tensor| {
        if let Some(source) = sources.get(&value) {
            layers.insert(*source, Content::Tensor(tensor.clone()));
        }
    })?;
    Ok((outputs, layers))
}

/// The model on a device, and the one that gives its intermediate values, if there is one.
pub(super) fn device(subject: Subject, loaded: &Loaded, inputs: &[Tensor]) -> Found {
    let outputs = tensors(loaded, inputs);
    Found::new(subject, outputs.map(|outputs| (outputs, HashMap::new())))
}

/// Outputs of a loaded model.
pub(super) fn tensors(loaded: &Loaded, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
    let bytes: Vec<Vec<u8>> = inputs.iter().map(Tensor::to_bytes).collect();
    let refs = inputs.iter().zip(&bytes).map(|(t, b)| InputRef::host(t.dtype(), t.shape(), b));
    let refs = refs.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    let arrays = run_once(loaded, &refs).map_err(|error| error.to_string())?;
    arrays.into_iter().map(|array| tensor(&array).map_err(|error| error.to_string())).collect()
}

/// An array as a tensor.
pub(super) fn tensor(array: &Array) -> Result<Tensor, ExecError> {
    Tensor::from_bytes(array.dtype, array.shape.clone(), &array.bytes)
}

/// Values that lie in whole buffers, given by their numbers in the plan.
pub(super) fn in_buffers(
    plan: &Plan<'_>,
    kept: &[Kept],
    inputs: &[Tensor],
    buffers: &HashMap<u32, Rc<Tensor>>,
) -> Result<Layers, String> {
    let atoms = atoms(plan.graph, inputs)?;
    let mut layers = HashMap::new();
    for Kept { source, compiled, home, .. } in kept {
        if let Some(buffer) = buffers.get(&home.buffer) {
            let shape = &plan.graph[*compiled].shape;
            let content = Content::part(buffer.clone(), home, shape, &atoms);
            layers.insert(*source, content.map_err(|error| error.to_string())?);
        }
    }
    Ok(layers)
}

/// The groups of a plan, interpreted.
pub(super) fn groups(
    plan: &Plan<'_>,
    bounds: &[Vec<i64>],
    kept: &[Kept],
    inputs: &[Tensor],
) -> Found {
    Found::new(Subject::Groups, interpreted(plan, bounds, kept, inputs))
}

/// No arena longer than this is made for an interpretation, in bytes.
const LONGEST_ARENA: u64 = 1 << 30;

fn interpreted(
    plan: &Plan<'_>,
    bounds: &[Vec<i64>],
    kept: &[Kept],
    inputs: &[Tensor],
) -> Result<(Vec<Tensor>, Layers), String> {
    let atoms = atoms(plan.graph, inputs)?;
    let holds = |bound: &&Vec<i64>| bound.iter().zip(&atoms).all(|(bound, atom)| atom <= bound);
    let arena = bounds.iter().find(holds).map(|bound| plan_arena(plan, bound));
    let arena = arena.filter(|arena| arena.total <= LONGEST_ARENA);
    let arena = arena.unwrap_or_else(|| plan_arena(plan, &atoms));
    let bytes: Vec<Vec<u8>> = inputs.iter().map(Tensor::to_bytes).collect();
    let bytes: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
    let completed = completed(plan, kept);
    let mut buffers = HashMap::new();
    let mut observe = |step: usize, memory: &Memory| {
        for &(buffer, dtype) in completed.get(&step).into_iter().flatten() {
            let bytes = memory.bytes(buffer);
            let elements = bytes.len() * 8 / dtype.bits() as usize;
            if let Ok(tensor) = Tensor::from_bytes(dtype, vec![elements], bytes) {
                buffers.insert(buffer, Rc::new(tensor));
            }
        }
    };
    let (found, atoms) = interpret_observed(plan, &arena, &atoms, &bytes, &mut observe)
        .map_err(|error| error.to_string())?;
    let graph = plan.graph;
    let outputs = found.iter().zip(&graph.outputs).map(|(bytes, (_, value))| {
        let value = &graph[*value];
        let extents = value.shape.iter().map(|dim| dim.eval(atoms.as_slice()));
        let extents = extents.collect::<Result<Vec<i64>, _>>().map_err(|e| e.to_string())?;
        let shape = extents.iter().map(|n| usize::try_from(*n).unwrap_or(0)).collect();
        Tensor::from_bytes(value.dtype, shape, bytes).map_err(|error| error.to_string())
    });
    Ok((outputs.collect::<Result<_, String>>()?, in_buffers(plan, kept, inputs, &buffers)?))
}

/// The buffers of kept values by the step after which nothing more is written to them.
fn completed(plan: &Plan<'_>, kept: &[Kept]) -> HashMap<usize, Vec<(u32, DType)>> {
    let mut last = HashMap::new();
    for (step, group) in plan.steps.iter().enumerate() {
        for operand in group.written() {
            last.insert(group.operands[operand.index()].buffer, step);
        }
    }
    let mut out: HashMap<usize, Vec<(u32, DType)>> = HashMap::new();
    for kept in kept {
        let here = (kept.home.buffer, kept.stored);
        if let Some(step) = last.get(&here.0) {
            let all = out.entry(*step).or_default();
            if !all.contains(&here) {
                all.push(here);
            }
        }
    }
    out
}

/// The atoms of a graph's symbols for inputs of these shapes.
pub(super) fn atoms(graph: &Graph, inputs: &[Tensor]) -> Result<Vec<i64>, String> {
    let patterns = graph.inputs.iter().zip(inputs).map(|(&input, tensor)| {
        let value = &graph[input];
        ShapePattern { name: &value.name, dims: &value.shape, extents: tensor.shape() }
    });
    let patterns: Vec<_> = patterns.collect();
    bind(&graph.symbols, &patterns).map_err(|error| error.to_string())
}
