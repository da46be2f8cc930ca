//! Whether a graph read from a file is one that this crate's functions could have made.

use crate::dim::Atom;
use crate::op::LoopAttrs;
use crate::{ConstId, DType, Def, Dim, Graph, Guard, NodeId, Op, SymId, Symbols, ValueId};

impl Graph {
    /// Checks every index, the topological order, that ranges of sizes are sane, and that types and
    /// shapes follow from the operators' rules: what holds for every graph made by this crate's functions.
    /// Bytes of constants are not looked at.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), String> {
        self.check_within(&[])
    }

    /// As [`Graph::check`], where graphs around this one give sizes to the symbols `given`.
    fn check_within(&self, given: &[SymId]) -> Result<(), String> {
        self.symbols.check()?;
        let (values, constants) = (self.values().len(), self.constants().len());
        for (id, value) in self.values() {
            let defined = match value.def {
                Def::Input(i) => self.inputs.get(i as usize) == Some(&id),
                Def::Const(ConstId(i)) => (i as usize) < constants && self.holds(ConstId(i), id),
                Def::Node(NodeId(node), port) => {
                    (node as usize) < self.nodes().len()
                        && self[NodeId(node)].outputs.get(port as usize) == Some(&id)
                }
            };
            if !defined {
                return Err(format!("value {} is defined nowhere", id.0));
            }
        }
        for (_, value) in self.values() {
            value.shape.iter().try_for_each(|dim| self.check_dim(dim))?;
        }
        for guard in &self.guards {
            self.check_dim(&guard.lhs)?;
            self.check_dim(&guard.rhs)?;
        }
        let known = |v: &ValueId| match v.index() < values {
            true => Ok(()),
            false => Err(format!("there is no value {} of {values}", v.0)),
        };
        for (id, node) in self.nodes() {
            for input in &node.inputs {
                known(input)?;
                if self.producer(*input).is_some_and(|producer| producer >= id) {
                    return Err(format!("node `{}` comes before what it reads", node.name));
                }
            }
            for (port, output) in node.outputs.iter().enumerate() {
                known(output)?;
                if self[*output].def != Def::Node(id, port as u32) {
                    return Err(format!("node `{}` makes what another one makes", node.name));
                }
            }
            self.check_results(id, given)?;
            self.check_sizes(id, given)?;
        }
        for (i, input) in self.inputs.iter().enumerate() {
            known(input)?;
            if self[*input].def != Def::Input(i as u32) {
                return Err(format!("input {i} is none"));
            }
        }
        self.outputs.iter().try_for_each(|(_, value)| known(value))?;
        self.check_bindings(given)?;
        self.check_state()
    }

    /// Whether what runs keep are inputs and outputs, each once, of one type and rank; their values were checked.
    fn check_state(&self) -> Result<(), String> {
        for (i, state) in self.state.iter().enumerate() {
            let input = self.inputs.get(state.input as usize);
            let output = self.outputs.get(state.output as usize);
            let (Some(input), Some((name, output))) = (input, output) else {
                return Err(format!("state {i} is no input and output"));
            };
            let (from, to) = (&self[*input], &self[*output]);
            if from.dtype != to.dtype || from.shape.len() != to.shape.len() {
                return Err(format!("`{name}` can't be `{}` of the next run", from.name));
            }
            let earlier = &self.state[..i];
            if earlier.iter().any(|s| s.input >= state.input || s.output == state.output) {
                return Err(format!("`{name}` or `{}` is kept twice", from.name));
            }
        }
        Ok(())
    }

    /// Whether every symbol that a node mentions is bound before it; operands and results were checked.
    fn check_sizes(&self, id: NodeId, given: &[SymId]) -> Result<(), String> {
        let node = &self[id];
        let shapes = node.outputs.iter().flat_map(|v| &self[*v].shape);
        let dims: Vec<&Dim> = node.op.dims().into_iter().chain(shapes).collect();
        let mut given = given.to_vec();
        let mut own = None;
        if let Op::Loop(attrs) = &node.op {
            given.extend(attrs.inner_symbols());
            // Its results have the extent that it gives itself.
            own = attrs.turns.and_then(|turns| self.binding(turns));
        }
        if dims.iter().any(|dim| self.has_unbound(dim, &given)) {
            return Err(format!("node `{}` has a size that nothing gives", node.name));
        }
        let late = |size: ValueId| {
            let first = own == Some(size) && node.outputs.first() == Some(&size);
            let before = size.index() < self.values().len()
                && self.producer(size).is_none_or(|producer| producer < id);
            !before && !first
        };
        if self.sizes_of(dims).into_iter().any(late) {
            return Err(format!("node `{}` comes before a size that it needs", node.name));
        }
        Ok(())
    }

    /// Whether an expression mentions a symbol of runs that no binding gives a size.
    fn has_unbound(&self, dim: &Dim, given: &[SymId]) -> bool {
        dim.any(|atom| match atom {
            Atom::Sym(id) => {
                self.symbols.in_run(*id) && self.binding(*id).is_none() && !given.contains(id)
            }
            _ => false,
        })
    }

    fn check_bindings(&self, given: &[SymId]) -> Result<(), String> {
        for (i, binding) in self.bindings.iter().enumerate() {
            let name = self.symbols.get(binding.symbol).map_or("", |s| s.name.as_str());
            if !self.symbols.in_run(binding.symbol) {
                return Err(format!("dim `{name}` is not one that a run binds"));
            }
            if self.bindings[..i].iter().any(|b| b.symbol == binding.symbol) {
                return Err(format!("dim `{name}` is bound twice"));
            }
            let size = self.values().nth(binding.size.index());
            if size.is_none_or(|(_, v)| v.dtype != DType::I64 || !v.shape.is_empty()) {
                return Err(format!("dim `{name}` is bound to no integer"));
            }
        }
        let of_inputs = self.inputs.iter().flat_map(|v| &self[*v].shape);
        let in_run = |a: &Atom| matches!(a, Atom::Sym(id) if self.symbols.in_run(*id) && !given.contains(id));
        if of_inputs.clone().any(|dim| dim.any(in_run)) {
            return Err("an input's shape depends on the run".to_owned());
        }
        let unbound = |g: &&Guard| [&g.lhs, &g.rhs].iter().any(|dim| self.has_unbound(dim, given));
        match self.guards.iter().find(unbound) {
            Some(Guard { lhs, rhs, node }) => {
                let [lhs, rhs] = [lhs, rhs].map(|dim| self.symbols.show(dim));
                Err(format!("the guard of `{node}`, {lhs} = {rhs}, has a size that nothing gives"))
            }
            None => Ok(()),
        }
    }

    /// Whether a value has the type and the extents of a constant.
    fn holds(&self, constant: ConstId, value: ValueId) -> bool {
        let (constant, value) = (&self[constant], &self[value]);
        let extents = constant.shape.iter().map(|&d| i64::try_from(d).ok());
        constant.dtype == value.dtype
            && extents.clone().all(|d| d.is_some())
            && extents.eq(value.shape.iter().map(Dim::as_const))
    }

    fn check_dim(&self, dim: &Dim) -> Result<(), String> {
        let unknown = dim.any(|atom| match atom {
            Atom::Sym(id) => self.symbols.get(*id).is_none(),
            _ => false,
        });
        if unknown || !dim.is_uniform() {
            return Err(format!("size {dim} is no function of the graph's sizes"));
        }
        Ok(())
    }

    /// Whether a loop speaks of this graph's sizes, and its body is sound.
    fn check_loop(&self, attrs: &LoopAttrs, given: &[SymId]) -> Result<(), String> {
        let table = |symbols: &Symbols| symbols.iter().map(|(_, s)| s.clone()).collect::<Vec<_>>();
        if !table(&self.symbols).starts_with(&table(&attrs.body.symbols)) {
            return Err("sizes are other ones than outside".to_owned());
        }
        for id in attrs.turns.into_iter().chain([attrs.iteration]) {
            if !self.symbols.in_run(id) {
                return Err("nothing counts iterations".to_owned());
            }
        }
        let bound = self.bindings.iter().map(|b| b.symbol).chain([attrs.iteration]);
        let given: Vec<SymId> = given.iter().copied().chain(bound).collect();
        attrs.body.check_within(&given)
    }

    /// Whether results are what the operator gives for its operands; all indices were checked.
    fn check_results(&self, id: NodeId, given: &[SymId]) -> Result<(), String> {
        let node = &self[id];
        node.op.map_dims(&mut |dim| self.check_dim(dim).map(|()| dim.clone()))?;
        if let Op::Loop(attrs) = &node.op {
            let within = |error| format!("in the body of `{}`: {error}", node.name);
            self.check_loop(attrs, given).map_err(within)?;
        }
        let operands: Vec<_> = node.inputs.iter().map(|&v| &self[v]).collect();
        let inferred = (node.op.infer(&operands, &self.symbols))
            .map_err(|e| format!("node `{}` ({}): {e}", node.name, node.op.name()))?;
        let results = node.outputs.iter().map(|&v| (self[v].dtype, &self[v].shape));
        if !results.eq(inferred.outputs.iter().map(|(dtype, shape)| (*dtype, shape))) {
            return Err(format!("results of node `{}` are not what it gives", node.name));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::UnaryOp;
    use crate::{Binding, Op, State, Symbol};

    #[test]
    fn graphs_made_here_pass_and_damaged_ones_do_not() {
        let mut graph = Graph::new("g");
        let x = graph.add_input("x", DType::F32, vec![Dim::from(3)]);
        let y = graph.add1(Op::Unary(UnaryOp::Neg), &[x], "y").unwrap();
        graph.outputs.push(("y".into(), y));
        assert_eq!(graph.check(), Ok(()));
        let mut damaged = graph.clone();
        damaged.outputs[0].1 = ValueId(7);
        assert_eq!(damaged.check(), Err("there is no value 7 of 2".to_owned()));
        let mut damaged = graph.clone();
        damaged.inputs.push(ValueId(7));
        assert_eq!(damaged.check(), Err("there is no value 7 of 2".to_owned()));
        let mut damaged = graph.clone();
        damaged.inputs.push(y);
        assert!(damaged.check().is_err());
        graph.symbols.add(Symbol { scale: 0, ..Symbol::new("n", 1, 2, 1) });
        assert!(graph.check().is_err());
    }

    #[test]
    fn sizes_are_bound_before_they_are_mentioned() {
        let mut graph = Graph::new("g");
        let x = graph.add_input("x", DType::F32, vec![Dim::from(3)]);
        let n = graph.symbols.add(Symbol::in_run("n", 0, 3));
        let size = graph.symbols.dim(n);
        let count = graph.add1(Op::Dims { dims: vec![2.into()], scalar: true }, &[], "count");
        let count = count.unwrap();
        let slice =
            Op::Slice { starts: vec![Dim::ZERO], sizes: vec![size.clone()], steps: vec![1] };
        let cut = graph.add1(slice, &[x], "cut").unwrap();
        graph.outputs.push(("y".into(), cut));
        let says = |graph: &Graph, text: &str| assert_eq!(graph.check(), Err(text.to_owned()));
        says(&graph, "node `cut` has a size that nothing gives");
        graph.bindings.push(Binding { symbol: n, size: count });
        assert_eq!(graph.check(), Ok(()));
        let mut wrong = graph.clone();
        wrong.bindings.push(Binding { symbol: n, size: count });
        says(&wrong, "dim `n` is bound twice");
        let mut wrong = graph.clone();
        wrong.bindings[0].size = cut;
        says(&wrong, "node `cut` comes before a size that it needs");
        let mut wrong = graph.clone();
        wrong.bindings[0].size = x;
        says(&wrong, "dim `n` is bound to no integer");
        let mut wrong = graph.clone();
        wrong.add_input("z", DType::F32, vec![size]);
        says(&wrong, "an input's shape depends on the run");
    }

    #[test]
    fn state_is_an_input_and_an_output() {
        let mut graph = Graph::new("g");
        let shape = vec![Dim::from(3)];
        let x = graph.add_input("x", DType::F32, shape.clone());
        let z = graph.add_input("z", DType::I64, shape);
        graph.outputs = vec![("y".into(), x), ("n".into(), z)];
        let says = |state: &[(u32, u32)], text: &str| {
            let mut graph = graph.clone();
            let state = state.iter().map(|&(input, output)| State { input, output });
            graph.state = state.collect();
            assert_eq!(graph.check().err().unwrap_or_default(), text);
        };
        says(&[(0, 0), (1, 1)], "");
        says(&[(0, 2)], "state 0 is no input and output");
        says(&[(0, 1)], "`n` can't be `x` of the next run");
        says(&[(0, 0), (0, 0)], "`y` or `x` is kept twice");
    }

    #[test]
    fn no_changed_byte_of_a_file_does_harm() {
        let mut graph = Graph::new("g");
        let n = graph.symbols.add(Symbol::new("n", 1, 8, 1));
        let n = graph.symbols.dim(n);
        let x = graph.add_input("x", DType::F32, vec![n]);
        let y = graph.add1(Op::Unary(UnaryOp::Exp), &[x], "exp").unwrap();
        graph.outputs.push(("y".into(), y));
        let bytes = postcard::to_allocvec(&graph).unwrap();
        let back: Graph = postcard::from_bytes(&bytes).unwrap();
        assert_eq!(back.check(), Ok(()));
        let mut refused = 0;
        for i in 0..bytes.len() {
            for flip in [1u8, 0x7f, 0xff] {
                let mut changed = bytes.clone();
                changed[i] ^= flip;
                let graph = postcard::from_bytes::<Graph>(&changed);
                refused += usize::from(graph.map_or(true, |graph| graph.check().is_err()));
            }
        }
        assert!(refused > bytes.len());
    }
}
