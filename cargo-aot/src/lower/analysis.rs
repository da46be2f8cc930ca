//! Facts about a graph that fusion decides by.

use super::logarithm::before_logarithms;
use super::options::{LowerOptions, Precision};
use super::small_constant;
use aot_ir::op::{BinaryOp, PadMode, UnaryOp};
use aot_ir::{DType, Def, Graph, Node, NodeId, Op, Scope, ValueId};
use aot_kernels::group::MathType;

/// How a node takes part in groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A scalar function of operand elements: computed wherever it is read.
    Inline,
    /// As `Inline`, but reads windows: computed once, with what follows it fused.
    Window,
    /// A reduction, norm or softmax.
    Reduce,
    /// A running combination.
    Scan,
    /// A matrix product or dense convolution.
    Contraction,
    /// Attention.
    Attention,
    /// A scatter.
    Scatter,
    /// A loop.
    Loop,
    /// What the host does.
    Host,
    /// No kernel does it.
    Unsupported,
}

impl Role {
    pub(super) fn is_anchor(self) -> bool {
        self != Self::Inline
    }
}

/// What is known of every node and value.
pub(super) struct Analysis<'g> {
    pub(super) graph: &'g Graph,
    pub(super) options: &'g LowerOptions,
    pub(super) roles: Vec<Role>,
    /// Readers of every value.
    pub(super) uses: Vec<Vec<NodeId>>,
    /// Whether a value is read from outside of kernels: a graph output, or the size of a symbol.
    pub(super) is_output: Vec<bool>,
    /// Whether a value depends on constants only.
    pub(super) is_const: Vec<bool>,
    /// Whether a contraction, attention, norm, softmax or loop is among a value's ancestors, so that its
    /// magnitude is that of activations.
    pub(super) is_activation: Vec<bool>,
    /// The greatest finite number of the graph that a value may have got, as masks have the least float:
    /// see [`greatest`].
    greatest: Vec<f64>,
    /// By node: see [`before_logarithms`].
    before_logarithm: Vec<bool>,
    /// Nodes in order of execution: those of constants first.
    pub(super) order: Vec<NodeId>,
    /// Position of every node in `order`.
    pub(super) position: Vec<usize>,
    /// Greatest position + 1 of an anchor among a value's ancestors; 0 if there is none.
    pub(super) last_anchor: Vec<usize>,
    /// Greatest position + 1 of a node that makes a size which a value or an ancestor of it needs; 0 if there is
    /// none. A size is known only after the group that makes it.
    pub(super) last_size: Vec<usize>,
}

impl<'g> Analysis<'g> {
    pub(super) fn new(graph: &'g Graph, options: &'g LowerOptions) -> Self {
        let count = graph.values().len();
        let roles = graph.nodes().map(|(_, n)| role(graph, n)).collect::<Vec<_>>();
        let mut is_output = vec![false; count];
        for v in graph.outputs.iter().map(|(_, v)| v).chain(graph.bindings.iter().map(|b| &b.size))
        {
            is_output[v.index()] = true;
        }
        let mut is_const: Vec<bool> =
            graph.values().map(|(_, v)| matches!(v.def, Def::Const(_))).collect();
        for (_, node) in graph.nodes() {
            let constant = !node.inputs.is_empty()
                && !matches!(node.op, Op::Host(_))
                && node.inputs.iter().all(|v| is_const[v.index()])
                && node.op.dims().iter().all(|d| d.as_const().is_some())
                && node
                    .outputs
                    .iter()
                    .all(|v| graph[*v].shape.iter().all(|d| d.as_const().is_some()));
            for out in &node.outputs {
                is_const[out.index()] = constant;
            }
        }
        let of_const = |n: &NodeId| graph[*n].outputs.iter().all(|v| is_const[v.index()]);
        let (mut order, rest): (Vec<NodeId>, Vec<NodeId>) =
            graph.nodes().map(|(id, _)| id).partition(of_const);
        order.extend(rest);
        let mut position = vec![0; order.len()];
        for (i, node) in order.iter().enumerate() {
            position[node.index()] = i;
        }
        let (mut last_anchor, mut last_size) = (vec![0; count], vec![0; count]);
        let mut is_activation = vec![false; count];
        for &id in &order {
            let node = &graph[id];
            let sizes = graph.sizes_needed(id);
            let needed = node.inputs.iter().chain(&sizes);
            let above = needed.map(|v| last_anchor[v.index()]).max().unwrap_or(0);
            let bound =
                sizes.iter().filter_map(|v| Some(position[graph.producer(*v)?.index()] + 1));
            let bound = bound.chain(node.inputs.iter().map(|v| last_size[v.index()])).max();
            let role = roles[id.index()];
            let own = if role.is_anchor() { position[id.index()] + 1 } else { 0 };
            let active = matches!(role, Role::Contraction | Role::Attention)
                || matches!(node.op, Op::Normalize { .. } | Op::Softmax { .. } | Op::Loop(_))
                || node.inputs.iter().any(|v| is_activation[v.index()]);
            for out in &node.outputs {
                last_anchor[out.index()] = above.max(own);
                last_size[out.index()] = bound.unwrap_or(0);
                is_activation[out.index()] = active && !is_const[out.index()];
            }
        }
        let uses = graph.uses();
        Self {
            graph,
            options,
            roles,
            uses,
            is_output,
            is_const,
            is_activation,
            greatest: greatest(graph),
            before_logarithm: before_logarithms(graph),
            order,
            position,
            last_anchor,
            last_size,
        }
    }

    pub(super) fn role(&self, node: NodeId) -> Role {
        self.roles[node.index()]
    }

    pub(super) fn scope(&self) -> Scope<'g> {
        Scope::new(&self.graph.symbols)
    }

    /// Whether two shapes are proved equal.
    pub(super) fn same_shape(&self, a: ValueId, b: ValueId) -> bool {
        let (a, b) = (&self.graph[a].shape, &self.graph[b].shape);
        let scope = self.scope();
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| scope.proves_eq(a, b))
    }

    /// Whether a node makes numbers of a wider type of those of state, moved or not: reading them as they are kept takes
    /// no work worth a copy, which would grow with the past.
    pub(super) fn widens_state(&self, node: &Node) -> bool {
        let Op::Cast(DType::F32) = node.op else { return false };
        let mut value = node.inputs[0];
        if !matches!(self.graph[value].dtype, DType::F16 | DType::Bf16) {
            return false;
        }
        let is_kept = |value| {
            let outputs = &self.graph.outputs;
            self.graph.state.iter().any(|s| outputs[s.output as usize].1 == value)
        };
        while !is_kept(value) {
            match self.graph.producer(value).map(|id| &self.graph[id]) {
                Some(moved) if is_movement(&moved.op) => value = moved.inputs[0],
                _ => return false,
            }
        }
        true
    }

    /// The type that a value is wanted in if matrix operands are all that it is used for.
    pub(super) fn matrix_type(&self, value: ValueId) -> Option<DType> {
        if self.is_output[value.index()] {
            return None;
        }
        self.read_as(value)
    }

    /// The type that a value is wanted in if matrix operands are all that groups use it for.
    pub(super) fn read_as(&self, value: ValueId) -> Option<DType> {
        let mut wanted = None;
        for &id in &self.uses[value.index()] {
            let node = &self.graph[id];
            let operands = match self.role(id) {
                Role::Contraction => 2,
                Role::Attention => 3,
                _ => 0,
            };
            let here = if operands > 0 {
                let direct = node.inputs[..operands].contains(&value)
                    && !node.inputs[operands..].contains(&value);
                direct.then(|| operand_type(self.math(node)))?
            } else if is_movement(&node.op) || matches!(node.op, Op::Concat { .. }) {
                self.matrix_type(node.outputs[0])?
            } else {
                return None;
            };
            if *wanted.get_or_insert(here) != here {
                return None;
            }
        }
        wanted
    }

    fn precision(&self, node: &Node) -> Precision {
        let flows = |v: &ValueId| match self.graph[*v].def {
            Def::Node(id, _) => self.before_logarithm[id.index()],
            _ => false,
        };
        match self.options.named(&node.name) {
            Some(precision) => precision,
            None if node.outputs.first().is_some_and(flows) => Precision::F32,
            None => self.options.precision,
        }
    }

    /// How a value that is kept in memory is stored.
    pub(super) fn storage(&self, value: ValueId) -> DType {
        let v = &self.graph[value];
        let Def::Node(node, _) = v.def else { return v.dtype };
        if self.is_const[value.index()]
            && v.dtype.is_float()
            && let Some(dtype) = self.matrix_type(value)
        {
            return dtype;
        }
        if v.dtype != DType::F32
            || self.is_output[value.index()]
            || !self.is_activation[value.index()]
        {
            return v.dtype;
        }
        let (narrow, most) = match self.precision(&self.graph[node]) {
            Precision::F16 => (DType::F16, half::f16::MAX.to_f64()),
            Precision::Bf16 => (DType::Bf16, half::bf16::MAX.to_f64()),
            Precision::F32 | Precision::Tf32 => return DType::F32,
        };
        // What is finite must not be stored as infinity.
        if self.greatest[value.index()] <= most { narrow } else { DType::F32 }
    }

    /// What a contraction or attention multiplies in.
    pub(super) fn math(&self, node: &Node) -> MathType {
        let dtype = self.graph[node.inputs[0]].dtype;
        match dtype {
            DType::F64 => MathType::F64,
            t if !t.is_float() => MathType::I32,
            _ => match self.precision(node) {
                Precision::F32 => MathType::F32,
                Precision::Tf32 => MathType::Tf32,
                Precision::F16 => MathType::F16,
                Precision::Bf16 => MathType::Bf16,
            },
        }
    }
}

/// By value, the greatest magnitude of finite numbers (constants of one element and fills) among what it
/// was computed from by operators that may pass a number on as it is.
fn greatest(graph: &Graph) -> Vec<f64> {
    let mut greatest = vec![0f64; graph.values().len()];
    let finite = |x: f64| if x.is_finite() { x.abs() } else { 0.0 };
    for (id, _) in graph.values() {
        greatest[id.index()] = small_constant(graph, id).map_or(0.0, |s| finite(s.as_f64()));
    }
    for (_, node) in graph.nodes() {
        // The number that a value is limited to is hardly ever reached.
        let limits = matches!(node.op, Op::Binary(BinaryOp::Min | BinaryOp::Max));
        let passing = node.inputs.iter().filter(|v| !limits || graph.constant_of(**v).is_none());
        let passed = passing.map(|v| greatest[v.index()]).fold(0.0, f64::max);
        let most = match &node.op {
            Op::Unary(op) if !matches!(op, UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Relu) => 0.0,
            Op::Binary(op) if op.is_comparison() => 0.0,
            Op::MatMul
            | Op::Conv(_)
            | Op::ConvTranspose { .. }
            | Op::Attention(_)
            | Op::Softmax { .. }
            | Op::Normalize { .. } => 0.0,
            Op::Fill { value, .. } => finite(value.as_f64()),
            Op::Pad { mode: PadMode::Constant(value), .. } => passed.max(finite(value.as_f64())),
            _ => passed,
        };
        for out in &node.outputs {
            greatest[out.index()] = most;
        }
    }
    greatest
}

/// The storage type whose elements matrix units take as they are.
pub(super) fn operand_type(math: MathType) -> DType {
    match math {
        MathType::F16 => DType::F16,
        MathType::Bf16 => DType::Bf16,
        MathType::F64 => DType::F64,
        MathType::I32 => DType::I32,
        _ => DType::F32,
    }
}

fn role(graph: &Graph, node: &Node) -> Role {
    match &node.op {
        Op::MatMul | Op::ConvTranspose { .. } => Role::Contraction,
        Op::Conv(attrs) => {
            let per_group = graph[node.inputs[1]].shape.get(1).and_then(|d| d.as_const());
            match per_group {
                Some(c) if attrs.groups > 1 && c < 8 => Role::Window,
                _ => Role::Contraction,
            }
        }
        Op::Attention(_) => Role::Attention,
        Op::Reduce { .. } | Op::ArgReduce { .. } | Op::Softmax { .. } | Op::Normalize { .. } => {
            Role::Reduce
        }
        Op::Scan { .. } => Role::Scan,
        Op::Pool(_) => Role::Window,
        Op::ScatterElements { .. } | Op::ScatterNd { .. } => Role::Scatter,
        Op::Loop(_) => Role::Loop,
        Op::Host(_) => Role::Host,
        Op::Concat { .. } | Op::Resize(_) => Role::Inline,
        op if op.is_elementwise() => Role::Inline,
        _ => Role::Unsupported,
    }
}

/// Whether an inline operator only moves elements.
pub(super) fn is_movement(op: &Op) -> bool {
    matches!(op, Op::Reshape { .. } | Op::Transpose { .. } | Op::Slice { .. } | Op::Expand { .. })
}
