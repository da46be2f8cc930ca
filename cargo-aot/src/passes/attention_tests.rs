//! Attention as exporters write it.

use super::super::testing::{constant, count, equal, input};
use super::super::{Options, run};
use super::*;
use aot_ir::DType;

/// Where the scale is applied.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scale {
    Scores,
    Division,
    Queries,
    Split,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mask {
    None,
    Added,
    Excluded,
    Lowest,
    AddedThenScaled,
}

fn dims(list: &[i64]) -> Vec<Dim> {
    list.iter().map(|&d| Dim::from(d)).collect()
}

fn written_out(scale: Scale, mask: Mask, zero_rows: bool) -> Graph {
    let mut g = Graph::new("test");
    let projected: Vec<ValueId> = (0..3).map(|_| input(&mut g, &[2, 5, 12])).collect();
    let bin = |g: &mut Graph, op, a, b| g.add1(Op::Binary(op), &[a, b], "n").unwrap();
    let root = constant(&mut g, &[], &[0.5f32.sqrt()]);
    let heads = |g: &mut Graph, x, perm: [usize; 4]| {
        let x = g.add1(Op::Reshape { shape: dims(&[2, 5, 3, 4]) }, &[x], "split").unwrap();
        g.add1(Op::Transpose { perm: perm.to_vec() }, &[x], "heads").unwrap()
    };
    let half = constant(&mut g, &[], &[0.5]);
    let mut q = projected[0];
    if scale == Scale::Queries {
        q = bin(&mut g, BinaryOp::Mul, q, half);
    }
    q = heads(&mut g, q, [0, 2, 1, 3]);
    let mut kt = heads(&mut g, projected[1], [0, 2, 3, 1]);
    let v = heads(&mut g, projected[2], [0, 2, 1, 3]);
    if scale == Scale::Split {
        q = bin(&mut g, BinaryOp::Mul, q, root);
        kt = bin(&mut g, BinaryOp::Mul, root, kt);
    }
    let mut s = g.add1(Op::MatMul, &[q, kt], "scores").unwrap();
    let two = constant(&mut g, &[], &[2.0]);
    if scale == Scale::Division {
        s = bin(&mut g, BinaryOp::Div, s, two);
    }
    if mask == Mask::AddedThenScaled {
        let m = input(&mut g, &[2, 1, 1, 5]);
        s = bin(&mut g, BinaryOp::Add, m, s);
    }
    if scale == Scale::Scores {
        s = bin(&mut g, BinaryOp::Mul, s, half);
    }
    match mask {
        Mask::None | Mask::AddedThenScaled => {}
        Mask::Added => {
            let m = input(&mut g, &[2, 1, 1, 5]);
            s = bin(&mut g, BinaryOp::Add, s, m);
        }
        Mask::Excluded | Mask::Lowest => {
            let lowest = if mask == Mask::Lowest { f32::MIN } else { f32::NEG_INFINITY };
            let fill = constant(&mut g, &[], &[lowest]);
            let m = g.add_input("mask", DType::Bool, dims(&[2, 1, 5, 5]));
            s = g.add1(Op::Select, &[m, s, fill], "where").unwrap();
        }
    }
    let mut p = g.add1(Op::Softmax { axis: 3, log: false }, &[s], "softmax").unwrap();
    if zero_rows {
        let nan = g.add1(Op::Unary(UnaryOp::IsNan), &[p], "isnan").unwrap();
        let zero = constant(&mut g, &[], &[0.0]);
        p = g.add1(Op::Select, &[nan, zero, p], "where").unwrap();
    }
    let y = g.add1(Op::MatMul, &[p, v], "y").unwrap();
    g.outputs.push(("y".into(), y));
    g
}

#[test]
fn exporters_variants_are_recognised() {
    for scale in [Scale::Scores, Scale::Division, Scale::Queries, Scale::Split] {
        for mask in [Mask::None, Mask::Added, Mask::Excluded, Mask::Lowest, Mask::AddedThenScaled] {
            for zero_rows in [false, true] {
                let g = written_out(scale, mask, zero_rows);
                let after = run(&g, &Options::default()).unwrap();
                let case = format!("{scale:?} {mask:?} {zero_rows}");
                assert_eq!(count(&after, |op| *op == Op::MatMul), 0, "{case}");
                // Every place of the scale makes it a half.
                let expected = 0.5;
                let scale_is_absorbed = |op: &Op| match op {
                    Op::Attention(a) => {
                        (a.scale.as_f64() - expected).abs() < 1e-6
                            && a.masked_row_is_zero == zero_rows
                            && a.has_mask == (mask != Mask::None)
                    }
                    _ => false,
                };
                assert_eq!(count(&after, scale_is_absorbed), 1, "{case}");
                equal(&g, &after, &[]);
            }
        }
    }
}

/// Two heads of five rows, each three times.
fn repeat(g: &mut Graph, x: ValueId) -> ValueId {
    let x = g.add1(Op::Reshape { shape: dims(&[2, 2, 1, 5, 4]) }, &[x], "r").unwrap();
    let x = g.add1(Op::Expand { shape: dims(&[2, 2, 3, 5, 4]) }, &[x], "e").unwrap();
    g.add1(Op::Reshape { shape: dims(&[2, 6, 5, 4]) }, &[x], "m").unwrap()
}

#[test]
fn attention_that_is_whole_loses_what_it_does_not_need() {
    let allowed = [(Scalar::Bool(true), true), (Scalar::Bool(false), false)];
    let added = [(Scalar::Float(0.0), true), (Scalar::Float(1.0), false)];
    for (fill, goes) in allowed.into_iter().chain(added) {
        let mut g = Graph::new("test");
        let q = input(&mut g, &[2, 6, 5, 4]);
        let (k, v) = (input(&mut g, &[2, 2, 5, 4]), input(&mut g, &[2, 2, 5, 4]));
        let (k, v) = (repeat(&mut g, k), repeat(&mut g, v));
        let dtype = if matches!(fill, Scalar::Bool(_)) { DType::Bool } else { DType::F32 };
        let mask = Op::Fill { shape: dims(&[2, 1, 1, 5]), value: fill, dtype };
        let mask = g.add1(mask, &[], "mask").unwrap();
        let attrs = AttentionAttrs {
            scale: Scalar::Float(0.5),
            causal: true,
            masked_row_is_zero: true,
            has_mask: true,
        };
        let y = g.add1(Op::Attention(attrs), &[q, k, v, mask], "y").unwrap();
        g.outputs.push(("y".into(), y));
        let after = run(&g, &Options::default()).unwrap();
        let without = |op: &Op| matches!(op, Op::Attention(a) if !a.has_mask && a.causal);
        assert_eq!(count(&after, without), usize::from(goes), "{fill}");
        assert_eq!(count(&after, |op| matches!(op, Op::Attention(_))), 1);
        assert_eq!(count(&after, |op| matches!(op, Op::Expand { .. })), 0);
        equal(&g, &after, &[]);
    }
}

#[test]
fn shared_keys_are_not_repeated() {
    let mut g = Graph::new("test");
    let q = input(&mut g, &[2, 6, 5, 4]);
    let (k, v) = (input(&mut g, &[2, 2, 5, 4]), input(&mut g, &[2, 2, 5, 4]));
    let m = input(&mut g, &[2, 1, 5, 5]);
    let (k, v) = (repeat(&mut g, k), repeat(&mut g, v));
    let kt = g.add1(Op::Transpose { perm: vec![0, 1, 3, 2] }, &[k], "kt").unwrap();
    let s = g.add1(Op::MatMul, &[q, kt], "s").unwrap();
    let s = g.add1(Op::Binary(BinaryOp::Add), &[s, m], "masked").unwrap();
    let p = g.add1(Op::Softmax { axis: 3, log: false }, &[s], "p").unwrap();
    let y = g.add1(Op::MatMul, &[p, v], "y").unwrap();
    g.outputs.push(("y".into(), y));
    let after = run(&g, &Options::default()).unwrap();
    assert_eq!(count(&after, |op| matches!(op, Op::Attention(_))), 1);
    assert_eq!(count(&after, |op| matches!(op, Op::Expand { .. })), 0);
    equal(&g, &after, &[]);
}
