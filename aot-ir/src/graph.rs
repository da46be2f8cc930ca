//! The graph: values, nodes, constants and guards, addressed by typed indices.

use crate::dim::Atom;
use crate::op::{HostOp, ShapeError};
use crate::{DType, Dim, Op, SymId, Symbols};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Index, Range};
use std::sync::Arc;

/// Index of a [`Value`] in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ValueId(pub u32);

/// Index of a [`Node`] in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeId(pub u32);

/// Index of a [`Constant`] in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ConstId(pub u32);

impl ValueId {
    /// The index as `usize`.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl NodeId {
    /// The index as `usize`.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl ConstId {
    /// The index as `usize`.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Def {
    /// The graph's n-th input.
    Input(u32),
    /// A constant.
    Const(ConstId),
    /// The n-th output of a node.
    Node(NodeId, u32),
}

/// A tensor: its type, its symbolic shape and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Value {
    /// The name in the source model, or one derived from it. Not necessarily unique.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Extents, outermost first.
    pub shape: Vec<Dim>,
    /// Definition.
    pub def: Def,
}

/// An application of an operator.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Node {
    /// The operator with its attributes.
    pub op: Op,
    /// Operands; which and how many is documented at each [`Op`].
    pub inputs: Vec<ValueId>,
    /// Results.
    pub outputs: Vec<ValueId>,
    /// Name of the source model's node that this one was made for.
    pub name: String,
}

/// Shared, immutable bytes: owned, or a range of a mapped file.
#[derive(Clone)]
pub struct Bytes {
    owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
    range: Range<usize>,
}

impl Bytes {
    /// All bytes of `owner`.
    pub fn new(owner: Arc<dyn AsRef<[u8]> + Send + Sync>) -> Self {
        let range = 0..(*owner).as_ref().len();
        Self { owner, range }
    }

    /// The bytes `range` of `owner`; `None` when it does not have them.
    pub fn part(owner: Arc<dyn AsRef<[u8]> + Send + Sync>, range: Range<usize>) -> Option<Self> {
        (*owner).as_ref().get(range.clone())?;
        Some(Self { owner, range })
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(Arc::new(bytes))
    }
}

impl Default for Bytes {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &(*self.owner).as_ref()[self.range.clone()]
    }
}

/// By content.
impl PartialEq for Bytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Bytes {}

impl Hash for Bytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

/// A tensor known at build time.
///
/// Serialising a graph leaves the bytes out; whoever loads it puts them back by index.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Constant {
    /// The name in the source model.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Extents, outermost first.
    pub shape: Vec<usize>,
    /// Elements in row-major order, laid out as [`DType`] says.
    #[serde(skip)]
    pub bytes: Bytes,
}

/// An equality of dims that could not be proved when the graph was made: checked at run time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Guard {
    /// One side.
    pub lhs: Dim,
    /// The other side.
    pub rhs: Dim,
    /// What needs it, for the error message: the node's name.
    pub node: String,
}

/// A symbol that gets its size during a run; see [`Graph::bindings`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Binding {
    /// The symbol, which is [bound by the run](crate::BoundBy::Run).
    pub symbol: SymId,
    /// Its size: an `I64` of rank 0. A size outside the symbol's range ends the run with an error.
    pub size: ValueId,
}

/// An output that is an input of the next run of the model; see [`Graph::state`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct State {
    /// Index into [`Graph::inputs`].
    pub input: u32,
    /// Index into [`Graph::outputs`].
    pub output: u32,
}

/// A model as typed SSA; see the crate's documentation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Graph {
    /// The model's name.
    pub name: String,
    /// Run-time sizes.
    pub symbols: Symbols,
    values: Vec<Value>,
    nodes: Vec<Node>,
    constants: Vec<Constant>,
    /// Inputs in the order of the source model.
    pub inputs: Vec<ValueId>,
    /// Outputs in the order of the source model: name and value (one value may have several names).
    pub outputs: Vec<(String, ValueId)>,
    /// Equalities to check at run time, as soon as the symbols that they mention are bound.
    pub guards: Vec<Guard>,
    /// Sizes that the run computes, at most one for a symbol. What mentions the symbol (nodes in their attributes or
    /// the shapes of their results) comes after the node that makes the size.
    pub bindings: Vec<Binding>,
    /// What runs keep for the next one, in order of the inputs. Both have one type and rank; a run says nothing of
    /// state: it reads all inputs and makes all outputs.
    pub state: Vec<State>,
}

impl Graph {
    /// An empty graph.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// All values.
    pub fn values(&self) -> impl ExactSizeIterator<Item = (ValueId, &Value)> {
        self.values.iter().enumerate().map(|(i, v)| (ValueId(i as u32), v))
    }

    /// All nodes in topological order.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = (NodeId, &Node)> + ExactSizeIterator {
        self.nodes.iter().enumerate().map(|(i, n)| (NodeId(i as u32), n))
    }

    /// All constants.
    pub fn constants(&self) -> impl ExactSizeIterator<Item = (ConstId, &Constant)> {
        self.constants.iter().enumerate().map(|(i, c)| (ConstId(i as u32), c))
    }

    /// Gives every constant its bytes, as after loading a serialised graph.
    pub fn bind_constants(&mut self, mut bytes: impl FnMut(ConstId, &Constant) -> Bytes) {
        for i in 0..self.constants.len() {
            let data = bytes(ConstId(i as u32), &self.constants[i]);
            self.constants[i].bytes = data;
        }
    }

    /// Makes inputs, the last ones, of all constants, and gives these in their order.
    pub fn lift_constants(&mut self) -> Vec<Constant> {
        let constants = std::mem::take(&mut self.constants);
        let mut values: Vec<Option<ValueId>> = vec![None; constants.len()];
        for i in 0..self.values.len() {
            if let Def::Const(id) = self.values[i].def {
                values[id.index()] = Some(ValueId(i as u32));
            }
        }
        let lifted = constants.into_iter().zip(values);
        lifted
            .filter_map(|(constant, value)| {
                let value = value?;
                self.values[value.index()].def = Def::Input(self.inputs.len() as u32);
                self.inputs.push(value);
                Some(constant)
            })
            .collect()
    }

    /// Renames a value.
    pub fn set_name(&mut self, value: ValueId, name: impl Into<String>) {
        self.values[value.index()].name = name.into();
    }

    /// The constant that a value is, if it is one.
    pub fn constant_of(&self, value: ValueId) -> Option<&Constant> {
        match self[value].def {
            Def::Const(id) => Some(&self[id]),
            _ => None,
        }
    }

    /// The node that makes a value, if one does.
    pub fn producer(&self, value: ValueId) -> Option<NodeId> {
        match self[value].def {
            Def::Node(node, _) => Some(node),
            _ => None,
        }
    }

    /// For every value, the nodes that read it (once per operand position).
    pub fn uses(&self) -> Vec<Vec<NodeId>> {
        let mut uses = vec![Vec::new(); self.values.len()];
        for (id, node) in self.nodes() {
            for input in &node.inputs {
                uses[input.index()].push(id);
            }
        }
        uses
    }

    /// What the host does for runs on any device, in bodies too.
    pub fn on_host(&self) -> Vec<&HostOp> {
        let all = self.nodes.iter().flat_map(|node| match &node.op {
            Op::Host(op) => vec![op],
            Op::Loop(attrs) => attrs.body.on_host(),
            _ => Vec::new(),
        });
        all.collect()
    }

    /// The value that gives a symbol its size during a run, if one does.
    pub fn binding(&self, symbol: SymId) -> Option<ValueId> {
        self.bindings.iter().find(|b| b.symbol == symbol).map(|b| b.size)
    }

    /// The sizes that must be known before an expression has a value.
    pub fn sizes_of<'d>(&self, dims: impl IntoIterator<Item = &'d Dim>) -> Vec<ValueId> {
        let mut sizes = Vec::new();
        if self.bindings.is_empty() {
            return sizes;
        }
        for dim in dims {
            dim.visit(&mut |atom| {
                if let Atom::Sym(symbol) = atom
                    && let Some(size) = self.binding(*symbol)
                    && !sizes.contains(&size)
                {
                    sizes.push(size);
                }
            });
        }
        sizes
    }

    /// The sizes that must be known before a node can run: those that its attributes and the shapes of its results
    /// mention.
    pub fn sizes_needed(&self, node: NodeId) -> Vec<ValueId> {
        let node = &self[node];
        let shapes = node.outputs.iter().flat_map(|v| &self[*v].shape);
        self.sizes_of(node.op.dims().into_iter().chain(shapes))
    }

    /// Adds a graph input.
    pub fn add_input(&mut self, name: impl Into<String>, dtype: DType, shape: Vec<Dim>) -> ValueId {
        let def = Def::Input(self.inputs.len() as u32);
        let id = self.push_value(Value { name: name.into(), dtype, shape, def });
        self.inputs.push(id);
        id
    }

    /// Adds a constant and the value that stands for it.
    ///
    /// # Errors
    /// When the number of bytes does not match type and shape.
    pub fn add_constant(&mut self, constant: Constant) -> Result<ValueId, GraphError> {
        let elements = constant.shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d as u64));
        let expected = elements.and_then(|n| constant.dtype.bytes_for(n));
        if expected != Some(constant.bytes.len() as u64) {
            return Err(GraphError::ConstantSize {
                name: constant.name,
                dtype: constant.dtype,
                shape: constant.shape,
                found: constant.bytes.len(),
            });
        }
        let id = ConstId(self.constants.len() as u32);
        let value = Value {
            name: constant.name.clone(),
            dtype: constant.dtype,
            shape: constant.shape.iter().map(|&d| Dim::from(d as i64)).collect(),
            def: Def::Const(id),
        };
        self.constants.push(constant);
        Ok(self.push_value(value))
    }

    /// Adds a node; types and shapes of its outputs follow from the operator's rule
    /// ([`Op::infer`]), and what the rule could not prove becomes guards.
    ///
    /// # Errors
    /// When the operands do not fit the operator.
    pub fn add(
        &mut self,
        op: Op,
        inputs: &[ValueId],
        name: impl Into<String>,
    ) -> Result<Vec<ValueId>, GraphError> {
        let name = name.into();
        let operands: Vec<&Value> = inputs.iter().map(|&v| &self[v]).collect();
        let inferred = op.infer(&operands, &self.symbols).map_err(|error| GraphError::Shape {
            node: name.clone(),
            op: op.name(),
            error: Box::new(error),
        })?;
        let node = NodeId(self.nodes.len() as u32);
        for (lhs, rhs) in inferred.guards {
            let guard = Guard { lhs, rhs, node: name.clone() };
            if !self.guards.contains(&guard) {
                self.guards.push(guard);
            }
        }
        let outputs = (0..).zip(inferred.outputs).map(|(i, (dtype, shape))| {
            let name = if i == 0 { name.clone() } else { format!("{name}:{i}") };
            Value { name, dtype, shape, def: Def::Node(node, i) }
        });
        let outputs: Vec<Value> = outputs.collect();
        let outputs: Vec<ValueId> = outputs.into_iter().map(|v| self.push_value(v)).collect();
        self.nodes.push(Node { op, inputs: inputs.to_vec(), outputs: outputs.clone(), name });
        Ok(outputs)
    }

    /// Adds a node of one output.
    ///
    /// # Errors
    /// As [`Graph::add`].
    pub fn add1(
        &mut self,
        op: Op,
        inputs: &[ValueId],
        name: impl Into<String>,
    ) -> Result<ValueId, GraphError> {
        Ok(self.add(op, inputs, name)?[0])
    }

    fn push_value(&mut self, value: Value) -> ValueId {
        let id = ValueId(self.values.len() as u32);
        self.values.push(value);
        id
    }
}

impl Index<ValueId> for Graph {
    type Output = Value;
    fn index(&self, id: ValueId) -> &Value {
        &self.values[id.index()]
    }
}

impl Index<NodeId> for Graph {
    type Output = Node;
    fn index(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }
}

impl Index<ConstId> for Graph {
    type Output = Constant;
    fn index(&self, id: ConstId) -> &Constant {
        &self.constants[id.index()]
    }
}

/// Why something could not be added to a graph.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// A constant's bytes do not match its type and shape.
    #[error("constant `{name}` has {found} bytes, which is not what {dtype} {shape:?} takes")]
    ConstantSize {
        /// Its name.
        name: String,
        /// Its element type.
        dtype: DType,
        /// Its shape.
        shape: Vec<usize>,
        /// How many bytes there are.
        found: usize,
    },
    /// Operands do not fit an operator.
    #[error("node `{node}` ({op}): {error}")]
    Shape {
        /// Name of the node.
        node: String,
        /// Name of the operator.
        op: &'static str,
        /// What does not fit.
        error: Box<ShapeError>,
    },
}
