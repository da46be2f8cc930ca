//! What goes in and out of a model, and at which sizes.

use aot_ir::dim::{BindError, ShapePattern, bind, bind_or};
use aot_ir::{Dim, Graph, Guard, Symbols};
#[cfg(feature = "cuda")]
use aot_ir::{
    SymId,
    dim::{Atom, atom_of},
};

use super::{Known, Sizes};
use crate::ports::InputRef;
use crate::program::{Port, Program, StatePort};
use crate::{Error, Result};

/// A model's inputs, outputs and sizes.
#[derive(Clone, Debug)]
pub struct Signature {
    /// The model's name in the manifest.
    pub model: String,
    /// Run-time sizes.
    pub symbols: Symbols,
    /// Equalities that sizes must satisfy.
    pub guards: Vec<Guard>,
    /// Inputs in order.
    pub inputs: Vec<Port>,
    /// Outputs in order.
    pub outputs: Vec<Port>,
    /// Outputs that are inputs of the next run, in order of the inputs.
    pub state: Vec<StatePort>,
    /// For every dim with a range in the manifest, its line there.
    pub lines: Vec<(String, u32)>,
}

impl Signature {
    /// A program's.
    pub fn of_program(program: &Program) -> Self {
        Self {
            model: program.model.clone(),
            symbols: program.symbols.clone(),
            guards: program.guards.clone(),
            inputs: program.inputs.clone(),
            outputs: program.outputs.clone(),
            state: program.state.clone(),
            lines: Vec::new(),
        }
    }

    /// A graph's.
    pub fn of_graph(graph: &Graph) -> Self {
        let port = |name: &str, value| {
            let aot_ir::Value { dtype, shape, .. } = &graph[value];
            Port { name: name.to_owned(), dtype: *dtype, shape: shape.clone() }
        };
        Self {
            model: graph.name.clone(),
            symbols: graph.symbols.clone(),
            guards: graph.guards.clone(),
            inputs: graph.inputs.iter().map(|&v| port(&graph[v].name, v)).collect(),
            outputs: graph.outputs.iter().map(|(name, v)| port(name, *v)).collect(),
            state: graph
                .state
                .iter()
                .map(|s| StatePort { input: s.input, output: s.output, appended: None })
                .collect(),
            lines: Vec::new(),
        }
    }

    pub(super) fn with_lines(mut self, lines: &[(&str, u32)]) -> Self {
        self.lines = lines.iter().map(|(name, line)| ((*name).to_owned(), *line)).collect();
        self
    }

    /// The atoms of all symbols, from the inputs' shapes.
    pub(super) fn atoms(&self, inputs: &[InputRef<'_>]) -> Result<Vec<i64>> {
        if inputs.len() != self.inputs.len() {
            let (found, expected) = (inputs.len(), self.inputs.len());
            return Err(Error::Count { what: "inputs", found, expected });
        }
        let mut patterns = Vec::with_capacity(inputs.len());
        for (port, input) in self.inputs.iter().zip(inputs) {
            if port.dtype != input.dtype {
                let (found, expected) = (input.dtype, port.dtype);
                return Err(Error::DType { name: port.name.clone(), found, expected });
            }
            let Port { name, shape, .. } = port;
            patterns.push(ShapePattern { name, dims: shape, extents: input.shape });
        }
        bind(&self.symbols, &patterns).map_err(|source| self.at_line(source))
    }

    /// Whether a tensor of the callers' is among the inputs that runs take from the run before.
    pub(super) fn is_kept(&self, input: usize) -> bool {
        self.state.binary_search_by_key(&input, |state| state.input as usize).is_ok()
    }

    /// Whether an output is among those that the next run takes.
    pub(super) fn is_made(&self, output: usize) -> bool {
        self.state.iter().any(|state| state.output as usize == output)
    }

    /// Whether runs append to some of the state.
    pub(super) fn appends(&self) -> bool {
        self.state.iter().any(|state| state.appended.is_some())
    }

    /// The shapes of state before the first run, which has these other inputs: a dim that no other input has begins at
    /// its least size.
    pub(super) fn first_shapes(&self, others: &[InputRef<'_>]) -> Result<Vec<Vec<usize>>> {
        let ports = self.inputs.iter().enumerate().filter(|(i, _)| !self.is_kept(*i));
        let patterns: Vec<ShapePattern<'_>> = ports
            .zip(others)
            .map(|((_, Port { name, shape, .. }), input)| ShapePattern {
                name,
                dims: shape,
                extents: input.shape,
            })
            .collect();
        let atoms = bind_or(&self.symbols, &patterns, &|symbol| Some(symbol.lo))
            .map_err(|source| self.at_line(source))?;
        let known = Known::new(&self.symbols, &atoms);
        self.state.iter().map(|s| self.shape(&self.inputs[s.input as usize], &known)).collect()
    }

    /// The error with the line of Aot.toml that it is about.
    pub(crate) fn at_line(&self, source: BindError) -> Error {
        let line = match &source {
            BindError::Range { dim, .. } | BindError::Step { dim, .. } => self.line(dim),
            _ => None,
        };
        Error::Shape { source, line }
    }

    fn line(&self, dim: &str) -> Option<u32> {
        self.lines.iter().find(|(name, _)| name == dim).map(|(_, line)| *line)
    }

    /// Checks the guards and computes the shapes of outputs as far as the sizes of inputs tell.
    pub(super) fn sizes(&self, atoms: Vec<i64>) -> Result<Sizes> {
        let known = Known::new(&self.symbols, &atoms);
        self.check_guards(&self.guards, &known, &|_| true)?;
        let shapes = |ports: &[Port]| -> Result<Vec<Vec<usize>>> {
            ports.iter().map(|port| self.shape(port, &known)).collect()
        };
        let (inputs, outputs) = (shapes(&self.inputs)?, shapes(&self.outputs)?);
        let open = self.outputs.iter().map(|port| !known.has_all(&port.shape)).collect();
        Ok(Sizes::new(atoms, inputs, outputs, open))
    }

    /// The shape of an output; 0 along axes that are not known yet.
    pub(crate) fn shape(&self, port: &Port, known: &Known) -> Result<Vec<usize>> {
        let mut shape = Vec::with_capacity(port.shape.len());
        for dim in &port.shape {
            if !known.has(dim) {
                shape.push(0);
                continue;
            }
            let extent = dim.eval(known.atoms())?;
            let negative = |_| Error::Shape {
                source: BindError::Extent {
                    input: port.name.clone(),
                    axis: shape.len(),
                    found: 0,
                    expected: format!("{} = {extent}", self.symbols.show(dim)),
                },
                line: None,
            };
            shape.push(usize::try_from(extent).map_err(negative)?);
        }
        Ok(shape)
    }

    /// A size that a symbol may have, for one that was computed from data that mean nothing.
    #[cfg(feature = "cuda")]
    pub(crate) fn nearest(&self, symbol: SymId, size: i64) -> i64 {
        self.symbols.get(symbol).map_or(size, |symbol| symbol.nearest(size))
    }

    /// Binds a symbol to a size that the run computed.
    #[cfg(feature = "cuda")]
    pub(crate) fn bind_in_run(&self, known: &mut Known, symbol: SymId, size: i64) -> Result<()> {
        let atom = atom_of(&self.symbols, symbol, size).map_err(|source| self.at_line(source))?;
        known.bind(symbol, atom);
        self.check_guards(&self.guards, known, &|dim| dim.any(|a| *a == Atom::Sym(symbol)))
    }

    /// Begins an iteration of a loop: the symbol that counts is `at`, and `guards` must hold.
    #[cfg(feature = "cuda")]
    pub(crate) fn begin_iteration(
        &self,
        known: &mut Known,
        symbol: SymId,
        at: i64,
        guards: &[Guard],
    ) -> Result<()> {
        known.bind(symbol, at);
        self.check_guards(guards, known, &|_| true)
    }

    /// Checks the guards of whose sides one is `wanted`, where all their symbols are known.
    fn check_guards(
        &self,
        guards: &[Guard],
        known: &Known,
        wanted: &dyn Fn(&Dim) -> bool,
    ) -> Result<()> {
        for Guard { lhs, rhs, node } in guards {
            if !(wanted(lhs) || wanted(rhs)) || !known.has(lhs) || !known.has(rhs) {
                continue;
            }
            let (left, right) = (lhs.eval(known.atoms())?, rhs.eval(known.atoms())?);
            if left != right {
                return Err(Error::Guard {
                    node: node.clone(),
                    lhs: self.symbols.show(lhs),
                    rhs: self.symbols.show(rhs),
                    left,
                    right,
                });
            }
        }
        Ok(())
    }
}
