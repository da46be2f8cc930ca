//! Operators against values worked out by hand.

use aot_ir::exec::{Tensor, evaluate};
use aot_ir::op::{
    AttentionAttrs, BinaryOp, ConvAttrs, CoordinateMap, NearestRounding, PadMode, PoolAttrs,
    PoolKind, ReduceOp, ResizeAttrs, ResizeMode, ScanOp, ScatterReduction, UnaryOp,
};
use aot_ir::{DType, Dim, Op, Scalar};

fn f(shape: &[usize], values: &[f32]) -> Tensor {
    Tensor::from_vec(shape.to_vec(), values.to_vec()).expect("sizes match")
}

fn i(shape: &[usize], values: &[i64]) -> Tensor {
    Tensor::from_vec(shape.to_vec(), values.to_vec()).expect("sizes match")
}

fn count(shape: &[usize]) -> Tensor {
    let n: usize = shape.iter().product();
    f(shape, &(0..n).map(|v| v as f32).collect::<Vec<_>>())
}

fn dims(list: &[i64]) -> Vec<Dim> {
    list.iter().map(|&d| Dim::from(d)).collect()
}

#[track_caller]
fn run(op: Op, operands: &[Tensor]) -> Tensor {
    let mut results = evaluate(&op, operands.to_vec(), &[]).expect("operands fit");
    assert_eq!(results.len(), 1);
    results.remove(0)
}

#[track_caller]
fn error(op: Op, operands: &[Tensor]) -> String {
    evaluate(&op, operands.to_vec(), &[]).expect_err("operands do not fit").to_string()
}

#[track_caller]
fn check(op: Op, operands: &[Tensor], shape: &[usize], values: &[f64]) {
    let result = run(op, operands);
    assert_eq!(result.shape(), shape);
    let found = result.to_f64();
    let close = |a: f64, b: f64| (a.is_nan() && b.is_nan()) || a == b || (a - b).abs() <= 1e-5;
    assert!(found.iter().zip(values).all(|(a, b)| close(*a, *b)), "{found:?} is not {values:?}");
    assert_eq!(found.len(), values.len());
}

const INF: f32 = f32::INFINITY;

#[test]
fn floats() {
    let unary = |op, x: f32| run(Op::Unary(op), &[f(&[1], &[x])]).to_f64()[0];
    assert_eq!(unary(UnaryOp::Round, 2.5), 2.0);
    assert_eq!(unary(UnaryOp::Relu, -3.0), 0.0);
    assert!(unary(UnaryOp::Relu, f32::NAN).is_nan());
    assert!(unary(UnaryOp::Sign, f32::NAN).is_nan());
    assert_eq!(unary(UnaryOp::Sign, -0.5), -1.0);
    assert_eq!(unary(UnaryOp::IsNegInf, -INF), 1.0);
    assert_eq!(unary(UnaryOp::IsPosInf, -INF), 0.0);
    assert!((unary(UnaryOp::Erf, 0.5) - 0.520_499_88).abs() < 1e-6);
    assert!((unary(UnaryOp::Sigmoid, 1.0) - 0.731_058_6).abs() < 1e-6);
    let binary =
        |op, a: f32, b: f32| run(Op::Binary(op), &[f(&[1], &[a]), f(&[1], &[b])]).to_f64()[0];
    assert_eq!(binary(BinaryOp::Mod, -7.0, 3.0), 2.0);
    assert_eq!(binary(BinaryOp::Rem, -7.0, 3.0), -1.0);
    assert_eq!(binary(BinaryOp::Mod, 7.0, -3.0), -2.0);
    assert!(binary(BinaryOp::Max, 1.0, f32::NAN).is_nan());
    assert!(binary(BinaryOp::Min, f32::NAN, 1.0).is_nan());
    assert_eq!(binary(BinaryOp::Pow, 3.0, 2.0), 9.0);
    assert_eq!(binary(BinaryOp::Pow, -INF, 0.5), f64::INFINITY);
    assert_eq!(binary(BinaryOp::Ge, 1.0, f32::NAN), 0.0);
}

#[test]
fn integers_wrap_and_divide_toward_zero() {
    let byte = |v: i8| Tensor::from_vec(vec![1], vec![v]).expect("one");
    let binary = |op, a, b| run(Op::Binary(op), &[byte(a), byte(b)]).to_f64()[0];
    assert_eq!(binary(BinaryOp::Add, 127, 1), -128.0);
    assert_eq!(binary(BinaryOp::Div, -7, 2), -3.0);
    assert_eq!(binary(BinaryOp::Div, 5, 0), 0.0);
    assert_eq!(binary(BinaryOp::Mod, -7, 3), 2.0);
    assert_eq!(binary(BinaryOp::Shl, 1, 8), 0.0);
    assert_eq!(binary(BinaryOp::Shr, -1, 9), -1.0);
    assert_eq!(binary(BinaryOp::Pow, 3, -1), 0.0);
    let big = Tensor::from_vec(vec![1], vec![u64::MAX]).expect("one");
    let two = Tensor::from_vec(vec![1], vec![2u64]).expect("one");
    let quotient = run(Op::Binary(BinaryOp::Div), &[big.clone(), two.clone()]);
    assert_eq!(quotient.to_vec::<u64>().expect("u64"), [u64::MAX / 2]);
    assert_eq!(run(Op::Binary(BinaryOp::Gt), &[big, two]).to_f64(), [1.0]);
}

#[test]
fn casts_saturate_round_and_wrap() {
    let x = f(&[5], &[-1.7, 300.0, f32::NAN, 0.4, -400.0]);
    check(Op::Cast(DType::I8), std::slice::from_ref(&x), &[5], &[-1.0, 127.0, 0.0, 0.0, -128.0]);
    check(Op::Cast(DType::U8), std::slice::from_ref(&x), &[5], &[0.0, 255.0, 0.0, 0.0, 0.0]);
    check(Op::Cast(DType::Bool), &[x], &[5], &[1.0, 1.0, 1.0, 1.0, 1.0]);
    check(Op::Cast(DType::U8), &[i(&[2], &[-1, 258])], &[2], &[255.0, 2.0]);
    check(Op::Cast(DType::I4), &[i(&[2], &[9, -8])], &[2], &[-7.0, -8.0]);
    check(Op::Cast(DType::Bf16), &[f(&[1], &[1.01])], &[1], &[1.0078125]);
    check(Op::Cast(DType::F8E4M3), &[f(&[1], &[0.07])], &[1], &[0.0703125]);
    check(Op::Cast(DType::F4E2M1), &[f(&[3], &[2.4, -100.0, 0.3])], &[3], &[2.0, -6.0, 0.5]);
    check(Op::Cast(DType::F8E8M0), &[f(&[3], &[2.9, 3.0, 0.7])], &[3], &[2.0, 4.0, 0.5]);
    check(Op::Cast(DType::I2), &[f(&[3], &[-9.0, 9.0, -1.5])], &[3], &[-2.0, 1.0, -1.0]);
    check(Op::Cast(DType::I2), &[i(&[3], &[-9, 2, 5])], &[3], &[-1.0, -2.0, 1.0]);
    check(Op::Cast(DType::U2), &[i(&[2], &[-1, 6])], &[2], &[3.0, 2.0]);
}

#[test]
fn bytes_of_narrow_types() {
    let nibbles = Tensor::from_bytes(DType::I4, vec![3], &[0xf1, 0x08]).expect("two bytes");
    assert_eq!(nibbles.to_i64(), [1, -1, -8]);
    assert_eq!(nibbles.to_bytes(), [0xf1, 0x08]);
    let pairs = Tensor::from_bytes(DType::I2, vec![5], &[0b00_01_10_11, 0b10]).expect("two bytes");
    assert_eq!(pairs.to_i64(), [-1, -2, 1, 0, -2]);
    assert_eq!(pairs.to_bytes(), [0b00_01_10_11, 0b10]);
    let floats = Tensor::from_bytes(DType::F4E2M1, vec![3], &[0xa2, 0x07]).expect("two bytes");
    assert_eq!(floats.to_f64(), [1.0, -1.0, 6.0]);
    assert_eq!(floats.to_bytes(), [0xa2, 0x07]);
    let half = Tensor::from_bytes(DType::F16, vec![1], &[0x00, 0x3c]).expect("two bytes");
    assert_eq!(half.to_f64(), [1.0]);
    assert!(Tensor::from_bytes(DType::F16, vec![2], &[0]).is_err());
}

#[test]
fn broadcasting() {
    let (a, b) = (f(&[2, 1], &[10.0, 20.0]), f(&[3], &[1.0, 2.0, 3.0]));
    let add = Op::Binary(BinaryOp::Add);
    check(add, &[a.clone(), b.clone()], &[2, 3], &[11.0, 12.0, 13.0, 21.0, 22.0, 23.0]);
    let sub = Op::Binary(BinaryOp::Sub);
    let full = count(&[2, 3]);
    check(sub.clone(), &[a, full.clone()], &[2, 3], &[10.0, 9.0, 8.0, 17.0, 16.0, 15.0]);
    check(sub, &[full.clone(), b.clone()], &[2, 3], &[-1.0, -1.0, -1.0, 2.0, 2.0, 2.0]);
    let flag = Tensor::from_vec(vec![2, 1], vec![true, false]).expect("two");
    check(Op::Select, &[flag, b, full], &[2, 3], &[1.0, 2.0, 3.0, 3.0, 4.0, 5.0]);
    let channel = f(&[2, 1, 1], &[1.0, 2.0]);
    let image = f(&[1, 2, 1, 2], &[1.0, 2.0, 3.0, 4.0]);
    check(Op::Binary(BinaryOp::Div), &[channel, image], &[1, 2, 1, 2], &[1.0, 0.5, 2.0 / 3.0, 0.5]);
}

#[test]
fn movement() {
    let x = count(&[2, 3]);
    check(
        Op::Transpose { perm: vec![1, 0] },
        std::slice::from_ref(&x),
        &[3, 2],
        &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0],
    );
    let slice = Op::Slice { starts: dims(&[1, 2]), sizes: dims(&[1, 2]), steps: vec![1, -2] };
    check(slice, std::slice::from_ref(&x), &[1, 2], &[5.0, 3.0]);
    let outside = Op::Slice { starts: dims(&[0, 2]), sizes: dims(&[1, 2]), steps: vec![1, 1] };
    assert!(error(outside, std::slice::from_ref(&x)).contains("leaves axis 1"));
    check(
        Op::Concat { axis: 1 },
        &[x.clone(), f(&[2, 1], &[8.0, 9.0])],
        &[2, 4],
        &[0.0, 1.0, 2.0, 8.0, 3.0, 4.0, 5.0, 9.0],
    );
    check(
        Op::Expand { shape: dims(&[2, 2]) },
        &[f(&[2, 1], &[1.0, 2.0])],
        &[2, 2],
        &[1.0, 1.0, 2.0, 2.0],
    );
    let iota = Op::Iota { shape: dims(&[2, 2]), axis: 0, dtype: DType::I32 };
    check(iota, &[], &[2, 2], &[0.0, 0.0, 1.0, 1.0]);
    // Large enough for tiles and threads.
    let (p, q) = (613, 401);
    let big = run(Op::Transpose { perm: vec![0, 2, 1] }, &[count(&[2, p, q])]).to_f64();
    let right = |i: usize| {
        let (n, j, k) = (i / (p * q), i / p % q, i % p);
        (n * p * q + k * q + j) as f64
    };
    assert!((0..2 * p * q).all(|i| big[i] == right(i)));
    let single = run(Op::Transpose { perm: vec![1, 0] }, &[count(&[p, q])]).to_f64();
    assert!((0..p * q).all(|i| single[i] == (i % p * q + i / p) as f64));
}

#[test]
fn padding() {
    let x = f(&[3], &[1.0, 2.0, 3.0]);
    let pad = |low: i64, high: i64, mode| Op::Pad { low: dims(&[low]), high: dims(&[high]), mode };
    let x = std::slice::from_ref(&x);
    let nine = PadMode::Constant(Scalar::Float(9.0));
    check(pad(1, 2, nine), x, &[6], &[9.0, 1.0, 2.0, 3.0, 9.0, 9.0]);
    check(pad(-1, 1, nine), x, &[3], &[2.0, 3.0, 9.0]);
    check(pad(2, 1, PadMode::Reflect), x, &[6], &[3.0, 2.0, 1.0, 2.0, 3.0, 2.0]);
    check(pad(1, 1, PadMode::Edge), x, &[5], &[1.0, 1.0, 2.0, 3.0, 3.0]);
    check(pad(1, 1, PadMode::Wrap), x, &[5], &[3.0, 1.0, 2.0, 3.0, 1.0]);
}

#[test]
fn gathering_and_scattering() {
    let x = count(&[3, 2]);
    check(Op::Gather { axis: 0 }, &[x.clone(), i(&[2], &[-1, 0])], &[2, 2], &[4.0, 5.0, 0.0, 1.0]);
    assert!(error(Op::Gather { axis: 0 }, &[x.clone(), i(&[1], &[3])]).contains("index 3"));
    assert!(error(Op::Gather { axis: 0 }, &[x.clone(), i(&[1], &[-4])]).contains("index -4"));
    let index = i(&[2, 2], &[2, 0, 1, 1]);
    check(
        Op::GatherElements { axis: 0 },
        &[x.clone(), index.clone()],
        &[2, 2],
        &[4.0, 1.0, 2.0, 3.0],
    );
    check(Op::GatherNd { batch_dims: 0 }, &[x.clone(), index.clone()], &[2], &[4.0, 3.0]);
    let data = count(&[2, 2, 2]);
    let batched = i(&[2, 1], &[1, 0]);
    check(Op::GatherNd { batch_dims: 1 }, &[data, batched], &[2, 2], &[2.0, 3.0, 4.0, 5.0]);
    let updates = f(&[2, 2], &[10.0, 20.0, 30.0, 40.0]);
    let add = Op::ScatterElements { axis: 0, reduction: ScatterReduction::Add };
    check(add, &[x.clone(), index, updates], &[3, 2], &[0.0, 21.0, 32.0, 43.0, 14.0, 5.0]);
    let replace = Op::ScatterNd { reduction: ScatterReduction::None };
    check(
        replace,
        &[x, i(&[1, 1], &[1]), f(&[1, 2], &[7.0, 8.0])],
        &[3, 2],
        &[0.0, 1.0, 7.0, 8.0, 4.0, 5.0],
    );
}

#[test]
fn reductions() {
    let x = count(&[2, 3, 2]);
    let reduce = |op, axes: &[usize]| Op::Reduce { op, axes: axes.to_vec(), keep_dims: false };
    check(reduce(ReduceOp::Sum, &[1]), std::slice::from_ref(&x), &[2, 2], &[6.0, 9.0, 24.0, 27.0]);
    check(reduce(ReduceOp::Mean, &[0, 2]), std::slice::from_ref(&x), &[3], &[3.5, 5.5, 7.5]);
    check(reduce(ReduceOp::Max, &[0, 1, 2]), std::slice::from_ref(&x), &[], &[11.0]);
    check(reduce(ReduceOp::Prod, &[1]), &[f(&[1, 2], &[3.0, 4.0])], &[1], &[12.0]);
    check(reduce(ReduceOp::Mean, &[0]), &[i(&[2], &[-3, -4])], &[], &[-3.0]);
    check(reduce(ReduceOp::Sum, &[0]), &[f(&[0, 2], &[])], &[2], &[0.0, 0.0]);
    check(reduce(ReduceOp::Max, &[0]), &[f(&[0], &[])], &[], &[f64::NEG_INFINITY]);
    check(reduce(ReduceOp::Mean, &[0]), &[f(&[0], &[])], &[], &[f64::NAN]);
    let any = Tensor::from_vec(vec![2], vec![false, true]).expect("two");
    check(reduce(ReduceOp::Max, &[0]), std::slice::from_ref(&any), &[], &[1.0]);
    check(reduce(ReduceOp::Min, &[0]), &[any], &[], &[0.0]);
    let arg = |max, last| Op::ArgReduce { max, axis: 0, keep_dims: false, last };
    let ties = f(&[4], &[1.0, 3.0, 3.0, 1.0]);
    for (max, last, at) in
        [(true, false, 1.0), (true, true, 2.0), (false, false, 0.0), (false, true, 3.0)]
    {
        check(arg(max, last), std::slice::from_ref(&ties), &[], &[at]);
    }
    let scan = |exclusive, reverse| Op::Scan { op: ScanOp::Sum, axis: 0, exclusive, reverse };
    let x = f(&[3], &[1.0, 2.0, 3.0]);
    check(scan(false, false), std::slice::from_ref(&x), &[3], &[1.0, 3.0, 6.0]);
    check(scan(true, false), std::slice::from_ref(&x), &[3], &[0.0, 1.0, 3.0]);
    check(scan(true, true), &[x], &[3], &[5.0, 3.0, 0.0]);
}

#[test]
fn matrix_products() {
    let (a, b) = (count(&[2, 3]), count(&[3, 2]));
    check(Op::MatMul, &[a.clone(), b.clone()], &[2, 2], &[10.0, 13.0, 28.0, 40.0]);
    let batch = f(&[2, 1, 2], &[1.0, 2.0, 3.0, 4.0]);
    let many = f(&[1, 2, 1], &[1.0, 10.0]);
    check(Op::MatMul, &[batch, many], &[2, 1, 1], &[21.0, 43.0]);
    let left = f(&[1, 2], &[1.0, 1.0]);
    let right = count(&[2, 2, 2]);
    check(Op::MatMul, &[left, right], &[2, 1, 2], &[2.0, 4.0, 10.0, 12.0]);
    check(Op::MatMul, &[f(&[2, 0], &[]), f(&[0, 1], &[])], &[2, 1], &[0.0, 0.0]);
    let bytes = |v: &[i8], shape: &[usize]| {
        Tensor::from_vec(shape.to_vec(), v.to_vec()).expect("sizes match")
    };
    check(Op::MatMul, &[bytes(&[100, 2], &[1, 2]), bytes(&[2, 1], &[2, 1])], &[1, 1], &[-54.0]);
}

fn geometry(stride: i64, pad: i64, dilation: i64, groups: i64) -> ConvAttrs {
    ConvAttrs {
        strides: vec![stride; 2],
        pads: vec![(Dim::from(pad), Dim::from(pad)); 2],
        dilations: vec![dilation; 2],
        groups,
    }
}

/// A convolution as its definition says.
fn naive_conv(x: &Tensor, w: &Tensor, a: &ConvAttrs, shape: &[usize]) -> Vec<f64> {
    let (xs, ws) = (x.shape().to_vec(), w.shape().to_vec());
    let (x, w) = (x.to_f64(), w.to_f64());
    let pad = a.pads[0].0.as_const().expect("constant");
    let per_group = shape[1] / a.groups as usize;
    let mut out = Vec::new();
    for n in 0..shape[0] {
        for o in 0..shape[1] {
            for y in 0..shape[2] as i64 {
                for z in 0..shape[3] as i64 {
                    let mut sum = 0.0;
                    for c in 0..ws[1] {
                        for ky in 0..ws[2] {
                            for kx in 0..ws[3] {
                                let iy = y * a.strides[0] - pad + ky as i64 * a.dilations[0];
                                let ix = z * a.strides[1] - pad + kx as i64 * a.dilations[1];
                                let inside = (0..xs[2] as i64).contains(&iy)
                                    && (0..xs[3] as i64).contains(&ix);
                                if inside {
                                    let channel = o / per_group * ws[1] + c;
                                    let at = ((n * xs[1] + channel) * xs[2] + iy as usize) * xs[3]
                                        + ix as usize;
                                    let weight = ((o * ws[1] + c) * ws[2] + ky) * ws[3] + kx;
                                    sum += x[at] * w[weight];
                                }
                            }
                        }
                    }
                    out.push(sum);
                }
            }
        }
    }
    out
}

#[test]
fn convolutions_are_what_their_definition_says() {
    let cases = [
        ([2, 4, 5, 6], [3, 4, 3, 3], geometry(1, 1, 1, 1)),
        ([1, 4, 7, 5], [6, 2, 3, 2], geometry(2, 1, 1, 2)),
        ([2, 3, 6, 6], [6, 1, 3, 3], geometry(2, 1, 2, 3)),
        ([1, 4, 4, 4], [8, 4, 1, 1], geometry(1, 0, 1, 1)),
        ([1, 4, 5, 5], [8, 4, 1, 1], geometry(2, 0, 1, 1)),
        ([1, 2, 3, 3], [1, 2, 3, 3], geometry(1, 3, 1, 1)),
    ];
    for (x, w, attrs) in cases {
        let wave = |shape: &[usize]| {
            let n: usize = shape.iter().product();
            f(shape, &(0..n).map(|v| ((v * 37 % 23) as f32 - 11.0) / 8.0).collect::<Vec<_>>())
        };
        let (x, w) = (wave(&x), wave(&w));
        let result = run(Op::Conv(attrs.clone()), &[x.clone(), w.clone()]);
        let expected = naive_conv(&x, &w, &attrs, result.shape());
        let pairs = result.to_f64().into_iter().zip(expected);
        assert!(pairs.clone().all(|(a, b)| (a - b).abs() < 1e-4), "{attrs:?} {result:?}");
    }
}

#[test]
fn transposed_convolution_is_the_adjoint() {
    // ⟨conv(x), y⟩ = ⟨x, convᵀ(y)⟩.
    let wave = |shape: &[usize], by: usize| {
        let n: usize = shape.iter().product();
        f(shape, &(0..n).map(|v| ((v * by % 19) as f32 - 9.0) / 8.0).collect::<Vec<_>>())
    };
    for (groups, dilation, stride) in [(1, 1, 2), (2, 2, 1), (4, 1, 3)] {
        let attrs = geometry(stride, 1, dilation, groups);
        let x = wave(&[2, 4, 8, 8], 7);
        let w = wave(&[8, 4 / groups as usize, 3, 3], 5);
        let forward = run(Op::Conv(attrs.clone()), &[x.clone(), w.clone()]);
        let y = wave(forward.shape(), 11);
        let rest = (8 + 2 - 2 * dilation - 1).rem_euclid(stride);
        let back = Op::ConvTranspose { conv: attrs, output_padding: vec![rest; 2] };
        let back = run(back, &[y.clone(), w]);
        assert_eq!(back.shape(), x.shape());
        let dot = |a: &Tensor, b: &Tensor| -> f64 {
            a.to_f64().iter().zip(b.to_f64()).map(|(a, b)| a * b).sum()
        };
        assert!((dot(&forward, &y) - dot(&x, &back)).abs() < 1e-3);
    }
}

#[test]
fn pooling() {
    let x = f(&[1, 1, 4], &[1.0, 3.0, 2.0, 5.0]);
    let pool = |kind, pad: i64, ceil_mode| {
        Op::Pool(PoolAttrs {
            kind,
            kernel: dims(&[3]),
            strides: vec![2],
            pads: vec![(Dim::from(pad), Dim::from(pad))],
            dilations: vec![1],
            ceil_mode,
        })
    };
    let x = std::slice::from_ref(&x);
    check(pool(PoolKind::Max, 0, false), x, &[1, 1, 1], &[3.0]);
    check(pool(PoolKind::Max, 0, true), x, &[1, 1, 2], &[3.0, 5.0]);
    let average = |count_include_pad| PoolKind::Average { count_include_pad };
    check(pool(average(false), 1, false), x, &[1, 1, 2], &[2.0, 10.0 / 3.0]);
    check(pool(average(true), 1, false), x, &[1, 1, 2], &[4.0 / 3.0, 10.0 / 3.0]);
    // What rounding up adds beyond the padding does not count.
    check(pool(average(true), 0, true), x, &[1, 1, 2], &[2.0, 3.5]);
    check(pool(PoolKind::Lp(2), 0, false), x, &[1, 1, 1], &[14f64.sqrt()]);
}

#[test]
fn softmax_and_normalisation() {
    let x = f(&[2, 2], &[0.0, 2f32.ln(), 1000.0, 1000.0]);
    let softmax = |axis, log| Op::Softmax { axis, log };
    let third = 1.0 / 3.0;
    check(softmax(1, false), std::slice::from_ref(&x), &[2, 2], &[third, 2.0 * third, 0.5, 0.5]);
    let log = [third.ln(), (2.0 * third).ln(), 0.5f64.ln(), 0.5f64.ln()];
    check(softmax(1, true), std::slice::from_ref(&x), &[2, 2], &log);
    check(softmax(0, false), &[f(&[2, 1], &[0.0, 2f32.ln()])], &[2, 1], &[third, 2.0 * third]);
    let masked = f(&[2], &[-INF, -INF]);
    check(softmax(0, false), &[masked], &[2], &[f64::NAN, f64::NAN]);
    let normalize = |axes: &[usize], centered| Op::Normalize {
        axes: axes.to_vec(),
        epsilon: Scalar::Float(0.0),
        centered,
    };
    let y = f(&[1, 2], &[1.0, 3.0]);
    check(normalize(&[1], true), std::slice::from_ref(&y), &[1, 2], &[-1.0, 1.0]);
    let root = 5f64.sqrt();
    check(normalize(&[1], false), &[y], &[1, 2], &[1.0 / root, 3.0 / root]);
    check(normalize(&[0], true), &[f(&[2, 1], &[1.0, 3.0])], &[2, 1], &[-1.0, 1.0]);
}

#[test]
fn attention_with_masks() {
    let attention = |has_mask, causal, masked_row_is_zero| {
        Op::Attention(AttentionAttrs {
            scale: Scalar::Float(1.0),
            causal,
            masked_row_is_zero,
            has_mask,
        })
    };
    let q = f(&[1, 2, 1], &[0.0, 0.0]);
    let k = f(&[1, 3, 1], &[1.0, 2.0, 3.0]);
    let v = f(&[1, 3, 1], &[3.0, 6.0, 12.0]);
    check(
        attention(false, false, false),
        &[q.clone(), k.clone(), v.clone()],
        &[1, 2, 1],
        &[7.0, 7.0],
    );
    // Row 0 of 2 sees columns 0 and 1 of 3.
    check(
        attention(false, true, false),
        &[q.clone(), k.clone(), v.clone()],
        &[1, 2, 1],
        &[4.5, 7.0],
    );
    let flags = vec![true, false, true, false, false, false];
    let mask = Tensor::from_vec(vec![2, 3], flags).expect("six");
    let operands = [q.clone(), k.clone(), v.clone(), mask];
    check(attention(true, false, true), &operands, &[1, 2, 1], &[7.5, 0.0]);
    check(attention(true, false, false), &operands, &[1, 2, 1], &[7.5, f64::NAN]);
    let added = f(&[1, 1, 3], &[0.0, -INF, 2f32.ln()]);
    check(attention(true, false, false), &[q, k, v, added], &[1, 2, 1], &[9.0, 9.0]);
}

#[test]
fn resizing() {
    let resize = |mode, coordinates, size: i64| {
        Op::Resize(ResizeAttrs {
            mode,
            coordinates,
            sizes: dims(&[size]),
            scales: vec![None],
            exclude_outside: false,
        })
    };
    let x = f(&[2], &[0.0, 4.0]);
    let x = std::slice::from_ref(&x);
    let nearest = ResizeMode::Nearest(NearestRounding::Floor);
    check(resize(nearest, CoordinateMap::Asymmetric, 4), x, &[4], &[0.0, 0.0, 4.0, 4.0]);
    let linear = resize(ResizeMode::Linear, CoordinateMap::HalfPixel, 4);
    check(linear, x, &[4], &[0.0, 1.0, 3.0, 4.0]);
    let aligned = resize(ResizeMode::Linear, CoordinateMap::AlignCorners, 5);
    check(aligned, x, &[5], &[0.0, 1.0, 2.0, 3.0, 4.0]);
    // Cubic weights at 0.25 and 0.75 for a = -0.75, edges repeated.
    let cubic = ResizeMode::Cubic(Scalar::Float(-0.75));
    let y = f(&[4], &[0.0, 0.0, 1.0, 1.0]);
    let result = run(resize(cubic, CoordinateMap::HalfPixel, 8), &[y]).to_f64();
    assert!((result[3] - 0.2265625).abs() < 1e-6, "{result:?}");
    assert!((result[3] + result[4] - 1.0).abs() < 1e-6);
    let bytes = Tensor::from_vec(vec![2], vec![0u8, 255]).expect("two");
    let shrunk = resize(ResizeMode::Linear, CoordinateMap::HalfPixel, 1);
    check(shrunk, &[bytes], &[1], &[127.0]);
}
