//! Attention as ONNX files write it out: products, scale, mask, softmax.
//!
//! A row whose scores are all −∞ has no softmax: as in onnxruntime and PyTorch, its results are NaN. A row
//! that is filled with one finite number has equal weights.

use super::Cases;
use crate::net::{Net, dims};
use aot_ir::op::{BinaryOp, UnaryOp};
use aot_ir::{DType, Dim, Op, ValueId};

/// Heads of queries; keys and values may have fewer, each for a group of them.
const HEADS: i64 = 2;
const LENGTHS: [i64; 6] = [1, 3, 17, 65, 127, 130];

/// What happens to scores `[batch, heads, rows, columns]` before the softmax.
#[derive(Clone, Copy)]
enum Mask {
    None,
    /// An input `[batch, 1, rows, columns]` is added.
    Added,
    /// An input `[batch, 1, rows, columns]` is false where scores become this number.
    Where(f32),
    /// 0 and 1 of tokens `[batch, columns]` become 0 and the least number, which is added.
    Padding,
    /// Later columns become −∞.
    Causal,
    /// Rows 0, 3, 6… become this number, by selection.
    Rows(f32),
    /// As `Rows`, by a sum.
    AddedRows(f32),
    /// `Padding`, then `Rows` with the least number: neither adds up to −∞.
    PaddingAndRows,
}

/// Extents of one attention.
struct Extents {
    batch: Dim,
    rows: Dim,
    columns: Dim,
    head: i64,
}

impl Extents {
    /// Of self-attention: `sequence` is rows and columns.
    fn of_self(net: &mut Net, head: i64) -> Self {
        let batch = net.symbol("batch", 1, 4, 1);
        let rows = net.symbol("sequence", 1, 130, 1);
        Self { batch, columns: rows.clone(), rows, head }
    }
}

/// Heads of a projection of `x: [batch, tokens, width]`, in the order that `perm` gives to
/// `[batch, tokens, heads, head]`.
fn project(net: &mut Net, x: ValueId, e: &Extents, heads: i64, perm: [usize; 4]) -> ValueId {
    let shape = net.graph[x].shape.clone();
    let width = shape[2].as_const().expect("a constant width");
    let w = net.weight(&[(heads * e.head) as usize, width as usize]);
    let w = net.op(Op::Transpose { perm: vec![1, 0] }, &[w]);
    let y = net.op(Op::MatMul, &[x, w]);
    let split = vec![shape[0].clone(), shape[1].clone(), heads.into(), e.head.into()];
    let y = net.op(Op::Reshape { shape: split }, &[y]);
    net.op(Op::Transpose { perm: perm.to_vec() }, &[y])
}

const BY_HEAD: [usize; 4] = [0, 2, 1, 3];
/// Keys, transposed for their product.
const KEYS: [usize; 4] = [0, 2, 3, 1];

/// Whether a row or column of scores may be masked: rows 0, 3, 6….
fn every_third(net: &mut Net, e: &Extents) -> ValueId {
    let shape = vec![Dim::ONE, Dim::ONE, e.rows.clone(), Dim::ONE];
    let row = net.op(Op::Iota { shape, axis: 2, dtype: DType::I64 }, &[]);
    let (three, zero) = (net.ints(&[], &[3]), net.ints(&[], &[0]));
    let row = net.op(Op::Binary(BinaryOp::Mod), &[row, three]);
    net.op(Op::Binary(BinaryOp::Ne), &[row, zero])
}

fn padding(net: &mut Net, e: &Extents) -> ValueId {
    let tokens = net.input(DType::I64, &[e.batch.clone(), e.columns.clone()]);
    let one = net.ints(&[], &[1]);
    let tokens = net.op(Op::Binary(BinaryOp::Min), &[tokens, one]);
    let shape = vec![e.batch.clone(), Dim::ONE, Dim::ONE, e.columns.clone()];
    let tokens = net.op(Op::Reshape { shape }, &[tokens]);
    let kept = net.op(Op::Cast(DType::F32), &[tokens]);
    let (one, least) = (net.floats(&[], &[1.0]), net.floats(&[], &[f32::MIN]));
    let dropped = net.op(Op::Binary(BinaryOp::Sub), &[one, kept]);
    net.mul(dropped, least)
}

fn masked(net: &mut Net, scores: ValueId, mask: Mask, e: &Extents) -> ValueId {
    let select = |net: &mut Net, condition, scores, fill| {
        let fill = net.floats(&[], &[fill]);
        net.op(Op::Select, &[condition, scores, fill])
    };
    match mask {
        Mask::None => scores,
        Mask::Added => {
            let shape = [e.batch.clone(), Dim::ONE, e.rows.clone(), e.columns.clone()];
            let mask = net.input(DType::F32, &shape);
            net.add(scores, mask)
        }
        Mask::Where(fill) => {
            let shape = [e.batch.clone(), Dim::ONE, e.rows.clone(), e.columns.clone()];
            let mask = net.input(DType::Bool, &shape);
            select(net, mask, scores, fill)
        }
        Mask::Padding => {
            let mask = padding(net, e);
            net.add(scores, mask)
        }
        Mask::Causal => {
            let shape = vec![e.rows.clone(), e.columns.clone()];
            let row = Op::Iota { shape: shape.clone(), axis: 0, dtype: DType::I64 };
            let column = Op::Iota { shape, axis: 1, dtype: DType::I64 };
            let (row, column) = (net.op(row, &[]), net.op(column, &[]));
            let seen = net.op(Op::Binary(BinaryOp::Le), &[column, row]);
            select(net, seen, scores, f32::NEG_INFINITY)
        }
        Mask::Rows(fill) => {
            let kept = every_third(net, e);
            select(net, kept, scores, fill)
        }
        Mask::AddedRows(fill) => {
            let kept = every_third(net, e);
            let zero = net.floats(&[], &[0.0]);
            let addend = select(net, kept, zero, fill);
            net.add(scores, addend)
        }
        Mask::PaddingAndRows => {
            let mask = padding(net, e);
            let scores = net.add(scores, mask);
            let kept = every_third(net, e);
            select(net, kept, scores, f32::MIN)
        }
    }
}

/// `softmax(mask(3 q·k / √head)) · v`, heads side by side; scores are large enough for weights to differ.
fn attend(net: &mut Net, [q, kt, v]: [ValueId; 3], mask: Mask, e: &Extents) -> ValueId {
    let scores = net.op(Op::MatMul, &[q, kt]);
    let scale = net.floats(&[], &[(9.0 / e.head as f32).sqrt()]);
    let scores = net.mul(scores, scale);
    let scores = masked(net, scores, mask, e);
    let weights = net.op(Op::Softmax { axis: 3, log: false }, &[scores]);
    let y = net.op(Op::MatMul, &[weights, v]);
    let y = net.op(Op::Transpose { perm: BY_HEAD.to_vec() }, &[y]);
    let shape = vec![e.batch.clone(), e.rows.clone(), (HEADS * e.head).into()];
    net.op(Op::Reshape { shape }, &[y])
}

fn self_attention(mask: Mask, head: i64) -> Net {
    let mut net = Net::written_out();
    let e = Extents::of_self(&mut net, head);
    let x = net.input(DType::F32, &[e.batch.clone(), e.rows.clone(), 16.into()]);
    let heads = [BY_HEAD, KEYS, BY_HEAD].map(|perm| project(&mut net, x, &e, HEADS, perm));
    let y = attend(&mut net, heads, mask, &e);
    net.output(y);
    net
}

/// Sizes by name.
type Sizes = Vec<(&'static str, i64)>;

fn all_lengths() -> Vec<Sizes> {
    let batch = |i: usize| if i.is_multiple_of(2) { 1 } else { 3 };
    let sizes = LENGTHS.iter().enumerate();
    sizes.map(|(i, &n)| vec![("batch", batch(i)), ("sequence", n)]).collect()
}

fn attention_under_every_mask(cases: &mut Cases) {
    let masks = [
        (Mask::None, 8),
        (Mask::Added, 32),
        (Mask::Where(f32::NEG_INFINITY), 40),
        (Mask::Where(f32::MIN), 64),
        (Mask::Padding, 32),
        (Mask::Causal, 80),
        (Mask::Rows(f32::NEG_INFINITY), 32),
        (Mask::Rows(f32::MIN), 8),
        (Mask::AddedRows(f32::NEG_INFINITY), 8),
        (Mask::PaddingAndRows, 16),
        (Mask::None, 128),
        (Mask::None, 256),
    ];
    for (mask, head) in masks {
        let mut net = self_attention(mask, head);
        // The projections are one product.
        net.groups(2);
        cases.at(net, &all_lengths());
    }
}

/// Heads that are wider than what the kernels of attention take.
fn attention_of_heads_too_wide_to_fuse(cases: &mut Cases) {
    let net = self_attention(Mask::Rows(f32::MIN), 264);
    cases.at(net, &[1, 17].map(|n| vec![("batch", 3), ("sequence", n)]));
}

fn attention_to_another_sequence(cases: &mut Cases) {
    for mask in [Mask::None, Mask::Padding] {
        let mut net = Net::written_out();
        let batch = net.symbol("batch", 1, 4, 1);
        let rows = net.symbol("queries", 1, 130, 1);
        let columns = net.symbol("keys", 1, 130, 1);
        let e = Extents { batch, rows, columns, head: 32 };
        let x = net.input(DType::F32, &[e.batch.clone(), e.rows.clone(), 16.into()]);
        let z = net.input(DType::F32, &[e.batch.clone(), e.columns.clone(), 24.into()]);
        let q = project(&mut net, x, &e, HEADS, BY_HEAD);
        let kt = project(&mut net, z, &e, HEADS, KEYS);
        let v = project(&mut net, z, &e, HEADS, BY_HEAD);
        let y = attend(&mut net, [q, kt, v], mask, &e);
        net.output(y);
        net.groups(3);
        let sizes = [(1, 65, 1), (3, 1, 130), (1, 127, 17), (3, 3, 127)];
        cases.at(net, &sizes.map(|(b, s, t)| vec![("batch", b), ("queries", s), ("keys", t)]));
    }
}

/// Both heads of queries share keys and values, which are repeated for them.
fn attention_of_groups_of_heads(cases: &mut Cases) {
    for mask in [Mask::None, Mask::Where(f32::NEG_INFINITY)] {
        let mut net = Net::written_out();
        let e = Extents::of_self(&mut net, 32);
        let x = net.input(DType::F32, &[e.batch.clone(), e.rows.clone(), 16.into()]);
        let q = project(&mut net, x, &e, HEADS, BY_HEAD);
        let [k, v] = [(); 2].map(|()| {
            let y = project(&mut net, x, &e, 1, BY_HEAD);
            let extents = |heads: i64, times: i64| {
                let (b, s) = (e.batch.clone(), e.rows.clone());
                vec![b, heads.into(), times.into(), s, e.head.into()]
            };
            let y = net.op(Op::Reshape { shape: extents(1, 1) }, &[y]);
            let y = net.op(Op::Expand { shape: extents(1, HEADS) }, &[y]);
            let mut shape = extents(1, HEADS);
            shape.remove(1);
            net.op(Op::Reshape { shape }, &[y])
        });
        let kt = net.op(Op::Transpose { perm: vec![0, 1, 3, 2] }, &[k]);
        let y = attend(&mut net, [q, kt, v], mask, &e);
        net.output(y);
        net.groups(2);
        cases.at(net, &all_lengths());
    }
}

/// Rows of NaN become zeros, as PyTorch's exporter writes it.
fn attention_whose_masked_rows_are_zero(cases: &mut Cases) {
    let mut net = Net::written_out();
    let e = Extents::of_self(&mut net, 32);
    let x = net.input(DType::F32, &[e.batch.clone(), e.rows.clone(), 16.into()]);
    let [q, kt, v] = [BY_HEAD, KEYS, BY_HEAD].map(|perm| project(&mut net, x, &e, HEADS, perm));
    let scores = net.op(Op::MatMul, &[q, kt]);
    let scores = masked(&mut net, scores, Mask::Rows(f32::NEG_INFINITY), &e);
    let weights = net.op(Op::Softmax { axis: 3, log: false }, &[scores]);
    let nan = net.unary(UnaryOp::IsNan, weights);
    let zero = net.floats(&[], &[0.0]);
    let weights = net.op(Op::Select, &[nan, zero, weights]);
    let y = net.op(Op::MatMul, &[weights, v]);
    net.output(y);
    net.groups(2);
    cases.at(net, &all_lengths());
}

/// Inputs that are heads already, of a constant number of tokens, without a batch.
fn attention_of_inputs(cases: &mut Cases) {
    for (rows, columns, depth, width) in [(5, 7, 20, 12), (70, 9, 33, 65)] {
        let mut net = Net::written_out();
        let q = net.input(DType::F32, &dims(&[3, rows, depth]));
        let kt = net.input(DType::F32, &dims(&[3, depth, columns]));
        let v = net.input(DType::F32, &dims(&[3, columns, width]));
        let scores = net.op(Op::MatMul, &[q, kt]);
        let scale = net.floats(&[], &[(depth as f32).sqrt()]);
        let scores = net.op(Op::Binary(BinaryOp::Div), &[scores, scale]);
        let weights = net.op(Op::Softmax { axis: 2, log: false }, &[scores]);
        let y = net.op(Op::MatMul, &[weights, v]);
        net.output(y);
        net.groups(1);
        cases.add(net);
    }
}

pub(super) fn all(cases: &mut Cases) {
    cases.family("attention_under_every_mask", attention_under_every_mask);
    cases.family("attention_of_heads_too_wide_to_fuse", attention_of_heads_too_wide_to_fuse);
    cases.family("attention_to_another_sequence", attention_to_another_sequence);
    cases.family("attention_of_groups_of_heads", attention_of_groups_of_heads);
    cases.family("attention_whose_masked_rows_are_zero", attention_whose_masked_rows_are_zero);
    cases.family("attention_of_inputs", attention_of_inputs);
}
