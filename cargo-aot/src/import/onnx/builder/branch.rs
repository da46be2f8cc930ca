//! Branches: graphs of which a run makes one.
//!
//! A branch is a loop of one iteration where it is chosen, and of none where it is not, so that a run does its work and
//! checks its guards only then. What the two loops collect has one row in all.

use super::super::known::Elem;
use super::repeat::{Frame, OpenLoop};
use super::tensors::{Builder, OpResult, Tensor, unsupported, wrong};
use aot_ir::dim::{Atom, Cmp, Cond};
use aot_ir::{Binding, DType, Dim, Graph, Guard, Symbol, ValueId};

/// Most nodes of a branch that is computed whether it is chosen or not.
const MAX_LIGHT: usize = 16;

/// A branch that stands in no graph yet.
#[derive(Debug)]
pub(in super::super) struct Branch {
    frame: Frame,
    open: OpenLoop,
}

impl Branch {
    /// Whether a size mentions what only the branch binds.
    fn is_inner(&self, dim: &Dim) -> bool {
        dim.any(|atom| self.open.varies(atom))
    }

    /// Whether it is cheaper to compute than to leave out, and always can be.
    fn is_light(&self) -> bool {
        let graph = &self.frame.graph;
        graph.guards.is_empty()
            && graph.bindings.is_empty()
            && graph.nodes().len() <= MAX_LIGHT
            && graph.nodes().all(|(_, node)| node.op.is_elementwise())
    }
}

impl Builder {
    /// Begins a branch: nodes are added to it until [`Builder::take_branch`] or [`Builder::abandon_loop`].
    pub(in super::super) fn begin_branch(&mut self) -> OpenLoop {
        self.begin_loop(&Dim::ONE, false, &[])
    }

    /// Ends a branch.
    pub(in super::super) fn take_branch(&mut self, open: OpenLoop) -> OpResult<Branch> {
        let frame = self.leave()?;
        self.frame.graph.symbols = frame.graph.symbols.clone();
        Ok(Branch { frame, open })
    }

    fn enter(&mut self, mut frame: Frame) {
        frame.graph.symbols = self.frame.graph.symbols.clone();
        let outer = std::mem::replace(&mut self.frame, frame);
        self.outer.push(outer);
    }

    fn leave(&mut self) -> OpResult<Frame> {
        match self.outer.pop() {
            Some(outer) => Ok(std::mem::replace(&mut self.frame, outer)),
            None => wrong("a branch ends that did not begin"),
        }
    }

    /// Whether the elements of a branch's result are there only if it is chosen.
    fn is_inside(&mut self, t: Tensor, branch: &Branch) -> bool {
        match self.content(t) {
            Some(content) => {
                let inner = |atom: &Atom| branch.open.varies(atom);
                content.any(inner) || content.shape.iter().any(|dim| branch.is_inner(dim))
            }
            None => self.is_of(t, branch.frame.number),
        }
    }

    /// Puts a branch into the current graph: the run always makes it. Gives its results there.
    pub(in super::super) fn inline(
        &mut self,
        branch: Branch,
        results: &[Tensor],
    ) -> OpResult<Vec<Tensor>> {
        let number = branch.frame.number;
        let made: Vec<bool> =
            (results.iter()).map(|&t| self.content(t).is_none() && self.is_of(t, number)).collect();
        self.enter(branch.frame);
        let values: OpResult<Vec<Option<ValueId>>> = (results.iter().zip(made))
            .map(|(&t, made)| if made { self.value(t).map(Some) } else { Ok(None) })
            .collect();
        let Frame { graph: mut body, captured, .. } = self.leave()?;
        let graph = self.graph_mut();
        graph.symbols = body.symbols.clone();
        let mut operands = captured;
        for constant in body.lift_constants() {
            operands.push(graph.add_constant(constant)?);
        }
        let places = copy(graph, &body, &operands)?;
        let mut out = Vec::with_capacity(results.len());
        for (&t, value) in results.iter().zip(values?) {
            out.push(match value.and_then(|value| places[value.index()]) {
                Some(value) => self.of_value(value),
                None => t,
            });
        }
        Ok(out)
    }

    /// Of each two results of branches the one that a condition of rank 0 chooses: the first branch's where it holds.
    pub(in super::super) fn choose(
        &mut self,
        condition: Tensor,
        (a, xs): (Branch, &[Tensor]),
        (b, ys): (Branch, &[Tensor]),
    ) -> OpResult<Vec<Tensor>> {
        let pairs: Vec<(Tensor, Tensor)> = xs.iter().copied().zip(ys.iter().copied()).collect();
        for &(x, y) in &pairs {
            if self.dtype(x) != self.dtype(y) {
                return wrong("the branches give different element types");
            }
            if self.rank(x) != self.rank(y) {
                return unsupported(
                    "the branches give different numbers of axes, and which one is taken is known at run time only",
                );
            }
        }
        let equal: Vec<bool> = pairs.iter().map(|&(x, y)| self.same_shape(x, y)).collect();
        if equal.iter().all(|equal| *equal) && a.is_light() && b.is_light() {
            let (xs, ys) = (self.inline(a, xs)?, self.inline(b, ys)?);
            return xs.iter().zip(&ys).map(|(&x, &y)| self.select(condition, x, y)).collect();
        }
        let mut outside = Vec::with_capacity(pairs.len());
        for (&(x, y), equal) in pairs.iter().zip(&equal) {
            outside.push(*equal && !self.is_inside(x, &a) && !self.is_inside(y, &b));
        }
        let inside = |of: &[Tensor]| -> Vec<(Tensor, bool)> {
            let all = of.iter().zip(&outside).zip(&equal);
            all.filter(|((_, outside), _)| !**outside).map(|((&t, _), equal)| (t, *equal)).collect()
        };
        let (inside_a, inside_b) = (inside(xs), inside(ys));
        let (chosen, taken) = self.truth(condition)?;
        let rest = &Dim::ONE - &taken;
        let mut rows = (self.rows(a, taken, &inside_a)?.into_iter())
            .zip(self.rows(b, rest, &inside_b)?)
            .map(|(x, y)| [x, y]);
        let mut out = Vec::with_capacity(pairs.len());
        for (&(x, y), outside) in pairs.iter().zip(outside) {
            let rows = if outside { None } else { rows.next() };
            out.push(match rows {
                Some(rows) => {
                    let scope = self.scope();
                    let extents = self.shape(x).iter().zip(self.shape(y));
                    let shape = extents.map(|(a, b)| match scope.proves_eq(a, b) {
                        true => a.clone(),
                        false => scope.select(&chosen, a, b),
                    });
                    let shape: Vec<Dim> = shape.collect();
                    let all = self.concat(&rows, 0)?;
                    self.reshape(all, &shape)?
                }
                None => self.select(condition, x, y)?,
            });
        }
        Ok(out)
    }

    /// Whether two tensors are proved to have the same extents.
    pub(in super::super) fn same_shape(&self, a: Tensor, b: Tensor) -> bool {
        let (a, b) = (self.shape(a), self.shape(b));
        let scope = self.scope();
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| scope.proves_eq(a, b))
    }

    /// A condition of rank 0, and 1 where it holds, else 0: as the sizes tell, or as the run finds.
    pub(in super::super) fn truth(&mut self, condition: Tensor) -> OpResult<(Cond, Dim)> {
        if let Some(Elem::Bool(cond)) = self.content(condition).as_ref().and_then(|c| c.uniform()) {
            let truth = self.scope().select(cond, &Dim::ONE, &Dim::ZERO);
            return Ok((cond.clone(), truth));
        }
        let size = self.cast(condition, DType::I64)?;
        let symbol = Symbol::in_run(format!("the condition of `{}`", self.node), 0, 1);
        let truth = self.bound(symbol, size)?;
        Ok((Cond::Cmp(Cmp::Eq, truth.clone(), Dim::ONE), truth))
    }

    /// Makes a branch `count` times, which is never or once. Gives results of it with `count` rows: whole ones if that
    /// is said for them, else all elements as an axis.
    fn rows(
        &mut self,
        branch: Branch,
        count: Dim,
        results: &[(Tensor, bool)],
    ) -> OpResult<Vec<Tensor>> {
        if results.is_empty() {
            return self.guard_where(&branch, &count).map(|()| Vec::new());
        }
        let Branch { frame, mut open } = branch;
        self.enter(frame);
        let flat = results.iter().map(|&(t, whole)| {
            if whole {
                return Ok((t, false));
            }
            let elements: Dim = self.shape(t).iter().product();
            Ok((self.reshape(t, &[elements])?, false))
        });
        let flat: OpResult<Vec<(Tensor, bool)>> = flat.collect();
        let flat = match flat {
            Ok(flat) => flat,
            Err(error) => {
                self.abandon_loop(open);
                return Err(error);
            }
        };
        open.count = count;
        let mut rows = self.end_loop(open, None, &[], &[], &flat)?;
        for (t, (_, whole)) in rows.iter_mut().zip(results) {
            if !whole {
                let elements: Dim = self.shape(*t).iter().product();
                *t = self.reshape(*t, &[elements])?;
            }
        }
        Ok(rows)
    }

    /// Has runs that choose a branch, of which nothing else is left, check its guards: `count` is 1 then, else 0.
    fn guard_where(&mut self, branch: &Branch, count: &Dim) -> OpResult<()> {
        for Guard { lhs, rhs, node } in &branch.frame.graph.guards {
            if branch.is_inner(lhs) || branch.is_inner(rhs) {
                return unsupported("a branch checks a size from data that it does not use");
            }
            let guard = Guard { lhs: count * lhs, rhs: count * rhs, node: node.clone() };
            self.graph_mut().guards.push(guard);
        }
        Ok(())
    }
}

/// Puts the nodes, sizes and guards of a body into a graph that has its symbols; gives where its values are there.
fn copy(graph: &mut Graph, body: &Graph, operands: &[ValueId]) -> OpResult<Vec<Option<ValueId>>> {
    let mut places: Vec<Option<ValueId>> = vec![None; body.values().len()];
    for (input, &operand) in body.inputs.iter().zip(operands) {
        places[input.index()] = Some(operand);
    }
    for (_, node) in body.nodes() {
        let inputs: Option<Vec<ValueId>> = node.inputs.iter().map(|v| places[v.index()]).collect();
        let Some(inputs) = inputs else { return wrong("a branch reads what it does not have") };
        let outputs = graph.add(node.op.clone(), &inputs, node.name.clone())?;
        for (&old, &new) in node.outputs.iter().zip(&outputs) {
            graph.set_name(new, body[old].name.clone());
            places[old.index()] = Some(new);
        }
    }
    for guard in &body.guards {
        if !graph.guards.contains(guard) {
            graph.guards.push(guard.clone());
        }
    }
    for Binding { symbol, size } in &body.bindings {
        let Some(size) = places[size.index()] else { return wrong("a branch lacks a size") };
        graph.bindings.push(Binding { symbol: *symbol, size });
    }
    Ok(places)
}
