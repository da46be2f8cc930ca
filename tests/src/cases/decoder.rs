//! Decoders whose keys and values are kept from run to run.

use super::Cases;
use crate::net::Net;
use aot_ir::op::AttentionAttrs;
use aot_ir::{DType, Dim, Op, Scalar, State, ValueId};

const WIDTH: i64 = 16;
const HEADS: i64 = 2;
const HEAD: i64 = 8;
const TOKENS: i64 = 12;
/// Most tokens of the past, and of a run.
const PAST: i64 = 24;
const NEW: i64 = 8;

/// How keys and values are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
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

struct Decoder {
    net: Net,
    batch: Dim,
    past: Dim,
    new: Dim,
    kept: Kept,
    outputs: Vec<(u32, ValueId)>,
}

impl Decoder {
    fn linear(&mut self, x: ValueId, from: i64, to: i64) -> ValueId {
        let w = self.net.weight(&[from as usize, to as usize]);
        self.net.op(Op::MatMul, &[x, w])
    }

    fn norm(&mut self, x: ValueId) -> ValueId {
        let op = Op::Normalize { axes: vec![2], epsilon: Scalar::Float(1e-5), centered: false };
        let y = self.net.op(op, &[x]);
        let g = self.net.weight(&[WIDTH as usize]);
        self.net.mul(y, g)
    }

    fn transposed(&mut self, x: ValueId) -> ValueId {
        self.net.op(Op::Transpose { perm: vec![0, 2, 1, 3] }, &[x])
    }

    /// `[batch, new, heads, head]`.
    fn split(&mut self, x: ValueId, heads: i64) -> ValueId {
        let shape = vec![self.batch.clone(), self.new.clone(), heads.into(), HEAD.into()];
        self.net.op(Op::Reshape { shape }, &[x])
    }

    /// Keys or values of all tokens, `[batch, heads, tokens, head]`, of those of the new ones.
    fn with_past(&mut self, x: ValueId) -> ValueId {
        let heads = if matches!(self.kept, Kept::Shared | Kept::Halves) { 1 } else { HEADS };
        let new = self.linear(x, WIDTH, heads * HEAD);
        let new = self.split(new, heads);
        let (b, p) = (self.batch.clone(), self.past.clone());
        let by_token = self.kept == Kept::ByToken;
        let (new, shape, axis) = match by_token {
            true => (new, [b, p, heads.into(), HEAD.into()], 1),
            false => (self.transposed(new), [b, heads.into(), p, HEAD.into()], 2),
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
                let tokens = &self.past + &self.new;
                let shape = vec![self.batch.clone(), HEADS.into(), tokens, HEAD.into()];
                self.net.op(Op::Expand { shape }, &[all])
            }
            Kept::ByHead | Kept::Backward => all,
        }
    }

    fn layer(&mut self, x: ValueId) -> ValueId {
        let h = self.norm(x);
        let q = self.linear(h, WIDTH, HEADS * HEAD);
        let q = self.split(q, HEADS);
        let q = self.transposed(q);
        let (k, v) = (self.with_past(h), self.with_past(h));
        let attrs = AttentionAttrs {
            scale: Scalar::Float((HEAD as f64).sqrt().recip()),
            causal: self.kept != Kept::Backward,
            masked_row_is_zero: false,
            has_mask: false,
        };
        let a = self.net.op(Op::Attention(attrs), &[q, k, v]);
        let a = self.transposed(a);
        let shape = vec![self.batch.clone(), self.new.clone(), WIDTH.into()];
        let a = self.net.op(Op::Reshape { shape }, &[a]);
        let a = self.linear(a, WIDTH, WIDTH);
        let x = self.net.add(x, a);
        let h = self.norm(x);
        let h = self.linear(h, WIDTH, 3 * WIDTH);
        let h = self.net.unary(aot_ir::op::UnaryOp::Tanh, h);
        let h = self.linear(h, 3 * WIDTH, WIDTH);
        self.net.add(x, h)
    }
}

/// Two layers. Beside keys and values the sum of all embeddings is kept, which does not grow.
fn decoder(kept: Kept) -> Net {
    let mut net = Net::new();
    let batch = net.symbol("batch", 1, 2, 1);
    let past = net.symbol("past", 0, PAST, 1);
    let new = net.symbol("new", 1, NEW, 1);
    let ids = net.input(DType::I64, &[batch.clone(), new.clone()]);
    let table = net.weight(&[TOKENS as usize, WIDTH as usize]);
    let x = net.op(Op::Gather { axis: 0 }, &[table, ids]);
    let places = net.weight(&[(PAST + NEW) as usize, WIDTH as usize]);
    let at = net.op(Op::Iota { shape: vec![new.clone()], axis: 0, dtype: DType::I64 }, &[]);
    let first = net.op(Op::Dims { dims: vec![past.clone()], scalar: true }, &[]);
    let at = net.add(at, first);
    let at = net.op(Op::Gather { axis: 0 }, &[places, at]);
    let x = net.add(x, at);
    let sum = net.input(DType::F32, &[batch.clone(), Dim::ONE, WIDTH.into()]);
    let own = Op::Reduce { op: aot_ir::op::ReduceOp::Sum, axes: vec![1], keep_dims: true };
    let own = net.op(own, &[x]);
    let next = net.add(sum, own);
    let mut d = Decoder { net, batch, past, new, kept, outputs: vec![(1, next)] };
    let x = d.layer(x);
    let x = d.layer(x);
    let scaled = d.net.floats(&[], &[0.1]);
    let scaled = d.net.mul(next, scaled);
    let x = d.net.add(x, scaled);
    let x = d.norm(x);
    let logits = d.linear(x, WIDTH, TOKENS);
    let Decoder { mut net, outputs, .. } = d;
    net.output(logits);
    for (input, value) in outputs {
        let output = net.graph.outputs.len() as u32;
        net.output(value);
        net.graph.state.push(State { input, output });
    }
    net.loosen(4.0);
    net
}

pub(super) fn all(cases: &mut Cases) {
    cases.family("decoder", |cases| {
        let all = [Kept::ByHead, Kept::ByToken, Kept::Shared, Kept::Halves, Kept::Backward];
        for kept in all {
            let sizes = [
                vec![("batch", 2), ("past", 3), ("new", 2)],
                vec![("batch", 1), ("past", 0), ("new", 8)],
                vec![("batch", 2), ("past", 24), ("new", 1)],
                vec![("batch", 1), ("past", 17), ("new", 5)],
            ];
            cases.at(decoder(kept), &sizes);
        }
    });
}
