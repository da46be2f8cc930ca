//! Shape rules: what is proved, what becomes a guard, what is refused.

use aot_ir::op::{
    AttentionAttrs, BinaryOp, ConvAttrs, PadMode, PoolAttrs, PoolKind, ReduceOp, UnaryOp,
};
use aot_ir::{DType, Dim, Graph, GraphError, Op, Scalar, Scope, Symbol, ValueId};

struct Setup {
    graph: Graph,
    n: Dim,
    h: Dim,
}

/// `n` in 1..=64 and `h` in 32..=960 by 32.
fn setup() -> Setup {
    let mut graph = Graph::new("test");
    let n = graph.symbols.add(Symbol::new("n", 1, 64, 1));
    let h = graph.symbols.add(Symbol::new("h", 32, 960, 32));
    let (n, h) = (graph.symbols.dim(n), graph.symbols.dim(h));
    Setup { graph, n, h }
}

fn dims(list: &[i64]) -> Vec<Dim> {
    list.iter().map(|&d| Dim::from(d)).collect()
}

impl Setup {
    fn input(&mut self, shape: Vec<Dim>) -> ValueId {
        self.graph.add_input("x", DType::F32, shape)
    }

    fn add(&mut self, op: Op, inputs: &[ValueId]) -> Result<Vec<Dim>, String> {
        match self.graph.add1(op, inputs, "node") {
            Ok(value) => Ok(self.graph[value].shape.clone()),
            Err(GraphError::Shape { error, .. }) => Err(error.to_string()),
            Err(other) => Err(other.to_string()),
        }
    }
}

#[test]
fn broadcasting_proves_guards_and_refuses() {
    let mut t = setup();
    let (n, h) = (t.n.clone(), t.h.clone());
    let a = t.input(vec![n.clone(), Dim::from(3), h.clone()]);
    let b = t.input(vec![Dim::from(3), Dim::ONE]);
    let add = || Op::Binary(BinaryOp::Add);
    assert_eq!(t.add(add(), &[a, b]), Ok(vec![n.clone(), Dim::from(3), h.clone()]));
    assert!(t.graph.guards.is_empty());

    let c = t.input(vec![Dim::from(7), Dim::from(3), h.clone()]);
    assert_eq!(t.add(add(), &[a, c]), Ok(vec![Dim::from(7), Dim::from(3), h.clone()]));
    assert_eq!(t.graph.guards.len(), 1);
    assert_eq!((&t.graph.guards[0].lhs, &t.graph.guards[0].rhs), (&n, &Dim::from(7)));

    // 33 is no multiple of 32, and h is not 1.
    let d = t.input(vec![Dim::from(3), Dim::from(5)]);
    let error = t.add(add(), &[a, d]).unwrap_err();
    assert!(error.contains("do not broadcast"), "{error}");
    // n can't be 65, but it may be 1.
    let e = t.input(vec![Dim::from(65), Dim::ONE, Dim::ONE]);
    assert_eq!(t.add(add(), &[a, e]).unwrap()[0], Dim::from(65));
    assert!(t.graph.guards.iter().any(|g| g.lhs == n && g.rhs.is(1)));
}

#[test]
fn types_and_counts_are_checked() {
    let mut t = setup();
    let x = t.input(dims(&[2, 3]));
    let flag = t.graph.add_input("b", DType::Bool, dims(&[2, 3]));
    assert_eq!(
        t.add(Op::Binary(BinaryOp::Add), &[x]).unwrap_err(),
        "add takes 2 operands, found 1"
    );
    assert_eq!(
        t.add(Op::Binary(BinaryOp::Add), &[x, flag]).unwrap_err(),
        "operands are f32 and bool, expected one type"
    );
    assert_eq!(t.add(Op::Unary(UnaryOp::Not), &[x]).unwrap_err(), "not takes bool, found f32");
    assert!(t.add(Op::Select, &[x, x, x]).unwrap_err().contains("a bool condition"));
    assert!(t.add(Op::Reshape { shape: dims(&[7]) }, &[x]).unwrap_err().contains("can't be"));
    assert!(t.add(Op::Reshape { shape: dims(&[-2, -3]) }, &[x]).unwrap_err().contains("negative"));
    assert!(t.add(Op::Transpose { perm: vec![1, 1] }, &[x]).unwrap_err().contains("twice"));
    assert!(t.add(Op::Transpose { perm: vec![1, 2] }, &[x]).unwrap_err().contains("out of range"));
    assert!(t.add(Op::Softmax { axis: 2, log: false }, &[x]).unwrap_err().contains("axis 2"));
    let reduce = Op::Reduce { op: ReduceOp::Sum, axes: vec![1, 0], keep_dims: false };
    assert!(t.add(reduce, &[x]).unwrap_err().contains("ascending"));
}

#[test]
fn huge_results_are_refused() {
    let mut t = setup();
    let fill = Op::Fill {
        shape: dims(&[i64::MAX, i64::MAX]),
        value: Scalar::Float(0.0),
        dtype: DType::F32,
    };
    assert!(t.add(fill, &[]).unwrap_err().contains("more elements"));
}

#[test]
fn reshape_proves_products() {
    let mut t = setup();
    let (n, h) = (t.n.clone(), t.h.clone());
    let x = t.input(vec![n.clone(), Dim::from(12), h.clone()]);
    let merged = vec![n.clone(), h.scaled(12)];
    assert_eq!(t.add(Op::Reshape { shape: merged.clone() }, &[x]), Ok(merged));
    assert!(t.graph.guards.is_empty());
    assert!(t.add(Op::Reshape { shape: vec![n.clone(), h.clone()] }, &[x]).is_err());
    t.add(Op::Reshape { shape: vec![Dim::from(12), h.clone()] }, &[x]).unwrap();
    assert_eq!(t.graph.guards.len(), 1);
}

#[test]
fn slices_stay_inside() {
    let mut t = setup();
    let h = t.h.clone();
    let x = t.input(vec![h.clone()]);
    let slice = |start: Dim, size: Dim, step| Op::Slice {
        starts: vec![start],
        sizes: vec![size],
        steps: vec![step],
    };
    assert!(t.add(slice(Dim::from(4), Dim::from(28), 1), &[x]).is_ok());
    assert!(t.add(slice(&h - 1, h.clone(), -1), &[x]).is_ok());
    assert!(t.graph.guards.is_empty());
    assert!(t.add(slice(Dim::from(0), Dim::from(961), 1), &[x]).is_err());
    assert!(t.add(slice(Dim::from(0), Dim::from(40), 1), &[x]).is_ok());
    assert_eq!(t.graph.guards.len(), 1);
    assert!(t.add(slice(Dim::from(0), Dim::from(4), 0), &[x]).is_err());
}

fn conv(strides: i64, pad: i64, dilation: i64, groups: i64) -> Op {
    Op::Conv(ConvAttrs {
        strides: vec![strides],
        pads: vec![(Dim::from(pad), Dim::from(pad))],
        dilations: vec![dilation],
        groups,
    })
}

#[test]
fn convolution_extents() {
    let mut t = setup();
    let (n, h) = (t.n.clone(), t.h.clone());
    let x = t.input(vec![n.clone(), Dim::from(4), h.clone()]);
    let w = t.input(dims(&[8, 4, 3]));
    let depthwise = t.input(dims(&[4, 1, 3]));
    let half = t.add(conv(2, 1, 1, 1), &[x, w]).unwrap();
    assert_eq!(half[2].scaled(2), h);
    assert_eq!(t.add(conv(1, 0, 2, 1), &[x, w]).unwrap()[2], &h - 4);
    assert_eq!(t.add(conv(1, 1, 1, 4), &[x, depthwise]).unwrap()[1], Dim::from(4));
    assert!(t.add(conv(1, 1, 1, 4), &[x, w]).is_err());
    assert!(t.add(conv(0, 1, 1, 1), &[x, w]).unwrap_err().contains("stride"));
    assert!(t.add(conv(1, -1, 1, 1), &[x, w]).unwrap_err().contains("negative"));
    assert!(t.graph.guards.is_empty());
    let up = Op::ConvTranspose {
        conv: ConvAttrs {
            strides: vec![2],
            pads: vec![(Dim::ONE, Dim::ONE)],
            dilations: vec![1],
            groups: 1,
        },
        output_padding: vec![1],
    };
    let w = t.input(dims(&[4, 6, 3]));
    assert_eq!(t.add(up, &[x, w]).unwrap(), vec![n, Dim::from(6), h.scaled(2)]);
}

#[test]
fn pooling_leaves_out_windows_that_start_in_the_end_padding() {
    let mut t = setup();
    let x = t.input(dims(&[1, 1, 3]));
    let pool = |ceil_mode, pad, stride| {
        Op::Pool(PoolAttrs {
            kind: PoolKind::Max,
            kernel: vec![Dim::from(2)],
            strides: vec![stride],
            pads: vec![(Dim::from(pad), Dim::from(pad))],
            dilations: vec![1],
            ceil_mode,
        })
    };
    assert_eq!(t.add(pool(false, 0, 2), &[x]).unwrap()[2], Dim::ONE);
    assert_eq!(t.add(pool(true, 0, 2), &[x]).unwrap()[2], Dim::from(2));
    // A window larger than the operand.
    let small = t.input(dims(&[1, 1, 1]));
    assert_eq!(t.add(pool(false, 0, 2), &[small]).unwrap()[2], Dim::ONE);
    // Windows at 0, 2 and 4 of the padded extent 5: the last starts in the end padding.
    assert_eq!(t.add(pool(true, 1, 2), &[x]).unwrap()[2], Dim::from(2));
}

#[test]
fn padding_and_gathering() {
    let mut t = setup();
    let n = t.n.clone();
    let x = t.input(vec![n.clone(), Dim::from(5)]);
    let pad = |high: i64, mode| Op::Pad { low: dims(&[0, 1]), high: dims(&[0, high]), mode };
    let constant = PadMode::Constant(Scalar::Float(0.0));
    assert_eq!(t.add(pad(-2, constant), &[x]).unwrap()[1], Dim::from(4));
    assert!(t.add(pad(-7, PadMode::Reflect), &[x]).is_err());
    let index = t.graph.add_input("i", DType::I64, vec![n.clone(), Dim::from(2)]);
    assert_eq!(
        t.add(Op::Gather { axis: 1 }, &[x, index]).unwrap(),
        vec![n.clone(), n.clone(), Dim::from(2)]
    );
    assert_eq!(t.add(Op::GatherNd { batch_dims: 0 }, &[x, index]).unwrap(), vec![n.clone()]);
    assert!(t.add(Op::GatherNd { batch_dims: 1 }, &[x, index]).is_err());
    assert!(t.add(Op::GatherNd { batch_dims: 2 }, &[x, index]).is_err());
    assert_eq!(t.add(Op::GatherElements { axis: 1 }, &[x, index]).unwrap(), vec![n, Dim::from(2)]);
    assert!(t.add(Op::Gather { axis: 0 }, &[index, x]).unwrap_err().contains("integer"));
}

#[test]
fn attention_shapes() {
    let mut t = setup();
    let (n, h) = (t.n.clone(), t.h.clone());
    let q = t.input(vec![n.clone(), Dim::from(2), h.clone(), Dim::from(8)]);
    let v = t.input(vec![n.clone(), Dim::from(2), h.clone(), Dim::from(6)]);
    let mask = t.input(vec![n.clone(), Dim::ONE, Dim::ONE, h.clone()]);
    let attention = |has_mask| {
        Op::Attention(AttentionAttrs {
            scale: Scalar::Float(0.5),
            causal: false,
            masked_row_is_zero: false,
            has_mask,
        })
    };
    let shape = vec![n, Dim::from(2), h, Dim::from(6)];
    assert_eq!(t.add(attention(true), &[q, q, v, mask]), Ok(shape));
    assert!(t.graph.guards.is_empty());
    assert!(t.add(attention(false), &[q, q, v, mask]).is_err());
    assert!(t.add(attention(false), &[q, v, v]).unwrap_err().contains("widths"));
}

#[test]
fn concatenation_adds_extents() {
    let mut t = setup();
    let (n, h) = (t.n.clone(), t.h.clone());
    let a = t.input(vec![n.clone(), h.clone()]);
    let b = t.input(vec![n.clone(), Dim::from(3)]);
    assert_eq!(t.add(Op::Concat { axis: 1 }, &[a, b]), Ok(vec![n, &h + 3]));
    assert!(t.add(Op::Concat { axis: 0 }, &[a, b]).unwrap_err().contains("differ along axis 1"));
    assert!(t.add(Op::Concat { axis: 0 }, &[]).unwrap_err().contains("at least 1"));
}

/// Pools whose windows may be larger than what is left give one result, and the extents of many in a row stay short.
#[test]
fn extents_of_pools_that_may_run_out_of_input_stay_short() {
    let mut t = setup();
    let mut x = t.input(vec![Dim::ONE, Dim::ONE, t.n.clone()]);
    for _ in 0..6 {
        let extent = t.graph[x].shape[2].clone();
        let lack = Scope::new(&t.graph.symbols).max(&(Dim::from(2) - extent), &Dim::ZERO);
        let pool = Op::Pool(PoolAttrs {
            kind: PoolKind::Max,
            kernel: dims(&[2]),
            strides: vec![2],
            pads: vec![(Dim::ZERO, lack)],
            dilations: vec![1],
            ceil_mode: false,
        });
        x = t.graph.add1(pool, &[x], "pool").unwrap();
    }
    let extent = &t.graph[x].shape[2];
    assert!(t.graph.symbols.show(extent).len() < 40, "{}", t.graph.symbols.show(extent));
    for n in 1..=64 {
        let expected = (0..6).fold(n, |n: i64, _| (n / 2).max(1));
        assert_eq!(extent.eval(&[n, 1][..]).unwrap(), expected, "{n}");
    }
}

/// Whoever chose the ranges learns which ones would do.
#[test]
fn an_extent_that_is_negative_at_all_sizes_says_which_would_do() {
    let mut t = setup();
    let (n, h) = (t.n.clone(), t.h.clone());
    let w = t.input(dims(&[8, 4, 3]));
    let x = t.input(vec![Dim::ONE, Dim::from(4), n.clone()]);
    let error = t.add(conv(1, 0, 40, 1), &[x, w]).unwrap_err();
    let advice = "negative for all n in 1..=64: the range of `n` has to begin at 80, or reach it";
    assert!(error.contains(advice), "{error}");
    // The least size on the step.
    let x = t.input(vec![Dim::ONE, Dim::from(4), h.clone()]);
    let error = t.add(conv(3, 0, 500, 1), &[x, w]).unwrap_err();
    assert!(error.contains("`h` has to begin at 1024"), "{error}");
    let x = t.input(vec![Dim::ONE, Dim::from(4), n.clone() - n.clone() * 2 - 3]);
    let error = t.add(conv(1, 0, 1, 1), &[x, w]).unwrap_err();
    assert!(error.ends_with("negative for all n in 1..=64"), "{error}");
    let x = t.input(vec![Dim::ONE, Dim::from(4), n + h - 2000]);
    let error = t.add(conv(1, 0, 1, 1), &[x, w]).unwrap_err();
    assert!(
        error.ends_with("for all n in 1..=64, h in 32..=960: larger sizes are needed"),
        "{error}"
    );
}
