//! What lowering makes: buffers, where values live, and groups in order.

use aot_ir::{DType, Dim, Graph, Guard, NodeId, Scope, State, SymId, Symbols, ValueId};
use aot_kernels::group::{Group, Operand};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Memory that groups read and write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanBuffer {
    /// For people: the value that it was made for.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// How many elements it holds.
    pub elements: Dim,
    /// What it is for.
    pub kind: BufferKind,
}

impl PlanBuffer {
    /// The buffer of this number as an operand of a group.
    pub fn operand(&self, buffer: u32) -> Operand {
        let constant = matches!(self.kind, BufferKind::Constant(_) | BufferKind::Prepared);
        Operand { buffer, dtype: self.dtype, elements: self.elements.clone(), constant }
    }
}

/// What a buffer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferKind {
    /// The graph's n-th input, row-major.
    Input(u32),
    /// The graph's n-th output, row-major.
    Output(u32),
    /// The n-th state that runs append to; see [`Appended`].
    State(u32),
    /// The graph's n-th constant as in the model file, row-major.
    Constant(u32),
    /// Computed from constants when the model is loaded.
    Prepared,
    /// Lives during a run.
    Arena,
}

/// State that runs append to: input and output lie in one buffer, row-major, with an extent of `capacity` along `axis`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The input and the output.
    pub state: State,
    /// The axis.
    pub axis: usize,
    /// The greatest extent of the output there.
    pub capacity: i64,
}

/// A size that the run computes: it is read back to bind a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The group of the run before which it is read.
    pub before: usize,
    /// The symbol.
    pub symbol: SymId,
    /// A buffer of one `I64`.
    pub buffer: u32,
    /// Whether every value that the buffer may get is in the symbol's range.
    pub sure: bool,
}

/// Elements of a home past an axis' extent. They are there; groups that write the value write zeros to
/// them, and no value has its elements there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Padding {
    /// The axis.
    pub axis: usize,
    /// Its extent.
    pub from: i64,
    /// The extent that it has in memory.
    pub to: i64,
}

/// Groups of a run that are done again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repetition {
    /// Their places in [`Plan::steps`].
    pub steps: Range<usize>,
    /// Counts iterations from 0.
    pub iteration: SymId,
    /// The number of iterations; with a condition, the greatest.
    pub count: Dim,
    /// Gets the number of iterations that were made.
    pub turns: Option<SymId>,
    /// A buffer of one `Bool`, read before every iteration: whether there is another one.
    pub condition: Option<u32>,
    /// Equalities that are checked before every iteration.
    pub guards: Vec<Guard>,
}

/// Where a value's elements are: an affine map from coordinates to elements of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// Index of the buffer.
    pub buffer: u32,
    /// Of the element at coordinate zero.
    pub offset: Dim,
    /// Elements between neighbours along each axis.
    pub strides: Vec<Dim>,
    /// Zeros that follow the elements along one axis.
    pub padding: Option<Padding>,
}

impl Home {
    /// Offset of the element at these coordinates.
    pub fn offset_of(&self, coords: &[Dim]) -> Dim {
        coords
            .iter()
            .zip(&self.strides)
            .filter(|(c, _)| !c.is(0))
            .fold(self.offset.clone(), |sum, (c, s)| sum + c * s)
    }

    /// The part of this home that begins at `start` along `axis` and has `extent` there. The last part has
    /// the padding.
    pub fn part(&self, axis: usize, start: &Dim, extent: &Dim) -> Self {
        let padding = self.padding.and_then(|p| {
            if p.axis != axis {
                return Some(p);
            }
            let (start, extent) = (start.as_const()?, extent.as_const()?);
            (start + extent == p.from).then_some(Padding { axis, from: extent, to: p.to - start })
        });
        let offset = &self.offset + &(start * &self.strides[axis]);
        Self { offset, padding, ..self.clone() }
    }
}

/// Strides of a shape whose axes lie in `order`, outermost first.
pub fn strides(shape: &[Dim], order: &[usize]) -> Vec<Dim> {
    let mut strides = vec![Dim::ONE; shape.len()];
    let mut next = Dim::ONE;
    for &axis in order.iter().rev() {
        strides[axis] = next.clone();
        next = next * &shape[axis];
    }
    strides
}

/// How many elements a shape has: where a guard says that they are as many as something else, what is less at most.
/// Extents that data gives are bounded each by itself.
fn elements(graph: &Graph, shape: &[Dim]) -> Dim {
    let product: Dim = shape.iter().product();
    if !graph.symbols.mentions_run(&product) {
        return product;
    }
    let scope = Scope::new(&graph.symbols);
    let equal = graph.guards.iter().filter_map(|guard| match () {
        () if guard.lhs == product => Some(&guard.rhs),
        () if guard.rhs == product => Some(&guard.lhs),
        () => None,
    });
    let equal = equal.filter(|dim| !graph.symbols.mentions_run(dim));
    match equal.min_by_key(|dim| scope.interval(dim).hi) {
        Some(dim) if scope.interval(dim).hi < scope.interval(&product).hi => dim.clone(),
        _ => product,
    }
}

/// The state of lowering, and in the end its result.
#[derive(Debug)]
pub struct Plan<'g> {
    /// The graph that is lowered.
    pub graph: &'g Graph,
    /// Buffers.
    pub buffers: Vec<PlanBuffer>,
    /// Where values live that are in memory.
    pub homes: HashMap<ValueId, Home>,
    /// Copies of values in another storage type.
    pub converted: HashMap<(ValueId, DType), Home>,
    /// Groups that run once, in order.
    pub prepare: Vec<Group>,
    /// Groups of a run, in order.
    pub steps: Vec<Group>,
    /// Sizes that are read during a run, in order.
    pub readings: Vec<Reading>,
    /// What of the run is repeated, in order; those within others after them.
    pub loops: Vec<Repetition>,
    /// State that runs append to.
    pub appended: Vec<Appended>,
    /// Arena buffers that may take the memory of another one, which the group that makes them is the last to need.
    pub in_place: BTreeMap<u32, u32>,
    /// Whether this is the body of a loop.
    pub(super) nested: bool,
    /// Further places that values are written to when they are made.
    pub(super) also: HashMap<ValueId, Vec<Home>>,
    /// Memory of the graph's loops.
    pub(super) states: HashMap<NodeId, LoopMemory>,
}

/// What a loop keeps from one iteration to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct LoopMemory {
    /// By carried value: the first half of its buffer. Iterations of even numbers read the first half and write the
    /// second one.
    pub(super) carried: Vec<Home>,
    /// Whether there is another iteration.
    pub(super) condition: Option<Home>,
}

impl<'g> Plan<'g> {
    /// A plan in which nothing is decided yet.
    pub(super) fn new(graph: &'g Graph) -> Self {
        Self {
            graph,
            buffers: Vec::new(),
            homes: HashMap::new(),
            converted: HashMap::new(),
            prepare: Vec::new(),
            steps: Vec::new(),
            readings: Vec::new(),
            loops: Vec::new(),
            appended: Vec::new(),
            in_place: BTreeMap::new(),
            nested: false,
            also: HashMap::new(),
            states: HashMap::new(),
        }
    }

    /// How often a group of the run is done at these sizes (atoms by symbol).
    pub fn times(&self, step: usize, atoms: &[i64]) -> f64 {
        let around = self.loops.iter().filter(|repetition| repetition.steps.contains(&step));
        around.map(|r| r.count.eval(atoms).unwrap_or(0).max(0) as f64).product()
    }

    /// Where a value is read from that is wanted in a type: its copy in that type, if there is one.
    pub fn stored(&self, value: ValueId, wanted: DType) -> Option<&Home> {
        self.converted.get(&(value, wanted)).or_else(|| self.homes.get(&value))
    }

    /// The extent that an axis has in memory where it is padded there, if nothing but movement lies between.
    pub(super) fn padding_of(&self, value: ValueId, axis: usize, wanted: DType) -> Option<i64> {
        let is_stored = |v| self.homes.contains_key(&v);
        let (value, axis) = super::padding::source(self.graph, value, axis, &is_stored)?;
        let padding = self.stored(value, wanted)?.padding?;
        (padding.axis == axis).then_some(padding.to)
    }

    /// Adds a buffer.
    pub fn add_buffer(&mut self, buffer: PlanBuffer) -> u32 {
        self.buffers.push(buffer);
        self.buffers.len() as u32 - 1
    }

    /// Adds a buffer for a value, whose axes lie in `order`, outermost first.
    pub fn add_home(
        &mut self,
        (name, dtype, kind): (&str, DType, BufferKind),
        shape: &[Dim],
        order: &[usize],
        padding: Option<Padding>,
    ) -> Home {
        let mut extents = shape.to_vec();
        if let Some(padding) = padding {
            extents[padding.axis] = padding.to.into();
        }
        let elements = elements(self.graph, &extents);
        let buffer = self.add_buffer(PlanBuffer { name: name.to_owned(), dtype, elements, kind });
        Home { buffer, offset: Dim::ZERO, strides: strides(&extents, order), padding }
    }

    /// Bytes of a buffer at the greatest sizes that `symbols` allow; saturates.
    pub fn max_bytes(&self, buffer: u32, symbols: &Symbols) -> u64 {
        let b = &self.buffers[buffer as usize];
        let elements = Scope::new(symbols).interval(&b.elements).hi.max(0) as u64;
        b.dtype.bytes_for(elements).unwrap_or(u64::MAX)
    }
}
