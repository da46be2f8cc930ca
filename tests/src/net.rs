//! Graphs for tests, and random inputs for them.

use aot_ir::dim::Symbol;
use aot_ir::exec::Tensor;
use aot_ir::op::{BinaryOp, LoopAttrs, UnaryOp};
use aot_ir::{Binding, BoundBy, Constant, DType, Dim, Graph, Op, Scope, ValueId};

/// A small deterministic generator (xorshift64*).
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn word(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// In -1..1.
    pub fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    /// In 0..n.
    pub fn below(&mut self, n: u64) -> u64 {
        self.word() % n.max(1)
    }
}

/// A graph in the making.
#[derive(Debug)]
pub struct Net {
    pub graph: Graph,
    random: Random,
    nodes: usize,
    pub(crate) groups: Option<usize>,
    pub(crate) slack: f64,
    pub(crate) written_out: bool,
    pub(crate) on_gpus: bool,
}

impl Default for Net {
    fn default() -> Self {
        Self::new()
    }
}

impl Net {
    /// An empty one.
    pub fn new() -> Self {
        Self {
            graph: Graph::new("net"),
            random: Random::new(7),
            nodes: 0,
            groups: None,
            slack: 1.0,
            written_out: false,
            on_gpus: true,
        }
    }

    /// An empty one for what passes are to recognise.
    pub fn written_out() -> Self {
        Self { written_out: true, ..Self::new() }
    }

    /// A run of it must be this many groups.
    pub fn groups(&mut self, groups: usize) {
        self.groups = Some(groups);
    }

    /// Whether its kernels are worth compiling; by default they are.
    pub fn on_gpus(&mut self, on_gpus: bool) {
        self.on_gpus = on_gpus;
    }

    /// Its arithmetic loses this many times more than the tolerance of its precision allows.
    pub fn loosen(&mut self, slack: f64) {
        self.slack = slack;
    }

    pub fn symbol(&mut self, name: &str, lo: i64, hi: i64, step: i64) -> Dim {
        let id = self.graph.symbols.add(Symbol::new(name, lo, hi, step));
        self.graph.symbols.dim(id)
    }

    /// A size in `0..=most` that a run computes: the value of an `I64` of rank 0.
    pub fn size(&mut self, name: &str, most: i64, size: ValueId) -> Dim {
        let symbol = self.graph.symbols.add(Symbol::in_run(name, 0, most));
        self.graph.bindings.push(Binding { symbol, size });
        self.graph.symbols.dim(symbol)
    }

    pub fn input(&mut self, dtype: DType, shape: &[Dim]) -> ValueId {
        let name = format!("x{}", self.graph.inputs.len());
        self.graph.add_input(name, dtype, shape.to_vec())
    }

    /// A constant of random floats.
    pub fn weight(&mut self, shape: &[usize]) -> ValueId {
        let n: usize = shape.iter().product();
        let scale = (shape.iter().skip(1).product::<usize>().max(1) as f64).sqrt().recip();
        let values: Vec<f32> = (0..n).map(|_| (self.random.unit() * scale) as f32).collect();
        self.floats(shape, &values)
    }

    pub fn floats(&mut self, shape: &[usize], values: &[f32]) -> ValueId {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let constant = Constant {
            name: "w".into(),
            dtype: DType::F32,
            shape: shape.to_vec(),
            bytes: bytes.into(),
        };
        self.graph.add_constant(constant).expect("a valid network")
    }

    /// A constant of f16 elements.
    pub fn halfs(&mut self, shape: &[usize], values: &[f32]) -> ValueId {
        let bytes: Vec<u8> =
            values.iter().flat_map(|v| half::f16::from_f32(*v).to_le_bytes()).collect();
        let constant = Constant {
            name: "h".into(),
            dtype: DType::F16,
            shape: shape.to_vec(),
            bytes: bytes.into(),
        };
        self.graph.add_constant(constant).expect("a valid network")
    }

    pub fn ints(&mut self, shape: &[usize], values: &[i64]) -> ValueId {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let constant = Constant {
            name: "i".into(),
            dtype: DType::I64,
            shape: shape.to_vec(),
            bytes: bytes.into(),
        };
        self.graph.add_constant(constant).expect("a valid network")
    }

    pub fn op(&mut self, op: Op, inputs: &[ValueId]) -> ValueId {
        self.nodes += 1;
        let name = format!("{}_{}", op.name(), self.nodes);
        self.graph.add1(op, inputs, name).expect("a valid network")
    }

    pub fn add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.op(Op::Binary(BinaryOp::Add), &[a, b])
    }

    pub fn mul(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.op(Op::Binary(BinaryOp::Mul), &[a, b])
    }

    pub fn unary(&mut self, op: UnaryOp, x: ValueId) -> ValueId {
        self.op(Op::Unary(op), &[x])
    }

    pub fn output(&mut self, value: ValueId) {
        let name = format!("y{}", self.graph.outputs.len());
        self.graph.outputs.push((name, value));
    }
}

/// How a loop is repeated.
#[derive(Clone, Copy, Debug)]
pub struct Repeat<'a> {
    /// Iterations; with a condition, the greatest number.
    pub count: &'a Dim,
    /// Of every collected result, whether the last iteration's comes first.
    pub backward: &'a [bool],
    /// With a condition: whether there is a first iteration.
    pub first: Option<ValueId>,
}

impl Net {
    /// A loop. The body gets the number of the iteration, the carried and the captured values, and gives, after the
    /// condition if there is one, the carried values for the next iteration and what is collected.
    pub fn repeat(
        &mut self,
        repeat: Repeat<'_>,
        start: &[ValueId],
        captured: &[ValueId],
        body: impl FnOnce(&mut Net, &Dim, &[ValueId], &[ValueId]) -> Vec<ValueId>,
    ) -> Vec<ValueId> {
        let Repeat { count, backward, first } = repeat;
        let symbols = &mut self.graph.symbols;
        let most = Scope::new(symbols).interval(count).hi;
        let n = symbols.len();
        let iteration = symbols.add(Symbol::counter(format!("i{n}"), count.clone(), most));
        let turns = first.map(|_| symbols.add(Symbol::in_run(format!("turns{n}"), 0, most)));
        let at = symbols.dim(iteration);
        let mut inner = Net { random: Random(self.random.word() | 1), ..Net::new() };
        inner.graph.symbols = self.graph.symbols.clone();
        let input = |v: &ValueId| {
            let value = &self.graph[*v];
            inner.graph.add_input(value.name.clone(), value.dtype, value.shape.clone())
        };
        let inputs: Vec<ValueId> = start.iter().chain(captured).map(input).collect();
        let (state, rest) = inputs.split_at(start.len());
        let outputs = body(&mut inner, &at, state, rest);
        outputs.into_iter().for_each(|value| inner.output(value));
        let mut graph = inner.graph;
        self.graph.symbols = graph.symbols.clone();
        let mut operands: Vec<ValueId> = first.into_iter().collect();
        operands.extend_from_slice(start);
        operands.extend_from_slice(captured);
        for constant in graph.lift_constants() {
            operands.push(self.graph.add_constant(constant).expect("a valid network"));
        }
        let attrs = LoopAttrs {
            body: graph,
            iteration,
            count: count.clone(),
            carried: start.len(),
            turns,
            backward: backward.to_vec(),
        };
        self.nodes += 1;
        let name = format!("loop_{}", self.nodes);
        let results = self.graph.add(Op::Loop(Box::new(attrs)), &operands, name);
        let results = results.expect("a valid network");
        if let Some(symbol) = turns {
            self.graph.bindings.push(Binding { symbol, size: results[0] });
        }
        results
    }
}

/// Constant extents.
pub fn dims(shape: &[i64]) -> Vec<Dim> {
    shape.iter().map(|d| Dim::from(*d)).collect()
}

/// Random inputs for sizes given by name, and the atoms of symbols by id, the greatest of those that the run binds;
/// integers are in `0..4`, but an input of rank 0 that has a size's name is that size.
pub fn inputs(graph: &Graph, sizes: &[(String, i64)], seed: u64) -> (Vec<i64>, Vec<Tensor>) {
    let atoms: Vec<i64> = graph
        .symbols
        .iter()
        .map(|(_, s)| {
            if s.bound_by == BoundBy::Run {
                return s.hi;
            }
            let size =
                sizes.iter().find(|(name, _)| *name == s.name).expect("a size for every symbol").1;
            s.atom_of(size).expect("a size in range")
        })
        .collect();
    let mut random = Random::new(seed + 11);
    let tensors = graph.inputs.iter().map(|v| {
        let value = &graph[*v];
        let shape: Vec<usize> = value
            .shape
            .iter()
            .map(|d| d.eval(&atoms[..]).expect("a valid network") as usize)
            .collect();
        let n: usize = shape.iter().product();
        let given = sizes.iter().find(|(name, _)| shape.is_empty() && *name == value.name);
        let values: Vec<f64> = (0..n)
            .map(|_| match value.dtype {
                t if t.is_int() && given.is_some() => given.map_or(0, |(_, size)| *size) as f64,
                DType::Bool => random.below(2) as f64,
                t if t.is_int() => random.below(4) as f64,
                _ => random.unit() * 2.0,
            })
            .collect();
        Tensor::from_f64(value.dtype, shape, &values).expect("a valid network")
    });
    (atoms.clone(), tensors.collect())
}

/// As [`inputs`], with integers of named inputs in `0..bound` and floats that the precision's type holds.
pub fn bounded_inputs(
    graph: &Graph,
    sizes: &[(String, i64)],
    seed: u64,
    bounds: &[(String, i64)],
    precision: &str,
) -> Vec<Tensor> {
    let mut random = Random::new(seed + 101);
    let (_, tensors) = inputs(graph, sizes, seed);
    let named = graph.inputs.iter().map(|v| graph[*v].name.as_str());
    tensors
        .into_iter()
        .zip(named)
        .map(|(tensor, name)| {
            let (dtype, shape) = (tensor.dtype(), tensor.shape().to_vec());
            let bound = bounds.iter().find(|(n, _)| n == name).map(|(_, b)| *b);
            let values: Vec<f64> = match bound {
                Some(bound) => {
                    (0..tensor.len()).map(|_| random.below(bound as u64) as f64).collect()
                }
                None => {
                    tensor.to_f64().into_iter().map(|x| round_to(x, dtype, precision)).collect()
                }
            };
            Tensor::from_f64(dtype, shape, &values).expect("a valid network")
        })
        .collect()
}

/// What an operand of a precision holds of a number.
pub fn round_to(x: f64, dtype: DType, precision: &str) -> f64 {
    match precision {
        _ if !dtype.is_float() => x,
        "f16" => half::f16::from_f64(x).to_f64(),
        "bf16" => half::bf16::from_f64(x).to_f64(),
        "tf32" => {
            let bits = (x as f32).to_bits();
            f32::from_bits(bits.wrapping_add(0x1000) & !0x1fff).into()
        }
        _ => x,
    }
}
