//! Nodes whose results a logarithm needs in full.
//!
//! A spectrogram's logarithm makes the absolute error of a near-silent frequency, which is that of the
//! whole sum of products, a relative one. So sums of products keep binary32, whatever the model's
//! precision, where they flow into a logarithm through operators that scale with their operands.

use aot_ir::op::{BinaryOp, UnaryOp};
use aot_ir::{Graph, Node, Op};

/// By node, whether its results flow into a logarithm so.
pub(super) fn before_logarithms(graph: &Graph) -> Vec<bool> {
    let mut needed = vec![false; graph.values().len()];
    let nodes: Vec<(_, &Node)> = graph.nodes().collect();
    let mut before = vec![false; nodes.len()];
    for (id, node) in nodes.into_iter().rev() {
        let flows = node.outputs.iter().any(|v| needed[v.index()]);
        before[id.index()] = flows;
        if matches!(node.op, Op::Unary(UnaryOp::Log)) || (flows && scales(&node.op)) {
            for input in &node.inputs {
                needed[input.index()] = true;
            }
        }
    }
    before
}

/// Whether an operator's result grows with its operands, so that it has their relative error.
fn scales(op: &Op) -> bool {
    match op {
        Op::Unary(op) => matches!(op, UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Sqrt),
        Op::Binary(op) => matches!(
            op,
            BinaryOp::Add
                | BinaryOp::Sub
                | BinaryOp::Mul
                | BinaryOp::Div
                | BinaryOp::Pow
                | BinaryOp::Min
                | BinaryOp::Max
        ),
        Op::Select
        | Op::Cast(_)
        | Op::Reshape { .. }
        | Op::Transpose { .. }
        | Op::Slice { .. }
        | Op::Pad { .. }
        | Op::Expand { .. }
        | Op::Concat { .. }
        | Op::Gather { .. }
        | Op::GatherElements { .. }
        | Op::GatherNd { .. }
        | Op::Reduce { .. }
        | Op::MatMul
        | Op::Conv(_)
        | Op::ConvTranspose { .. }
        | Op::Pool(_)
        | Op::Resize(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LowerOptions, Precision, analysis::Analysis};
    use aot_ir::op::{BinaryOp, UnaryOp};
    use aot_ir::{DType, Dim, Graph, Op};
    use aot_kernels::group::MathType;

    /// `log((x · w · v)²) · v`, with an operator that may lie between the first two products.
    fn spectrum(between: Option<UnaryOp>) -> Graph {
        let mut graph = Graph::new("spectrum");
        let shape = [Dim::from(8), Dim::from(8)];
        let mut input = |name: &str| graph.add_input(name, DType::F32, shape.to_vec());
        let (x, w, v) = (input("x"), input("w"), input("v"));
        let mut op = |op: Op, inputs: &[_], name: &str| graph.add1(op, inputs, name).unwrap();
        let mut y = op(Op::MatMul, &[x, w], "first");
        if let Some(between) = between {
            y = op(Op::Unary(between), &[y], "between");
        }
        let y = op(Op::MatMul, &[y, v], "second");
        let power = op(Op::Binary(BinaryOp::Mul), &[y, y], "power");
        let log = op(Op::Unary(UnaryOp::Log), &[power], "log");
        let last = op(Op::MatMul, &[log, v], "last");
        graph.outputs.push(("y".to_owned(), last));
        graph
    }

    fn math(graph: &Graph, options: &LowerOptions) -> Vec<MathType> {
        let analysis = Analysis::new(graph, options);
        let products = graph.nodes().filter(|(_, n)| matches!(n.op, Op::MatMul));
        products.map(|(_, n)| analysis.math(n)).collect()
    }

    #[test]
    fn products_that_a_logarithm_takes_keep_binary32() {
        let mut options = LowerOptions { precision: Precision::F16, precision_for: Vec::new() };
        let (f16, f32) = (MathType::F16, MathType::F32);
        assert_eq!(math(&spectrum(None), &options), [f32, f32, f16]);
        assert_eq!(math(&spectrum(Some(UnaryOp::Abs)), &options), [f32, f32, f16]);
        assert_eq!(math(&spectrum(Some(UnaryOp::Relu)), &options), [f16, f32, f16]);
        // What the manifest says counts.
        options.precision_for.push(("first".to_owned(), Precision::F16));
        assert_eq!(math(&spectrum(None), &options), [f16, f32, f16]);
    }
}
