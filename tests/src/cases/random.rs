//! Networks drawn at random from the operators: the same ones on every machine.
//!
//! Whatever is drawn is continuous and keeps numbers near 1, so that rounding stays rounding.

use super::Cases;
use crate::net::{Net, Random, dims};
use aot_ir::op::{
    BinaryOp, ConvAttrs, CoordinateMap, NearestRounding, PadMode, PoolAttrs, PoolKind, ReduceOp,
    ResizeAttrs, ResizeMode, ScanOp, UnaryOp,
};
use aot_ir::{DType, Dim, Op, Scalar, Scope, ValueId};

/// How many networks there are; every other one is for GPUs, too.
const NETWORKS: u64 = 60;
/// Most elements that a value may have.
const MOST: i64 = 20_000;
/// Tanh and the like keep what is between -1 and 1 there.
const SMOOTH: [UnaryOp; 8] = [
    UnaryOp::Neg,
    UnaryOp::Abs,
    UnaryOp::Tanh,
    UnaryOp::Sigmoid,
    UnaryOp::Relu,
    UnaryOp::Sin,
    UnaryOp::Cos,
    UnaryOp::Erf,
];
const JOINS: [BinaryOp; 5] =
    [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Max, BinaryOp::Min];

struct Draw {
    net: Net,
    random: Random,
    /// Integers in 0..4, one per `n`.
    places: ValueId,
    values: Vec<ValueId>,
}

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.random.below(n as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    fn shape(&self, x: ValueId) -> Vec<Dim> {
        self.net.graph[x].shape.clone()
    }

    fn axis(&mut self, x: ValueId) -> usize {
        let rank = self.shape(x).len();
        self.below(rank)
    }

    fn least(&self, d: &Dim) -> i64 {
        Scope::new(&self.net.graph.symbols).interval(d).lo
    }

    fn scaled(&mut self, x: ValueId, factor: f32) -> ValueId {
        let factor = self.net.floats(&[], &[factor]);
        self.net.mul(x, factor)
    }

    fn reduced(&mut self, x: ValueId) -> ValueId {
        let (axis, op) =
            (self.axis(x), self.one_of(&[ReduceOp::Mean, ReduceOp::Max, ReduceOp::Min]));
        self.net.op(Op::Reduce { op, axes: vec![axis], keep_dims: true }, &[x])
    }

    /// A value drawn before that has the shape of `x`, or one that broadcasts to it.
    fn partner(&mut self, x: ValueId) -> ValueId {
        let shape = self.shape(x);
        let alike = |v: &&ValueId| self.net.graph[**v].shape == shape;
        let alike: Vec<ValueId> = self.values.iter().filter(alike).copied().collect();
        match self.below(2) {
            0 => self.one_of(&alike),
            _ => self.reduced(x),
        }
    }

    /// A new value made of `x`; `None` where what was drawn does not fit.
    fn step(&mut self, x: ValueId) -> Option<ValueId> {
        let (shape, axis) = (self.shape(x), self.axis(x));
        let rank = shape.len();
        let even = |d: &Dim| d.as_const().is_some_and(|d| d % 2 == 0);
        Some(match self.below(20) {
            0 | 1 => {
                let op = self.one_of(&SMOOTH);
                self.net.unary(op, x)
            }
            2 | 3 => {
                let (op, y) = (self.one_of(&JOINS), self.partner(x));
                self.net.op(Op::Binary(op), &[x, y])
            }
            4 => {
                let mut perm: Vec<usize> = (0..rank).collect();
                let other = self.below(rank);
                perm.swap(axis, other);
                self.net.op(Op::Transpose { perm }, &[x])
            }
            5 if rank > 2 && axis + 1 < rank => {
                let mut merged = shape.clone();
                merged[axis] = &shape[axis] * &shape[axis + 1];
                merged.remove(axis + 1);
                self.net.op(Op::Reshape { shape: merged }, &[x])
            }
            5 if rank < 4 && even(&shape[axis]) => {
                let mut split = shape.clone();
                split[axis] = Dim::from(shape[axis].as_const()? / 2);
                split.insert(axis, 2.into());
                self.net.op(Op::Reshape { shape: split }, &[x])
            }
            6 if self.least(&shape[axis]) > 2 => {
                let (mut starts, mut sizes, mut steps) =
                    (vec![Dim::ZERO; rank], shape, vec![1; rank]);
                let start = self.below(2) as i64;
                starts[axis] = start.into();
                sizes[axis] = &sizes[axis] - start - 1;
                if self.below(2) == 0 {
                    steps[axis] = -1;
                    starts[axis] = &sizes[axis] - 1 + start;
                }
                self.net.op(Op::Slice { starts, sizes, steps }, &[x])
            }
            7 if self.least(&shape[axis]) > 2 => {
                let (mut low, mut high) = (vec![Dim::ZERO; rank], vec![Dim::ZERO; rank]);
                (low[axis], high[axis]) = (1.into(), 2.into());
                let modes =
                    [PadMode::Edge, PadMode::Reflect, PadMode::Constant(Scalar::Float(0.5))];
                let mode = self.one_of(&modes);
                self.net.op(Op::Pad { low, high, mode }, &[x])
            }
            8 => self.net.op(Op::Softmax { axis, log: false }, &[x]),
            9 => {
                let centered = self.below(2) == 0;
                let epsilon = Scalar::Float(0.5);
                self.net.op(Op::Normalize { axes: vec![axis], epsilon, centered }, &[x])
            }
            10 | 11 => match shape[rank - 1].as_const() {
                Some(k) if self.below(2) == 0 => {
                    let n = 3 + 5 * self.below(2);
                    let w = self.net.weight(&[k as usize, n]);
                    let y = self.net.op(Op::MatMul, &[x, w]);
                    self.net.unary(UnaryOp::Tanh, y)
                }
                _ => {
                    let mut perm: Vec<usize> = (0..rank).collect();
                    perm.swap(rank - 2, rank - 1);
                    let t = self.net.op(Op::Transpose { perm }, &[x]);
                    let y = self.net.op(Op::MatMul, &[x, t]);
                    let y = self.scaled(y, 0.05);
                    self.net.unary(UnaryOp::Tanh, y)
                }
            },
            12 => {
                let y = self.net.unary(UnaryOp::Neg, x);
                self.net.op(Op::Concat { axis }, &[x, y])
            }
            13 => {
                let (reverse, exclusive) = (self.below(2) == 0, self.below(2) == 0);
                let y = self.net.op(Op::Scan { op: ScanOp::Sum, axis, exclusive, reverse }, &[x]);
                let y = self.scaled(y, 0.1);
                self.net.unary(UnaryOp::Tanh, y)
            }
            14 if self.least(&shape[axis]) > 2 => {
                let indices = match self.below(2) {
                    0 => self.net.ints(&[5], &[2, 0, -1, 1, -3]),
                    _ => self.net.ints(&[2, 2], &[1, -2, 0, 2]),
                };
                if self.net.graph[indices].shape.len() + rank > 5 {
                    return None;
                }
                self.net.op(Op::Gather { axis }, &[x, indices])
            }
            15 if self.least(&shape[axis]) > 3 => {
                self.net.op(Op::Gather { axis }, &[x, self.places])
            }
            16 => {
                let zero = self.net.floats(&[], &[0.0]);
                let above = self.net.op(Op::Binary(BinaryOp::Gt), &[x, zero]);
                let small = self.scaled(x, 0.1);
                self.net.op(Op::Select, &[above, x, small])
            }
            17 => {
                let y = self.reduced(x);
                self.net.op(Op::Expand { shape }, &[y])
            }
            18 => {
                let at = self.net.op(Op::Iota { shape, axis, dtype: DType::F32 }, &[]);
                let at = self.scaled(at, 0.05);
                self.net.add(x, at)
            }
            _ if rank == 4 => self.windowed(x, &shape)?,
            _ => return None,
        })
    }

    /// A convolution, a pool or a resize of `[n, c, h, w]`.
    fn windowed(&mut self, x: ValueId, shape: &[Dim]) -> Option<ValueId> {
        let (one, two) = (vec![1, 1], vec![2, 1]);
        let pads = vec![(Dim::ONE, Dim::ONE); 2];
        Some(match self.below(3) {
            0 => {
                let w = self.net.weight(&[4, shape[1].as_const()? as usize, 3, 3]);
                let strides = if self.below(2) == 0 { one.clone() } else { two };
                let conv = ConvAttrs { strides, pads, dilations: one, groups: 1 };
                let y = self.net.op(Op::Conv(conv), &[x, w]);
                self.net.unary(UnaryOp::Tanh, y)
            }
            1 => {
                let kind = match self.below(2) {
                    0 => PoolKind::Max,
                    _ => PoolKind::Average { count_include_pad: false },
                };
                let kernel = vec![3.into(), 3.into()];
                let (strides, dilations, ceil_mode) = (two, one, self.below(2) == 0);
                let pool = PoolAttrs { kind, kernel, strides, pads, dilations, ceil_mode };
                self.net.op(Op::Pool(pool), &[x])
            }
            _ => {
                let mode = match self.below(2) {
                    0 => ResizeMode::Nearest(NearestRounding::Floor),
                    _ => ResizeMode::Linear,
                };
                let sizes = vec![
                    shape[0].clone(),
                    shape[1].clone(),
                    shape[2].scaled(2),
                    shape[3].scaled(2),
                ];
                self.net.op(
                    Op::Resize(ResizeAttrs {
                        mode,
                        coordinates: CoordinateMap::Asymmetric,
                        sizes,
                        scales: vec![None; 4],
                        exclude_outside: false,
                    }),
                    &[x],
                )
            }
        })
    }

    /// Whether the value is small at all sizes.
    fn fits(&self, x: ValueId) -> bool {
        let size: Dim = self.net.graph[x].shape.iter().product();
        let size = Scope::new(&self.net.graph.symbols).interval(&size);
        size.lo > 0 && size.hi <= MOST
    }
}

fn network(seed: u64) -> Net {
    let mut net = Net::new();
    let (n, w) = (net.symbol("n", 1, 5, 1), net.symbol("w", 4, 20, 4));
    let x = net.input(DType::F32, &[n.clone(), 4.into(), w.clone()]);
    let y = net.input(DType::F32, &[n.clone(), 4.into(), 6.into(), 6.into()]);
    let places = net.input(DType::I64, &dims(&[3]));
    let values = vec![x, y];
    let mut draw = Draw { net, random: Random::new(1000 + seed), places, values };
    let steps = 4 + draw.below(6);
    let mut made = 0;
    while made < steps {
        // The latest one, mostly.
        let back = draw.below(2) * draw.below(draw.values.len());
        let from = draw.values[draw.values.len() - 1 - back];
        if let Some(next) = draw.step(from)
            && draw.fits(next)
        {
            draw.values.push(next);
            made += 1;
        }
    }
    let last: Vec<ValueId> = draw.values.iter().rev().take(2).copied().collect();
    last.into_iter().for_each(|v| draw.net.output(v));
    // Products of products of rounded numbers.
    draw.net.loosen(20.0);
    draw.net.on_gpus(seed.is_multiple_of(2));
    draw.net
}

pub(super) fn all(cases: &mut Cases) {
    cases.family("random", |cases| {
        for seed in 0..NETWORKS {
            let sizes = [[("n", 1), ("w", 4)], [("n", 5), ("w", 20)], [("n", 3), ("w", 12)]];
            cases.at(network(seed), &sizes.map(|s| s.to_vec()));
        }
    });
}
