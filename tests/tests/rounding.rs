//! What f16 loses in a whole model, without a GPU: the graph with roundings where its plan has them, executed in
//! binary64.

use crate::models::imported;
use aot_ir::exec::{Executor, Tensor};
use aot_ir::{DType, Def, Graph, Op, ValueId};
use aot_tests::compare::distance;
use aot_tests::models::Model;
use aot_tests::net::Random;
use aot_tests::picture::digits;
use cargo_aot::lower::{LowerOptions, Precision, lower};
use cargo_aot::passes;
use std::collections::{HashMap, HashSet};

/// The graph in which values of `kept`, and both operands of products, are rounded to f16.
fn rounded(graph: &Graph, kept: &HashSet<ValueId>) -> Graph {
    let mut out = Graph::new("rounded");
    out.symbols = graph.symbols.clone();
    out.guards = graph.guards.clone();
    let mut values: HashMap<ValueId, ValueId> = HashMap::new();
    for (id, v) in graph.values() {
        let new = match v.def {
            Def::Input(_) => out.add_input(v.name.clone(), v.dtype, v.shape.clone()),
            Def::Const(c) => out.add_constant(graph[c].clone()).unwrap(),
            Def::Node(..) => continue,
        };
        values.insert(id, new);
    }
    let round = |out: &mut Graph, v: ValueId| {
        let half = out.add1(Op::Cast(DType::F16), &[v], "half").unwrap();
        out.add1(Op::Cast(DType::F32), &[half], "float").unwrap()
    };
    for (_, node) in graph.nodes() {
        let mut operands: Vec<ValueId> = node.inputs.iter().map(|v| values[v]).collect();
        let multiplies = match &node.op {
            Op::Conv(attrs) => attrs.groups == 1,
            op => matches!(op, Op::MatMul | Op::ConvTranspose { .. }),
        };
        if multiplies {
            operands.iter_mut().for_each(|v| *v = round(&mut out, *v));
        }
        let results = out.add(node.op.clone(), &operands, node.name.clone()).unwrap();
        for (old, new) in node.outputs.iter().zip(results) {
            let new = if kept.contains(old) { round(&mut out, new) } else { new };
            values.insert(*old, new);
        }
    }
    out.outputs = graph.outputs.iter().map(|(name, v)| (name.clone(), values[v])).collect();
    out
}

/// Text is found where it is, with results near 1, and f16 changes them by little.
#[test]
fn text_detection_in_f16_is_close_where_there_is_text() {
    let graph = imported(Model::of("det"));
    let graph = passes::run(&graph, &passes::Options::default()).unwrap();
    let options = LowerOptions { precision: Precision::F16, precision_for: Vec::new() };
    let plan = lower(&graph, &options).unwrap();
    let is_half = |buffer: u32| plan.buffers[buffer as usize].dtype == DType::F16;
    let homes = plan.homes.iter().filter(|(_, home)| is_half(home.buffer));
    let kept: HashSet<ValueId> = homes.map(|(v, _)| *v).collect();
    assert!(kept.len() > 50, "{}", kept.len());
    let (wide, narrow) =
        (Executor::wide(&graph).unwrap(), Executor::wide(&rounded(&graph, &kept)).unwrap());
    for (height, width) in [(32, 32), (96, 224)] {
        let shape = [1, 3, height, width];
        let pixels = digits(shape, &mut Random::new(1));
        let picture = Tensor::from_f64(DType::F32, shape.to_vec(), &pixels).unwrap();
        let expected = wide.run(std::slice::from_ref(&picture)).unwrap()[0].to_f64();
        let found = narrow.run(&[picture]).unwrap()[0].to_f64();
        assert!(expected.iter().any(|p| *p > 0.9), "no text is found");
        let d = distance(&found, &expected);
        assert!((1e-4..6e-3).contains(&d), "{d:e} at {height}x{width}");
    }
}
