//! Tensors of the model while it is imported: graph values, constants, or known elements.

use super::super::known::{Content, Elem, round_to};
use super::repeat::Frame;
use super::sizes::DataSizes;
use aot_ir::{
    Bytes, Constant, DType, Dim, Graph, GraphError, Guard, Op, Scope, SymId, Symbol, Symbols,
    Value, ValueId,
};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

/// Most atoms in the extent of an axis: more would make every proof slow, and recursion deep.
const MAX_ATOMS: usize = 400;

/// A tensor of the model; an index into [`Builder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct Tensor(u32);

/// Why a node can't be imported.
#[derive(Debug)]
pub(in super::super) enum OpError {
    /// The model is wrong.
    Wrong(String),
    /// The model may be right, but this use of an operator is not supported.
    Unsupported(String),
}

/// What an operation gives.
pub(in super::super) type OpResult<T = Tensor> = Result<T, OpError>;

/// An [`OpError::Wrong`].
pub(in super::super) fn wrong<T>(text: impl Into<String>) -> OpResult<T> {
    Err(OpError::Wrong(text.into()))
}

/// An [`OpError::Unsupported`].
pub(in super::super) fn unsupported<T>(text: impl Into<String>) -> OpResult<T> {
    Err(OpError::Unsupported(text.into()))
}

impl From<GraphError> for OpError {
    fn from(error: GraphError) -> Self {
        // Whoever reports it knows the node.
        Self::Wrong(match error {
            GraphError::Shape { op, error, .. } => format!("{op}: {error}"),
            other => other.to_string(),
        })
    }
}

/// What is known of elements.
#[derive(Debug)]
enum Known {
    /// A constant that was not looked at.
    Unread,
    /// Nothing.
    No,
    /// Everything.
    Yes(Rc<Content>),
}

#[derive(Debug)]
struct Entry {
    dtype: DType,
    shape: Vec<Dim>,
    known: Known,
    constant: Option<Constant>,
    /// In the graph of this number.
    value: Option<(u32, ValueId)>,
    name: Option<String>,
    /// Tensors whose elements, one after the other, are those of this one.
    made_of: Vec<Tensor>,
}

/// The graph in the making.
#[derive(Debug)]
pub(in super::super) struct Builder {
    /// The graph that nodes are added to.
    pub(super) frame: Frame,
    /// Those around it, the outermost first.
    pub(super) outer: Vec<Frame>,
    /// How many graphs there were within others.
    pub(super) frames: u32,
    entries: Vec<Entry>,
    scalars: HashMap<(DType, u64), Tensor>,
    /// What the elements of a tensor of places stand for.
    pub(super) texts: HashMap<Tensor, Rc<[String]>>,
    pub(super) data_sizes: DataSizes,
    /// The input that random numbers come from, once there is one.
    pub(super) seed: Option<Tensor>,
    /// How often random numbers have been drawn from it.
    pub(super) drawings: u64,
    /// What the user should know.
    warnings: Vec<String>,
    /// Name of the model's node that nodes are made for.
    pub(in super::super) node: String,
}

impl Builder {
    /// Builds on an empty graph with these symbols, and others for what data gives.
    pub(in super::super) fn new(name: &str, symbols: Symbols, data_sizes: DataSizes) -> Self {
        let mut graph = Graph::new(name);
        graph.symbols = symbols;
        Self {
            frame: Frame { graph, ..Frame::default() },
            outer: Vec::new(),
            frames: 0,
            entries: Vec::new(),
            scalars: HashMap::new(),
            texts: HashMap::new(),
            data_sizes,
            seed: None,
            drawings: 0,
            warnings: Vec::new(),
            node: String::new(),
        }
    }

    /// The dims with a range that data took its sizes from.
    pub(in super::super) fn used_ranges(&self) -> &BTreeSet<String> {
        &self.data_sizes.used
    }

    pub(super) fn graph(&self) -> &Graph {
        &self.frame.graph
    }

    pub(super) fn graph_mut(&mut self) -> &mut Graph {
        &mut self.frame.graph
    }

    /// Whether a tensor was made in the graph that nodes are added to.
    pub(super) fn is_here(&self, t: Tensor) -> bool {
        self.is_of(t, self.frame.number)
    }

    /// Whether a tensor was made in the graph of this number.
    pub(super) fn is_of(&self, t: Tensor, graph: u32) -> bool {
        self.entry(t).value.is_some_and(|(number, _)| number == graph)
    }

    /// Says what elements of data are by now known to be.
    pub(super) fn set_known(&mut self, t: Tensor, content: Rc<Content>) {
        self.entries[t.0 as usize].known = Known::Yes(content);
    }

    /// Notes whose elements, one after the other, a tensor's are.
    pub(super) fn set_made_of(&mut self, t: Tensor, parts: &[Tensor]) {
        self.entries[t.0 as usize].made_of = parts.to_vec();
    }

    /// See [`Builder::set_made_of`]; none where that is not known.
    pub(super) fn made_of(&self, t: Tensor) -> &[Tensor] {
        &self.entry(t).made_of
    }

    /// The graph with its outputs; or the output that can't be made.
    pub(in super::super) fn finish(
        mut self,
        outputs: Vec<(String, Tensor)>,
    ) -> Result<Graph, (String, OpError)> {
        for (name, tensor) in outputs {
            match self.value(tensor) {
                Ok(value) => self.frame.graph.outputs.push((name, value)),
                Err(error) => return Err((name, error)),
            }
        }
        Ok(self.frame.graph)
    }

    /// The run-time sizes.
    pub(in super::super) fn symbols(&self) -> &Symbols {
        &self.frame.graph.symbols
    }

    /// What can be proved of the run-time sizes.
    pub(in super::super) fn scope(&self) -> Scope<'_> {
        Scope::new(&self.frame.graph.symbols)
    }

    fn push(&mut self, entry: Entry) -> Tensor {
        self.entries.push(entry);
        Tensor(self.entries.len() as u32 - 1)
    }

    fn entry(&self, t: Tensor) -> &Entry {
        &self.entries[t.0 as usize]
    }

    /// Adds an input.
    pub(in super::super) fn input(&mut self, name: &str, dtype: DType, shape: Vec<Dim>) -> Tensor {
        let value = self.frame.graph.add_input(name, dtype, shape);
        let t = self.of_value(value);
        self.entries[t.0 as usize].name = Some(name.to_owned());
        t
    }

    /// Adds a scalar input to the outermost graph.
    pub(super) fn outermost_input(&mut self, name: &str, dtype: DType) -> Tensor {
        let graph = &mut self.outer.first_mut().unwrap_or(&mut self.frame).graph;
        let value = graph.add_input(name, dtype, Vec::new());
        self.computed((0, value), dtype, Vec::new(), Some(name.to_owned()))
    }

    /// The tensor of a value of the graph of this number.
    fn computed(
        &mut self,
        value: (u32, ValueId),
        dtype: DType,
        shape: Vec<Dim>,
        name: Option<String>,
    ) -> Tensor {
        let (constant, value, made_of) = (None, Some(value), Vec::new());
        self.push(Entry { dtype, shape, known: Known::No, constant, value, name, made_of })
    }

    /// Adds a stored tensor; it becomes part of the graph when something reads it as data.
    pub(in super::super) fn constant(&mut self, constant: Constant) -> Tensor {
        self.push(Entry {
            dtype: constant.dtype,
            shape: constant.shape.iter().map(|&d| Dim::from(d as i64)).collect(),
            known: Known::Unread,
            value: None,
            name: Some(constant.name.clone()).filter(|n| !n.is_empty()),
            constant: Some(constant),
            made_of: Vec::new(),
        })
    }

    /// A tensor whose elements are known.
    pub(in super::super) fn known(&mut self, dtype: DType, content: Content) -> Tensor {
        self.push(Entry {
            dtype,
            shape: content.shape.clone(),
            known: Known::Yes(Rc::new(content)),
            constant: None,
            value: None,
            name: None,
            made_of: Vec::new(),
        })
    }

    /// The stored tensor that a tensor is, if it is one.
    pub(in super::super) fn stored(&self, t: Tensor) -> Option<Constant> {
        self.entry(t).constant.clone()
    }

    /// Run-time sizes as an `I64` tensor of rank 1.
    pub(in super::super) fn dims(&mut self, dims: &[Dim]) -> Tensor {
        let elements = dims.iter().map(|d| Elem::Int(d.clone())).collect();
        self.known(DType::I64, Content::vector(elements))
    }

    /// A scalar of rank 0: `value` in the nearest element of `dtype`.
    pub(in super::super) fn scalar(&mut self, value: f64, dtype: DType) -> Tensor {
        if let Some(&t) = self.scalars.get(&(dtype, value.to_bits())) {
            return t;
        }
        let element = match dtype {
            DType::Bool => Elem::truth(value != 0.0),
            d if d.is_float() => Elem::Float(round_to(d, value)),
            _ => Elem::Int(Dim::from(value as i64)),
        };
        let t = self.known(dtype, Content::scalar(element));
        self.scalars.insert((dtype, value.to_bits()), t);
        t
    }

    /// A scalar of the element type that `like` has.
    pub(in super::super) fn scalar_like(&mut self, value: f64, like: Tensor) -> Tensor {
        let dtype = self.dtype(like);
        self.scalar(value, dtype)
    }

    /// Element type.
    pub(in super::super) fn dtype(&self, t: Tensor) -> DType {
        self.entry(t).dtype
    }

    /// Extents.
    pub(in super::super) fn shape(&self, t: Tensor) -> &[Dim] {
        &self.entry(t).shape
    }

    /// Number of axes.
    pub(in super::super) fn rank(&self, t: Tensor) -> usize {
        self.entry(t).shape.len()
    }

    /// What is known of the elements.
    pub(in super::super) fn content(&mut self, t: Tensor) -> Option<Rc<Content>> {
        let entry = &mut self.entries[t.0 as usize];
        if let Known::Unread = entry.known {
            let read = entry.constant.as_ref().and_then(Content::of_constant);
            entry.known = read.map_or(Known::No, |c| Known::Yes(Rc::new(c)));
        }
        match &entry.known {
            Known::Yes(content) => Some(content.clone()),
            _ => None,
        }
    }

    /// The listed elements as integers.
    pub(in super::super) fn ints(&mut self, t: Tensor) -> Option<Vec<Dim>> {
        let content = self.content(t)?;
        content.list()?.iter().map(|e| e.as_int().cloned()).collect()
    }

    /// The listed elements as numbers.
    pub(in super::super) fn numbers(&mut self, t: Tensor) -> Option<Vec<f64>> {
        let content = self.content(t)?;
        content.list()?.iter().map(Elem::as_const).collect()
    }

    /// The one number that all elements are.
    pub(in super::super) fn uniform(&mut self, t: Tensor) -> Option<f64> {
        self.content(t)?.uniform()?.as_const()
    }

    /// Tells the user something about the node at hand.
    pub(in super::super) fn warn(&mut self, text: &str) {
        let text = format!("node `{}`: {text}", self.node);
        if !self.warnings.contains(&text) {
            self.warnings.push(text);
        }
    }

    /// What there is to tell, once.
    pub(in super::super) fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// How many guards there are.
    pub(in super::super) fn guards(&self) -> usize {
        self.frame.graph.guards.len()
    }

    /// Takes back all guards but the first ones.
    pub(in super::super) fn keep_guards(&mut self, count: usize) {
        self.frame.graph.guards.truncate(count);
    }

    /// Has every run check that two sizes are equal.
    pub(in super::super) fn guard(&mut self, lhs: Dim, rhs: Dim) {
        let guard = Guard { lhs, rhs, node: self.node.clone() };
        if !self.frame.graph.guards.contains(&guard) {
            self.frame.graph.guards.push(guard);
        }
    }

    /// Gives a tensor the model's name for it, unless it has one.
    pub(in super::super) fn name(&mut self, t: Tensor, name: &str) {
        let entry = &mut self.entries[t.0 as usize];
        if entry.name.is_none() && !name.is_empty() {
            entry.name = Some(name.to_owned());
            if let Some((_, value)) = entry.value.filter(|(n, _)| *n == self.frame.number) {
                self.frame.graph.set_name(value, name);
            }
        }
    }

    /// The tensor of a graph value.
    pub(in super::super) fn of_value(&mut self, value: ValueId) -> Tensor {
        let Value { dtype, shape, .. } = &self.frame.graph[value];
        let (dtype, shape) = (*dtype, shape.clone());
        self.computed((self.frame.number, value), dtype, shape, None)
    }

    /// The graph value that holds a tensor, made if there is none yet.
    pub(in super::super) fn value(&mut self, t: Tensor) -> OpResult<ValueId> {
        let here = self.frame.number;
        if let Some((number, value)) = self.entry(t).value
            && number == here
        {
            return Ok(value);
        }
        if let Some(&value) = self.frame.values.get(&t) {
            return Ok(value);
        }
        let value = match self.entry(t).constant.clone() {
            Some(constant) if here == 0 => self.frame.graph.add_constant(constant)?,
            Some(_) => self.capture(t)?,
            None => match self.content(t) {
                Some(content) => {
                    let dtype = self.dtype(t);
                    self.emit_content(&content, dtype)?
                }
                None if self.entry(t).value.is_some() => self.capture(t)?,
                None => return wrong("a tensor without elements"),
            },
        };
        match here {
            0 => self.entries[t.0 as usize].value = Some((0, value)),
            _ => {
                self.frame.values.insert(t, value);
            }
        }
        if let Some(name) = &self.entries[t.0 as usize].name {
            self.frame.graph.set_name(value, name.clone());
        }
        Ok(value)
    }

    /// The name that a tensor was given.
    pub(super) fn given_name(&self, t: Tensor) -> Option<&str> {
        self.entry(t).name.as_deref()
    }

    /// The model's name for a tensor, or that of the current node.
    pub(super) fn name_of(&self, t: Tensor) -> String {
        self.entry(t).name.clone().unwrap_or_else(|| self.node.clone())
    }

    /// Extents of a graph value.
    pub(super) fn shape_of(&self, value: ValueId) -> &[Dim] {
        &self.frame.graph[value].shape
    }

    /// Element type of a graph value.
    pub(super) fn dtype_of(&self, value: ValueId) -> DType {
        self.frame.graph[value].dtype
    }

    /// Adds a constant node value.
    pub(super) fn add_constant(
        &mut self,
        dtype: DType,
        shape: Vec<usize>,
        bytes: Vec<u8>,
    ) -> OpResult<ValueId> {
        let name = self.node.clone();
        Ok(self.frame.graph.add_constant(Constant {
            name,
            dtype,
            shape,
            bytes: Bytes::from(bytes),
        })?)
    }

    /// Adds a node on graph values.
    pub(super) fn add(&mut self, op: Op, inputs: &[ValueId]) -> OpResult<ValueId> {
        let name = self.node.clone();
        let value = self.frame.graph.add1(op, inputs, name)?;
        for dim in self.shape_of(value) {
            let mut atoms = 0;
            dim.visit(&mut |_| atoms += 1);
            if atoms > MAX_ATOMS {
                return unsupported(
                    "the size of an axis is too complicated a function of run-time sizes; \
                     give dims steps, or fixed sizes",
                );
            }
        }
        Ok(value)
    }

    /// Adds a node of any number of results, whatever is known of its operands.
    pub(in super::super) fn ops(&mut self, op: Op, inputs: &[Tensor]) -> OpResult<Vec<Tensor>> {
        let inputs = inputs.iter().map(|&t| self.value(t)).collect::<OpResult<Vec<_>>>()?;
        let name = self.node.clone();
        let values = self.frame.graph.add(op, &inputs, name)?;
        Ok(values.into_iter().map(|value| self.of_value(value)).collect())
    }

    /// A body for a loop of `count` iterations whose inputs are like the operands, and the symbol that counts them.
    pub(in super::super) fn body(
        &mut self,
        count: &Dim,
        operands: &[Tensor],
        make: impl FnOnce(&mut Graph, &[ValueId]) -> Result<(), GraphError>,
    ) -> OpResult<(SymId, Graph)> {
        let most = self.scope().interval(count).hi;
        let name = self.free_name(&format!("{} turn", self.node));
        let iteration = self.frame.graph.symbols.add(Symbol::counter(name, count.clone(), most));
        let mut body = Graph::new(self.node.clone());
        body.symbols = self.frame.graph.symbols.clone();
        let inputs = operands
            .iter()
            .enumerate()
            .map(|(i, &t)| body.add_input(format!("x{i}"), self.dtype(t), self.shape(t).to_vec()));
        let inputs: Vec<ValueId> = inputs.collect();
        make(&mut body, &inputs)?;
        Ok((iteration, body))
    }

    /// Adds a node of one result, whatever is known of its operands.
    pub(in super::super) fn op(&mut self, op: Op, inputs: &[Tensor]) -> OpResult {
        let inputs = inputs.iter().map(|&t| self.value(t)).collect::<OpResult<Vec<_>>>()?;
        let value = self.add(op, &inputs)?;
        Ok(self.of_value(value))
    }
}
