//! Decoders whose keys and values are kept from run to run.

use crate::net::Net;
use aot_ir::op::{AttentionAttrs, ReduceOp, UnaryOp};
use aot_ir::{DType, Dim, Op, Scalar, State, ValueId};

/// How keys and values are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// `[batch, heads, tokens, head]`.
    ByHead,
    /// `[batch, tokens, heads, head]`.
    ByToken,
    /// As `ByHead`, one head for all heads of queries.
    Shared,
    /// As `Shared`, in binary16.
    Halves,
    /// As `ByHead`, what is new first.
    Backward,
}

/// How large a decoder is.
#[derive(Clone, Copy, Debug)]
pub struct Extents {
    /// Layers.
    pub layers: usize,
    /// Elements of an embedding: a multiple of `heads`.
    pub width: i64,
    /// Heads of queries.
    pub heads: i64,
    /// Elements between the two products that follow attention.
    pub hidden: i64,
    /// Tokens of the vocabulary.
    pub vocabulary: i64,
    /// Sequences at once, at most.
    pub batch: i64,
    /// Tokens of the past, at most.
    pub past: i64,
    /// Tokens of a run, at most.
    pub new: i64,
    /// Whether queries, keys and values are parts of one product.
    pub joined: bool,
    /// Whether the sum of all embeddings is kept, too, which does not grow.
    pub sum: bool,
}

struct Decoder {
    net: Net,
    extents: Extents,
    batch: Dim,
    past: Dim,
    new: Dim,
    kept: Kept,
    outputs: Vec<(u32, ValueId)>,
}

impl Decoder {
    fn head(&self) -> i64 {
        self.extents.width / self.extents.heads
    }

    fn linear(&mut self, x: ValueId, from: i64, to: i64) -> ValueId {
        let w = self.net.weight(&[from as usize, to as usize]);
        self.net.op(Op::MatMul, &[x, w])
    }

    fn norm(&mut self, x: ValueId) -> ValueId {
        let op = Op::Normalize { axes: vec![2], epsilon: Scalar::Float(1e-5), centered: false };
        let y = self.net.op(op, &[x]);
        let g = self.net.weight(&[self.extents.width as usize]);
        self.net.mul(y, g)
    }

    fn transposed(&mut self, x: ValueId) -> ValueId {
        self.net.op(Op::Transpose { perm: vec![0, 2, 1, 3] }, &[x])
    }

    /// `[batch, new, heads, head]`.
    fn split(&mut self, x: ValueId, heads: i64) -> ValueId {
        let shape = vec![self.batch.clone(), self.new.clone(), heads.into(), self.head().into()];
        self.net.op(Op::Reshape { shape }, &[x])
    }

    /// Heads of keys and of values.
    fn kept_heads(&self) -> i64 {
        match self.kept {
            Kept::Shared | Kept::Halves => 1,
            _ => self.extents.heads,
        }
    }

    /// Queries, keys and values of the new tokens, `[batch, new, heads * head]`.
    fn projections(&mut self, x: ValueId) -> [ValueId; 3] {
        let (width, head, kept) = (self.extents.width, self.head(), self.kept_heads());
        let widths = [width, kept * head, kept * head];
        if !self.extents.joined {
            return widths.map(|to| self.linear(x, width, to));
        }
        let all = self.linear(x, width, widths.iter().sum());
        let mut start = 0;
        widths.map(|size| {
            let starts = vec![Dim::ZERO, Dim::ZERO, start.into()];
            let sizes = vec![self.batch.clone(), self.new.clone(), size.into()];
            start += size;
            self.net.op(Op::Slice { starts, sizes, steps: vec![1; 3] }, &[all])
        })
    }

    /// Keys or values of all tokens, `[batch, heads, tokens, head]`, of those of the new ones.
    fn with_past(&mut self, new: ValueId) -> ValueId {
        let (heads, head) = (self.kept_heads(), self.head());
        let new = self.split(new, heads);
        let (b, p) = (self.batch.clone(), self.past.clone());
        let by_token = self.kept == Kept::ByToken;
        let (new, shape, axis) = match by_token {
            true => (new, [b, p, heads.into(), head.into()], 1),
            false => (self.transposed(new), [b, heads.into(), p, head.into()], 2),
        };
        let halves = self.kept == Kept::Halves;
        let (dtype, new) = match halves {
            true => (DType::F16, self.net.op(Op::Cast(DType::F16), &[new])),
            false => (DType::F32, new),
        };
        let input = self.net.graph.inputs.len() as u32;
        let past = self.net.input(dtype, &shape);
        let parts = if self.kept == Kept::Backward { [new, past] } else { [past, new] };
        let all = self.net.op(Op::Concat { axis }, &parts);
        self.outputs.push((input, all));
        let all = if halves { self.net.op(Op::Cast(DType::F32), &[all]) } else { all };
        match self.kept {
            Kept::ByToken => self.transposed(all),
            Kept::Shared | Kept::Halves => {
                let (heads, tokens) = (self.extents.heads, &self.past + &self.new);
                let shape = vec![self.batch.clone(), heads.into(), tokens, head.into()];
                self.net.op(Op::Expand { shape }, &[all])
            }
            Kept::ByHead | Kept::Backward => all,
        }
    }

    fn layer(&mut self, x: ValueId) -> ValueId {
        let Extents { width, heads, hidden, .. } = self.extents;
        let h = self.norm(x);
        let [q, k, v] = self.projections(h);
        let q = self.split(q, heads);
        let q = self.transposed(q);
        let (k, v) = (self.with_past(k), self.with_past(v));
        let attrs = AttentionAttrs {
            scale: Scalar::Float((self.head() as f64).sqrt().recip()),
            causal: self.kept != Kept::Backward,
            masked_row_is_zero: false,
            has_mask: false,
        };
        let a = self.net.op(Op::Attention(attrs), &[q, k, v]);
        let a = self.transposed(a);
        let shape = vec![self.batch.clone(), self.new.clone(), width.into()];
        let a = self.net.op(Op::Reshape { shape }, &[a]);
        let a = self.linear(a, width, width);
        let x = self.net.add(x, a);
        let h = self.norm(x);
        let h = self.linear(h, width, hidden);
        let h = self.net.unary(UnaryOp::Tanh, h);
        let h = self.linear(h, hidden, width);
        self.net.add(x, h)
    }
}

/// A decoder of random weights, which depend on its extents alone. Its inputs are tokens, `I64` of `[batch, new]`, and
/// what is kept; its first output is `[batch, new, vocabulary]`. Sizes that can be 1 alone are no symbols.
pub fn decoder(kept: Kept, extents: Extents) -> Net {
    let mut net = Net::new();
    let batch = match extents.batch {
        1 => Dim::ONE,
        most => net.symbol("batch", 1, most, 1),
    };
    let past = net.symbol("past", 0, extents.past, 1);
    let new = net.symbol("new", 1, extents.new, 1);
    let width = extents.width;
    let ids = net.input(DType::I64, &[batch.clone(), new.clone()]);
    let table = net.weight(&[extents.vocabulary as usize, width as usize]);
    let x = net.op(Op::Gather { axis: 0 }, &[table, ids]);
    let places = net.weight(&[(extents.past + extents.new) as usize, width as usize]);
    let at = net.op(Op::Iota { shape: vec![new.clone()], axis: 0, dtype: DType::I64 }, &[]);
    let first = net.op(Op::Dims { dims: vec![past.clone()], scalar: true }, &[]);
    let at = net.add(at, first);
    let at = net.op(Op::Gather { axis: 0 }, &[places, at]);
    let mut x = net.add(x, at);
    let sum = extents.sum.then(|| {
        let sum = net.input(DType::F32, &[batch.clone(), Dim::ONE, width.into()]);
        let own = Op::Reduce { op: ReduceOp::Sum, axes: vec![1], keep_dims: true };
        let own = net.op(own, &[x]);
        net.add(sum, own)
    });
    let outputs = sum.iter().map(|sum| (1, *sum)).collect();
    let mut d = Decoder { net, extents, batch, past, new, kept, outputs };
    for _ in 0..extents.layers {
        x = d.layer(x);
    }
    if let Some(sum) = sum {
        let scaled = d.net.floats(&[], &[0.1]);
        let scaled = d.net.mul(sum, scaled);
        x = d.net.add(x, scaled);
    }
    let x = d.norm(x);
    let logits = d.linear(x, width, extents.vocabulary);
    let Decoder { mut net, outputs, .. } = d;
    net.output(logits);
    for (input, value) in outputs {
        let output = net.graph.outputs.len() as u32;
        net.output(value);
        net.graph.state.push(State { input, output });
    }
    net
}
