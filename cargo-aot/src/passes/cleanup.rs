//! Dead nodes out, equal nodes and equal small constants merged.

use super::rewriter::{Rewriter, live_nodes};
use aot_ir::{DType, Def, Graph, GraphError, Op, ValueId};
use std::collections::HashMap;

/// Constants of at most this many bytes are compared.
const SMALL: usize = 4 << 10;

pub(super) fn run(source: &Graph) -> Result<Graph, GraphError> {
    let live = live_nodes(source);
    let mut rewriter = Rewriter::new(source);
    let mut constants: HashMap<(DType, &[usize], &[u8]), ValueId> = HashMap::new();
    let mut nodes: HashMap<(Op, Vec<ValueId>), Vec<ValueId>> = HashMap::new();
    for (id, node) in source.nodes() {
        if !live[id.index()] {
            continue;
        }
        for &input in &node.inputs {
            if let Def::Const(id) = source[input].def {
                let constant = &source[id];
                if constant.bytes.len() <= SMALL {
                    let key = (constant.dtype, constant.shape.as_slice(), &*constant.bytes);
                    let new = match constants.get(&key) {
                        Some(&new) => new,
                        None => rewriter.value(input)?,
                    };
                    constants.insert(key, new);
                    rewriter.bind(input, new, false);
                }
            }
        }
        let inputs = rewriter.operands(id)?;
        match nodes.get(&(node.op.clone(), inputs.clone())) {
            Some(same) => {
                for (&old, &new) in node.outputs.iter().zip(same) {
                    rewriter.bind(old, new, false);
                }
            }
            None => {
                rewriter.copy(id)?;
                let outputs: Result<Vec<ValueId>, _> =
                    node.outputs.iter().map(|&v| rewriter.value(v)).collect();
                nodes.insert((node.op.clone(), inputs), outputs?);
            }
        }
    }
    rewriter.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::testing::{constant, equal, input};
    use aot_ir::op::{BinaryOp, UnaryOp};

    #[test]
    fn dead_and_equal_nodes_go() {
        let mut g = Graph::new("test");
        let x = input(&mut g, &[2, 3]);
        let add = |g: &mut Graph, c| g.add1(Op::Binary(BinaryOp::Add), &[x, c], "add").unwrap();
        let (c, d) = (constant(&mut g, &[1], &[2.0]), constant(&mut g, &[1], &[2.0]));
        let (a, b) = (add(&mut g, c), add(&mut g, d));
        g.add1(Op::Unary(UnaryOp::Exp), &[a], "dead").unwrap();
        let sum = g.add1(Op::Binary(BinaryOp::Mul), &[a, b], "mul").unwrap();
        g.outputs.push(("y".into(), sum));
        let after = run(&g).unwrap();
        assert_eq!(after.nodes().len(), 2);
        equal(&g, &after, &[]);
    }
}
