//! Whole graphs on tensors.

use super::error::ExecError;
use super::loops;
use super::operator::run;
use super::plan::{Step, steps};
use super::sizes::Sizes;
use super::tensor::Tensor;
use crate::dim::ShapePattern;
use crate::{Def, Graph, Node, NodeId, Op, ValueId};
use std::collections::HashMap;

/// Runs a graph on the CPU.
///
/// What depends on constants alone is computed once, when the executor is made.
#[derive(Debug)]
pub struct Executor {
    graph: Graph,
    /// Constants, and what was computed from them, by value.
    known: Vec<Option<Tensor>>,
    steps: Vec<Step>,
    /// Of the bodies of loops.
    bodies: HashMap<NodeId, Executor>,
    wide: bool,
}

/// Results computed from constants are kept if they are at most this long, or not much longer than what
/// they were computed from.
const SMALL: usize = 16 << 10;

impl Executor {
    /// An executor of a graph.
    ///
    /// # Errors
    /// When a constant's bytes do not match its type and shape.
    pub fn new(graph: &Graph) -> Result<Self, ExecError> {
        Self::with_mode(graph, false)
    }

    /// An executor that holds and computes every float in `f64`: an oracle. Results are `f64` inside
    /// ([`Tensor::to_f64`]) whatever their element type.
    ///
    /// # Errors
    /// As [`Executor::new`].
    pub fn wide(graph: &Graph) -> Result<Self, ExecError> {
        Self::with_mode(graph, true)
    }

    pub(super) fn with_mode(graph: &Graph, wide: bool) -> Result<Self, ExecError> {
        let graph = graph.clone();
        let mut known: Vec<Option<Tensor>> = vec![None; graph.values().len()];
        let needed: Vec<ValueId> = steps(&graph, &|_| false)
            .iter()
            .flat_map(|step| graph[step.node].inputs.clone())
            .chain(graph.outputs.iter().map(|(_, v)| *v))
            .chain(graph.bindings.iter().map(|b| b.size))
            .collect();
        for value in needed {
            if let (Some(constant), None) = (graph.constant_of(value), &known[value.index()]) {
                let tensor = Tensor::from_constant(constant)?;
                known[value.index()] = Some(if wide { tensor.widened() } else { tensor });
            }
        }
        for step in steps(&graph, &|_| false) {
            fold(&graph, &graph[step.node], &mut known, wide);
        }
        let steps = steps(&graph, &|v| known[v.index()].is_some());
        // Constants that only computed values needed are dropped.
        let mut keep = vec![false; known.len()];
        for step in &steps {
            graph[step.node].inputs.iter().for_each(|v| keep[v.index()] = true);
        }
        graph.outputs.iter().for_each(|(_, v)| keep[v.index()] = true);
        graph.bindings.iter().for_each(|b| keep[b.size.index()] = true);
        for (known, keep) in known.iter_mut().zip(keep) {
            if !keep {
                *known = None;
            }
        }
        let mut bodies = HashMap::new();
        for step in &steps {
            if let Op::Loop(attrs) = &graph[step.node].op {
                bodies.insert(step.node, Self::with_mode(&attrs.body, wide)?);
            }
        }
        Ok(Self { graph, known, steps, bodies, wide })
    }

    /// Whether floats are held in `f64`.
    pub(super) fn is_wide(&self) -> bool {
        self.wide
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Runs the graph: inputs and outputs in its order.
    ///
    /// # Errors
    /// When inputs do not fit, a guard does not hold, or a node fails.
    pub fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ExecError> {
        self.run_observed(inputs, &mut |_, _| {})
    }

    /// Runs the graph and shows every value that a node computes, in order.
    ///
    /// # Errors
    /// As [`Executor::run`].
    pub fn run_observed(
        &self,
        inputs: &[Tensor],
        observe: &mut dyn FnMut(ValueId, &Tensor),
    ) -> Result<Vec<Tensor>, ExecError> {
        self.run_sized(inputs, observe).map(|(outputs, _)| outputs)
    }

    /// As [`Executor::run_observed`]; also gives the atoms of all symbols, by id, those that the run bound included.
    ///
    /// # Errors
    /// As [`Executor::run`].
    pub fn run_sized(
        &self,
        inputs: &[Tensor],
        observe: &mut dyn FnMut(ValueId, &Tensor),
    ) -> Result<(Vec<Tensor>, Vec<i64>), ExecError> {
        let mut sizes = self.bind(inputs)?;
        let held = inputs.iter().map(|tensor| match self.wide {
            true => tensor.clone().widened(),
            false => tensor.clone().narrowed(),
        });
        let outputs = self.run_at(held.collect(), &mut sizes, observe)?;
        Ok((outputs, sizes.into_atoms()))
    }

    /// Runs the graph on inputs that are held as the executor does, at these sizes; binds those that the graph gives.
    pub(super) fn run_at(
        &self,
        inputs: Vec<Tensor>,
        sizes: &mut Sizes,
        observe: &mut dyn FnMut(ValueId, &Tensor),
    ) -> Result<Vec<Tensor>, ExecError> {
        let graph = &self.graph;
        let mut values: Vec<Option<Tensor>> = vec![None; graph.values().len()];
        for (&id, tensor) in graph.inputs.iter().zip(inputs) {
            values[id.index()] = Some(tensor);
        }
        for binding in &graph.bindings {
            let known = &values[binding.size.index()];
            if let Some(size) = known.as_ref().or(self.known[binding.size.index()].as_ref()) {
                sizes.bind(graph, binding.size, size)?;
            }
        }
        for step in &self.steps {
            let node = &graph[step.node];
            let failed = |error: ExecError| ExecError::Node {
                node: node.name.clone(),
                op: node.op.name(),
                error: Box::new(error),
            };
            let mut operands = Vec::with_capacity(node.inputs.len());
            for (i, &input) in node.inputs.iter().enumerate() {
                let again = node.inputs[i + 1..].contains(&input);
                let slot = &mut values[input.index()];
                let operand = match (slot.is_some(), !again && step.dead.contains(&input)) {
                    (true, true) => slot.take(),
                    (true, false) => slot.clone(),
                    (false, _) => self.known[input.index()].clone(),
                };
                let missing = || failed(ExecError::value("an operand was not computed before"));
                operands.push(operand.ok_or_else(missing)?);
            }
            let results = match (&node.op, self.bodies.get(&step.node)) {
                (Op::Loop(attrs), Some(body)) => loops::run(attrs, body, operands, sizes),
                _ => run(&node.op, operands, sizes.atoms(), self.wide),
            };
            for (&id, result) in node.outputs.iter().zip(results.map_err(failed)?) {
                observe(id, &result);
                sizes.bind(graph, id, &result)?;
                if !step.dead.contains(&id) {
                    values[id.index()] = Some(result);
                }
            }
        }
        let output = |(name, id): &(String, ValueId)| {
            let value = values[id.index()].as_ref().or(self.known[id.index()].as_ref());
            value.cloned().ok_or_else(|| {
                ExecError::value(format!("output `{name}` was not computed by any node"))
            })
        };
        graph.outputs.iter().map(output).collect()
    }

    /// Checks inputs and solves for the atoms of the symbols that their shapes bind.
    fn bind(&self, inputs: &[Tensor]) -> Result<Sizes, ExecError> {
        let graph = &self.graph;
        if inputs.len() != graph.inputs.len() {
            let (expected, found) = (graph.inputs.len(), inputs.len());
            return Err(ExecError::InputCount { expected, found });
        }
        let mut shaped = Vec::with_capacity(inputs.len());
        for (&id, tensor) in graph.inputs.iter().zip(inputs) {
            let value = &graph[id];
            if tensor.dtype() != value.dtype {
                return Err(ExecError::InputType {
                    input: value.name.clone(),
                    found: tensor.dtype(),
                    expected: value.dtype,
                });
            }
            shaped.push(ShapePattern {
                name: &value.name,
                dims: &value.shape,
                extents: tensor.shape(),
            });
        }
        Sizes::new(graph, &shaped)
    }
}

/// Computes a node whose operands are all known, if that is worth keeping.
fn fold(graph: &Graph, node: &Node, known: &mut [Option<Tensor>], wide: bool) {
    let operands: Option<Vec<Tensor>> =
        node.inputs.iter().map(|v| known[v.index()].clone()).collect();
    let Some(operands) = operands else { return };
    let constant = |v: &ValueId| graph[*v].shape.iter().all(|d| d.as_const().is_some());
    if !node.outputs.iter().all(constant) {
        return;
    }
    let size = |v: &ValueId| {
        let dims = graph[*v].shape.iter().filter_map(|d| d.as_const());
        dims.fold(1usize, |n, d| n.saturating_mul(d.max(0) as usize))
    };
    let from: usize = operands.iter().map(Tensor::len).sum();
    if node.outputs.iter().map(size).any(|n| n > SMALL.max(from.saturating_mul(4))) {
        return;
    }
    // A failure shows again, with its context, when the graph is run.
    let Ok(results) = run(&node.op, operands, &[], wide) else { return };
    for (&id, result) in node.outputs.iter().zip(results) {
        debug_assert!(matches!(graph[id].def, Def::Node(..)));
        known[id.index()] = Some(result);
    }
}
