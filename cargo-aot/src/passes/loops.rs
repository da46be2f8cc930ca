//! Loops: what does not vary leaves bodies, what only moves elements enters them, and what nothing needs goes.

use super::matching::scalar;
use super::rewriter::{Rewriter, live, live_nodes};
use aot_ir::dim::Atom;
use aot_ir::op::LoopAttrs;
use aot_ir::{Binding, Def, Dim, Graph, GraphError, Node, NodeId, Op, Scope, SymId, ValueId};
use std::collections::HashMap;

/// Whether a graph has loops.
pub(super) fn any(graph: &Graph) -> bool {
    graph.nodes().any(|(_, node)| matches!(node.op, Op::Loop(_)))
}

/// Applies a pass to the bodies of all loops.
pub(super) fn bodies(
    source: &Graph,
    pass: &dyn Fn(&Graph) -> Result<Graph, GraphError>,
) -> Result<Graph, GraphError> {
    let live = live_nodes(source);
    let mut rewriter = Rewriter::new(source);
    for (id, node) in source.nodes().filter(|(id, _)| live[id.index()]) {
        let Op::Loop(attrs) = &node.op else {
            rewriter.copy(id)?;
            continue;
        };
        let mut attrs = attrs.clone();
        attrs.body = pass(&attrs.body)?;
        let constants = attrs.body.lift_constants();
        let mut inputs = rewriter.operands(id)?;
        for constant in constants {
            inputs.push(rewriter.graph.add_constant(constant)?);
        }
        let outputs = rewriter.graph.add(Op::Loop(attrs), &inputs, node.name.clone())?;
        for (&old, new) in node.outputs.iter().zip(outputs) {
            rewriter.bind(old, new, true);
        }
    }
    rewriter.finish()
}

/// Moves nodes out of and into the bodies of all loops, and drops what nothing needs:
/// * What depends on captured values alone is computed once, before the loop; of a branch, which may not be made at
///   all, only what depends on constants.
/// * What only moves elements of captured values, or makes them of sizes, is done within the body, where it costs
///   nothing, unless it can be done when the model is built.
/// * Values that are carried on as they are become captured ones.
/// * Carried and collected values that neither the graph nor the body needs go.
pub(super) fn run(source: &Graph) -> Result<Graph, GraphError> {
    let live = live_nodes(source);
    let mut used = vec![false; source.values().len()];
    let mut mark = |value: ValueId| used[value.index()] = true;
    source.nodes().filter(|(id, _)| live[id.index()]).for_each(|(id, node)| {
        node.inputs.iter().copied().for_each(&mut mark);
        source.sizes_needed(id).into_iter().for_each(&mut mark);
    });
    source.outputs.iter().for_each(|(_, value)| mark(*value));
    let mut rewriter = Rewriter::new(source);
    for (id, node) in source.nodes().filter(|(id, _)| live[id.index()]) {
        match &node.op {
            Op::Loop(attrs) => rebuild(&mut rewriter, id, attrs, &used)?,
            _ => rewriter.copy(id)?,
        }
    }
    rewriter.finish()
}

/// Where a value of the old body is.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// In the new body.
    Inside(ValueId),
    /// In the graph around it: it does not vary.
    Outside(ValueId),
}

/// A body in the making.
struct Body<'r, 's> {
    outer: &'r mut Rewriter<'s>,
    graph: Graph,
    /// Symbols that vary.
    inner: Vec<SymId>,
    /// It is done at most once, and maybe never.
    branch: bool,
    places: Vec<Option<Place>>,
    /// Inputs by the value of the outer graph that they are, and these values in order.
    inputs: HashMap<ValueId, ValueId>,
    captured: Vec<ValueId>,
}

fn rebuild(
    rewriter: &mut Rewriter<'_>,
    id: NodeId,
    attrs: &LoopAttrs,
    used: &[bool],
) -> Result<(), GraphError> {
    let source = rewriter.source;
    let node = &source[id];
    let lead = attrs.lead();
    let operands = rewriter.operands(id)?;
    let old = &attrs.body;
    let result = |i: usize| old.outputs[lead + i].1;
    let wanted = |i: usize| used[node.outputs[lead + i].index()];
    let (live, sizes) = live(old);
    let bindings: Vec<Binding> =
        old.bindings.iter().filter(|binding| sizes.contains(&binding.size)).cloned().collect();
    let carried = needed(attrs, &bindings, &wanted);
    let mut graph = Graph::new(old.name.clone());
    graph.symbols = old.symbols.clone();
    let mut body = Body {
        outer: rewriter,
        graph,
        inner: attrs.inner_symbols(),
        branch: is_branch(source, attrs),
        places: vec![None; old.values().len()],
        inputs: HashMap::new(),
        captured: Vec::new(),
    };
    for (i, &input) in old.inputs.iter().enumerate() {
        let same = i < attrs.carried && result(i) == input;
        let place = match carried.get(i) {
            Some(true) if !same => {
                let value = &old[input];
                let (name, shape) = (value.name.clone(), value.shape.clone());
                Place::Inside(body.graph.add_input(name, value.dtype, shape))
            }
            Some(false) if !same => continue,
            _ => Place::Outside(operands[lead + i]),
        };
        body.places[input.index()] = Some(place);
    }
    let carried_on = |i: usize| carried[i] && result(i) != old.inputs[i];
    for (_, node) in old.nodes().filter(|(id, _)| live[id.index()]) {
        body.node(old, node)?;
    }
    let mut outputs = Vec::new();
    if attrs.is_conditional() {
        outputs.push((old.outputs[0].0.clone(), body.inside(old, old.outputs[0].1)?));
    }
    for i in (0..attrs.carried).filter(|i| carried_on(*i)) {
        outputs.push((old.outputs[lead + i].0.clone(), body.inside(old, result(i))?));
    }
    // Collected values: those that do not vary are spread outside.
    let mut spread = Vec::new();
    let mut stacked = Vec::new();
    for i in (attrs.carried..attrs.carried + attrs.stacked()).filter(|i| wanted(*i)) {
        match body.places[result(i).index()] {
            Some(Place::Outside(value)) => spread.push((i, value)),
            _ => {
                outputs.push((old.outputs[lead + i].0.clone(), body.inside(old, result(i))?));
                stacked.push(i);
            }
        }
    }
    let of_sizes = bindings.into_iter().map(|binding| {
        let size = body.inside(old, binding.size)?;
        Ok(Binding { size, ..binding })
    });
    body.graph.bindings = of_sizes.collect::<Result<_, GraphError>>()?;
    body.graph.outputs = outputs;
    body.graph.guards = old.guards.clone();
    let Body { graph, captured, .. } = body;
    let kept: Vec<usize> = (0..attrs.carried).filter(|i| carried_on(*i)).collect();
    let mut inputs: Vec<ValueId> = operands[..lead].to_vec();
    inputs.extend(kept.iter().map(|i| operands[lead + i]));
    inputs.extend(captured);
    let new = LoopAttrs {
        body: graph,
        iteration: attrs.iteration,
        count: attrs.count.clone(),
        carried: kept.len(),
        turns: attrs.turns,
        backward: stacked.iter().map(|i| attrs.backward[i - attrs.carried]).collect(),
    };
    let made = new.made();
    let results = rewriter.graph.add(Op::Loop(Box::new(new)), &inputs, node.name.clone())?;
    if attrs.is_conditional() {
        rewriter.bind(node.outputs[0], results[0], true);
    }
    for (&i, &new) in kept.iter().chain(&stacked).zip(&results[lead..]) {
        rewriter.bind(node.outputs[lead + i], new, true);
    }
    for i in (0..attrs.carried).filter(|i| !kept.contains(i)) {
        rewriter.bind(node.outputs[lead + i], operands[lead + i], false);
    }
    for (i, value) in spread {
        let mut shape = rewriter.graph[value].shape.clone();
        shape.insert(0, made.clone());
        let all = rewriter.graph.add1(Op::Expand { shape }, &[value], node.name.clone())?;
        rewriter.bind(node.outputs[lead + i], all, true);
    }
    Ok(())
}

/// Which carried values something needs: the graph, the condition, what is collected and wanted, or other such
/// values, or sizes of these bindings.
fn needed(attrs: &LoopAttrs, bindings: &[Binding], wanted: &dyn Fn(usize) -> bool) -> Vec<bool> {
    let (body, lead) = (&attrs.body, attrs.lead());
    let mut needed: Vec<bool> = (0..attrs.carried).map(wanted).collect();
    let mut seen = vec![false; body.values().len()];
    let mut pending: Vec<ValueId> = bindings.iter().map(|binding| binding.size).collect();
    if attrs.is_conditional() {
        pending.push(body.outputs[0].1);
    }
    let all = 0..attrs.carried + attrs.stacked();
    pending.extend(all.filter(|i| wanted(*i)).map(|i| body.outputs[lead + i].1));
    while let Some(value) = pending.pop() {
        if std::mem::replace(&mut seen[value.index()], true) {
            continue;
        }
        match body[value].def {
            Def::Node(id, _) => {
                pending.extend(&body[id].inputs);
                pending.extend(body.sizes_needed(id));
            }
            Def::Input(i) if (i as usize) < attrs.carried => {
                needed[i as usize] = true;
                pending.push(body.outputs[lead + i as usize].1);
            }
            _ => {}
        }
    }
    needed
}

impl Body<'_, '_> {
    /// Puts a node of the old body where it belongs. One that reads a carried value that nothing needs is left out.
    fn node(&mut self, old: &Graph, node: &Node) -> Result<(), GraphError> {
        let places: Option<Vec<Place>> =
            node.inputs.iter().map(|v| self.places[v.index()]).collect();
        let Some(places) = places else { return Ok(()) };
        let outside: Option<Vec<ValueId>> = places
            .iter()
            .map(|place| match place {
                Place::Outside(value) => Some(*value),
                Place::Inside(_) => None,
            })
            .collect();
        let shapes = node.outputs.iter().flat_map(|v| &old[*v].shape);
        let mut dims = node.op.dims().into_iter().chain(shapes);
        let outputs = match outside {
            Some(inputs) if !dims.any(|dim| self.varies(dim)) && self.leaves(&inputs) => {
                let outputs = self.outer.graph.add(node.op.clone(), &inputs, node.name.clone())?;
                outputs.into_iter().map(Place::Outside).collect::<Vec<_>>()
            }
            _ => {
                let inputs = node.inputs.iter().map(|v| self.inside(old, *v));
                let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
                let outputs = self.graph.add(node.op.clone(), &inputs, node.name.clone())?;
                outputs.into_iter().map(Place::Inside).collect()
            }
        };
        for (&value, place) in node.outputs.iter().zip(outputs) {
            let name = old[value].name.clone();
            match place {
                Place::Inside(new) => self.graph.set_name(new, name),
                Place::Outside(new) => self.outer.graph.set_name(new, name),
            }
            self.places[value.index()] = Some(place);
        }
        Ok(())
    }

    /// Whether a node of these operands, which do not vary, is better computed before the loop.
    fn leaves(&self, inputs: &[ValueId]) -> bool {
        !self.branch || inputs.iter().all(|v| is_stored(&self.outer.graph, *v))
    }

    fn varies(&self, dim: &Dim) -> bool {
        dim.any(|atom| matches!(atom, Atom::Sym(id) if self.inner.contains(id)))
    }

    /// A value of the old body as one of the new body.
    fn inside(&mut self, old: &Graph, value: ValueId) -> Result<ValueId, GraphError> {
        match self.places[value.index()] {
            Some(Place::Inside(new)) => Ok(new),
            Some(Place::Outside(outer)) => self.bring_in(outer),
            // Nodes are in topological order, so this is a broken graph, which adding the node refuses.
            None => {
                let value = &old[value];
                Ok(self.graph.add_input(value.name.clone(), value.dtype, value.shape.clone()))
            }
        }
    }

    /// A value of the outer graph as one of the body: made here if that takes no work, else captured.
    fn bring_in(&mut self, outer: ValueId) -> Result<ValueId, GraphError> {
        if let Some(&input) = self.inputs.get(&outer) {
            return Ok(input);
        }
        let graph = &self.outer.graph;
        let (name, dtype) = (graph[outer].name.clone(), graph[outer].dtype);
        let shape = graph[outer].shape.clone();
        let new = if let Some(value) = scalar(graph, outer) {
            self.graph.add1(Op::Fill { shape, value, dtype }, &[], name)?
        } else if let Some(node) = graph.producer(outer).filter(|id| moves(graph, *id)) {
            let node = graph[node].clone();
            let inputs = node.inputs.iter().map(|v| self.bring_in(*v));
            let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
            self.graph.add1(node.op, &inputs, name)?
        } else {
            self.captured.push(outer);
            self.graph.add_input(name, dtype, shape)
        };
        self.inputs.insert(outer, new);
        Ok(new)
    }
}

/// Whether a loop is one iteration or none.
fn is_branch(graph: &Graph, attrs: &LoopAttrs) -> bool {
    let made = Scope::new(&graph.symbols).interval(&attrs.count);
    made.lo < 1 && made.hi <= 1
}

/// Whether a value is a constant, or made of constants.
fn is_stored(graph: &Graph, value: ValueId) -> bool {
    match graph[value].def {
        Def::Const(_) => true,
        Def::Node(id, _) => graph[id].inputs.iter().all(|v| is_stored(graph, *v)),
        Def::Input(_) => false,
    }
}

/// Whether a node makes its result without work, and of something that is known at run time only (or makes it larger).
fn moves(graph: &Graph, id: NodeId) -> bool {
    let node = &graph[id];
    match node.op {
        Op::Iota { .. } | Op::Dims { .. } | Op::Fill { .. } | Op::Expand { .. } => true,
        Op::Reshape { .. } | Op::Transpose { .. } | Op::Slice { .. } => {
            let constant = graph.constant_of(node.inputs[0]).is_some();
            let deeper = graph.producer(node.inputs[0]);
            !constant && deeper.is_none_or(|id| !is_moved_constant(graph, id))
        }
        _ => false,
    }
}

/// Whether a node moves elements of a constant.
fn is_moved_constant(graph: &Graph, id: NodeId) -> bool {
    let node = &graph[id];
    matches!(node.op, Op::Reshape { .. } | Op::Transpose { .. } | Op::Slice { .. })
        && (graph.constant_of(node.inputs[0]).is_some()
            || graph.producer(node.inputs[0]).is_some_and(|id| is_moved_constant(graph, id)))
}

#[cfg(test)]
#[path = "loops_tests.rs"]
mod tests;
