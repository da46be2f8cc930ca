//! Loops in the making: the graph of a body, and what it takes from the graphs around it.

use super::super::known::{Body, Content, Elem};
use super::tensors::{Builder, OpResult, Tensor, unsupported, wrong};
use aot_ir::dim::{Atom, Cmp};
use aot_ir::op::LoopAttrs;
use aot_ir::{Binding, Dim, Graph, Op, Scope, SymId, Symbol, Symbols, Value, ValueId};
use std::collections::HashMap;
use std::rc::Rc;

/// Most iterations of a loop that nothing else limits.
const MOST: i64 = i32::MAX as i64;

/// A graph in the making. The outermost one has number 0.
#[derive(Debug, Default)]
pub(super) struct Frame {
    pub(super) graph: Graph,
    /// Tells it from all others.
    pub(super) number: u32,
    /// The iteration of the loop whose body it is.
    pub(super) iteration: Option<SymId>,
    /// Values of this graph that stand for tensors of other graphs, or for known elements.
    pub(super) values: HashMap<Tensor, ValueId>,
    /// Operands of the body from the graph around it, in the order of its inputs.
    pub(super) captured: Vec<ValueId>,
}

/// A loop whose body is being built.
#[derive(Debug)]
pub(in super::super) struct OpenLoop {
    iteration: SymId,
    turns: Option<SymId>,
    pub(super) count: Dim,
    /// The symbols before it.
    symbols: Symbols,
    /// Inputs of the body that are carried.
    carried: Vec<Tensor>,
}

impl OpenLoop {
    /// The number of the iteration, within the body.
    pub(in super::super) fn at(&self) -> Dim {
        Dim::atom(Atom::Sym(self.iteration))
    }

    /// Whether an atom is a symbol that only the body binds.
    pub(super) fn varies(&self, atom: &Atom) -> bool {
        matches!(atom, Atom::Sym(id) if id.0 >= self.iteration.0)
    }

    /// The carried values, within the body.
    pub(in super::super) fn carried(&self) -> &[Tensor] {
        &self.carried
    }
}

impl Builder {
    /// Begins the body of a loop: nodes are added to it until [`Builder::end_loop`]. Carried values are as
    /// `initial` says. Where it may get a condition, `count` is the greatest number of iterations.
    pub(in super::super) fn begin_loop(
        &mut self,
        count: &Dim,
        conditional: bool,
        initial: &[Tensor],
    ) -> OpenLoop {
        let symbols = self.symbols().clone();
        let most = Scope::new(&symbols).interval(count).hi.clamp(0, MOST);
        let name = self.node.clone();
        let table = &mut self.frame.graph.symbols;
        let iteration =
            table.add(Symbol::counter(format!("{name}/iteration"), count.clone(), most));
        let turns =
            conditional.then(|| table.add(Symbol::in_run(format!("{name}/iterations"), 0, most)));
        self.frames += 1;
        let mut graph = Graph::new(name);
        graph.symbols = self.frame.graph.symbols.clone();
        let inner =
            Frame { graph, number: self.frames, iteration: Some(iteration), ..Frame::default() };
        let outer = std::mem::replace(&mut self.frame, inner);
        self.outer.push(outer);
        let carried = initial.iter().map(|&t| {
            let (dtype, shape) = (self.dtype(t), self.shape(t).to_vec());
            let value = self.frame.graph.add_input(self.name_of(t), dtype, shape);
            self.of_value(value)
        });
        let carried = carried.collect();
        OpenLoop { iteration, turns, count: count.clone(), symbols, carried }
    }

    /// Says which integer a tensor of one element holds.
    pub(in super::super) fn set_integer(&mut self, t: Tensor, number: Dim) {
        let (shape, body) = (self.shape(t).to_vec(), Body::List(vec![Elem::Int(number)]));
        self.set_known(t, Rc::new(Content { shape, body }));
    }

    /// Adds a run-time size.
    pub(in super::super) fn add_symbol(&mut self, symbol: Symbol) -> SymId {
        self.frame.graph.symbols.add(symbol)
    }

    /// Leaves a body that is not wanted.
    pub(in super::super) fn abandon_loop(&mut self, open: OpenLoop) {
        if let Some(outer) = self.outer.pop() {
            self.frame = outer;
            self.frame.graph.symbols = open.symbols;
        }
    }

    /// Ends a body and adds the loop. `condition` is whether there is a first iteration, and within the body
    /// whether there is another one; `next` the carried values for the next iteration; `collected` what is stacked
    /// along a new first axis, the last iteration's first where `backward`. Gives the carried values after the
    /// loop, and the stacks.
    pub(in super::super) fn end_loop(
        &mut self,
        open: OpenLoop,
        condition: Option<(Tensor, Tensor)>,
        initial: &[Tensor],
        next: &[Tensor],
        collected: &[(Tensor, bool)],
    ) -> OpResult<Vec<Tensor>> {
        let inner = condition.map(|(_, again)| again);
        let outputs = self.body_outputs(inner, &open, next, collected);
        let Some(outer) = self.outer.pop() else { return wrong("a body ends that did not begin") };
        let Frame { graph: mut body, captured, .. } = std::mem::replace(&mut self.frame, outer);
        let outputs = match outputs {
            Ok(outputs) => outputs,
            Err(error) => {
                self.frame.graph.symbols = open.symbols;
                return Err(error);
            }
        };
        body.outputs = outputs;
        self.frame.graph.symbols = body.symbols.clone();
        let constants = body.lift_constants();
        // What does not vary is checked once, if at all.
        let begins = condition.is_none() && self.scope().interval(&open.count).lo >= 1;
        let varies = |dim: &Dim| dim.any(|atom| open.varies(atom));
        let guards = std::mem::take(&mut body.guards).into_iter();
        let (inside, outside): (Vec<_>, Vec<_>) =
            guards.partition(|guard| !begins || varies(&guard.lhs) || varies(&guard.rhs));
        body.guards = inside;
        self.frame.graph.guards.extend(outside);
        let first = match condition {
            Some((first, _)) => Some(self.reshape(first, &[])?),
            None => None,
        };
        let operands = first.iter().chain(initial).map(|&t| self.value(t));
        let mut operands = operands.collect::<OpResult<Vec<_>>>()?;
        operands.extend(captured);
        for constant in constants {
            operands.push(self.frame.graph.add_constant(constant)?);
        }
        let limit = self.scope().interval(&open.count).hi;
        if !collected.is_empty() && limit >= MOST {
            return unsupported(
                "a loop whose condition depends on data collects results, and nothing limits how often it may be \
                 repeated; give it a constant greatest number of iterations",
            );
        }
        let attrs = LoopAttrs {
            body,
            iteration: open.iteration,
            count: open.count,
            carried: initial.len(),
            turns: open.turns.filter(|_| condition.is_some()),
            backward: collected.iter().map(|(_, backward)| *backward).collect(),
        };
        let name = self.node.clone();
        let turns = attrs.turns;
        let mut results = self.frame.graph.add(Op::Loop(Box::new(attrs)), &operands, name)?;
        if let Some(symbol) = turns {
            let size = results.remove(0);
            self.frame.graph.bindings.push(Binding { symbol, size });
        }
        Ok(results.into_iter().map(|value| self.of_value(value)).collect())
    }

    fn body_outputs(
        &mut self,
        condition: Option<Tensor>,
        open: &OpenLoop,
        next: &[Tensor],
        collected: &[(Tensor, bool)],
    ) -> OpResult<Vec<(String, ValueId)>> {
        let mut results = Vec::new();
        results.extend(condition);
        for (&before, &after) in open.carried.iter().zip(next) {
            results.push(self.like(before, after)?);
        }
        for &(t, _) in collected {
            results.push(self.steady(t, open.iteration)?);
        }
        let named = results.into_iter().map(|t| Ok((self.name_of(t), self.value(t)?)));
        named.collect()
    }

    /// A collected value with the extents that it has in the first iteration: every iteration checks that they are
    /// those.
    fn steady(&mut self, t: Tensor, iteration: SymId) -> OpResult {
        let inner = |atom: &Atom| matches!(atom, Atom::Sym(id) if id.0 >= iteration.0);
        let shape = self.shape(t).to_vec();
        if !shape.iter().any(|dim| dim.any(inner)) {
            return Ok(t);
        }
        let first = |atom: &Atom| (*atom == Atom::Sym(iteration)).then_some(Dim::ZERO);
        let scope = self.scope();
        let steady: Vec<Dim> = shape.iter().map(|dim| dim.substitute(&scope, &first)).collect();
        if let Some(dim) = steady.iter().find(|dim| dim.any(inner)) {
            return unsupported(format!(
                "the extent {} of a collected result is another one at every iteration",
                self.symbols().show(dim)
            ));
        }
        self.of_shape(t, &steady)
    }

    /// A tensor whose extents turn out to be these, which every iteration checks.
    fn of_shape(&mut self, t: Tensor, expected: &[Dim]) -> OpResult {
        let shape = self.shape(t).to_vec();
        if shape == expected {
            return Ok(t);
        }
        for (found, expected) in shape.iter().zip(expected).filter(|(a, b)| a != b) {
            self.guard(found.clone(), expected.clone());
        }
        let (starts, steps) = (vec![Dim::ZERO; shape.len()], vec![1; shape.len()]);
        self.slice(t, &starts, expected, &steps)
    }

    /// A carried value after an iteration, in the shape that it had before.
    fn like(&mut self, before: Tensor, after: Tensor) -> OpResult {
        if self.dtype(before) != self.dtype(after) {
            return wrong("a carried value changes its type");
        }
        let (old, new) = (self.shape(before).to_vec(), self.shape(after).to_vec());
        let scope = self.scope();
        let single = |shape: &[Dim]| shape.iter().all(|d| d.is(1));
        let may_equal = |(a, b): (&Dim, &Dim)| scope.decide(Cmp::Eq, a, b) != Some(false);
        if old.len() == new.len() && old.iter().zip(&new).all(may_equal) {
            return self.of_shape(after, &old);
        }
        if single(&old) && single(&new) {
            return self.reshape(after, &old);
        }
        unsupported(format!(
            "a value of shape {} that is carried on has shape {} after an iteration; loops whose \
             values change their shapes need a small constant number of iterations",
            self.symbols().show_shape(&old),
            self.symbols().show_shape(&new)
        ))
    }

    /// The value of the current graph that stands for a tensor of one of the graphs around it.
    pub(super) fn capture(&mut self, t: Tensor) -> OpResult<ValueId> {
        let Some(outer) = self.outer.pop() else {
            return wrong("a value of a body is used outside of it");
        };
        let inner = std::mem::replace(&mut self.frame, outer);
        let found = self.value(t).map(|value| {
            let Value { name, dtype, shape, .. } = &self.frame.graph[value];
            (value, name.clone(), *dtype, shape.clone())
        });
        let outer = std::mem::replace(&mut self.frame, inner);
        self.outer.push(outer);
        let (value, name, dtype, shape) = found?;
        let input = self.frame.graph.add_input(name, dtype, shape);
        self.frame.captured.push(value);
        Ok(input)
    }
}
