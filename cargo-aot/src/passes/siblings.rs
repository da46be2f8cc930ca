//! Matrix products of one left operand with several constants: one product with their concatenation.

use super::rewriter::{Rewriter, live_nodes};
use aot_ir::{Dim, Graph, GraphError, NodeId, Op, ValueId, op::BinaryOp};
use std::collections::HashMap;

/// A product and, if its only reader adds a bias, that addition.
#[derive(Clone, Copy, Debug)]
struct Sibling {
    weight: ValueId,
    bias: Option<ValueId>,
    /// What readers see: the product or the sum.
    result: ValueId,
    /// Last node of the sibling.
    node: NodeId,
}

/// Merges products with constant right operands `[k, n]` that share the left operand, together with
/// biases `[n]`. Nodes that depend on constants only come first in the result.
pub(super) fn run(source: &Graph) -> Result<Graph, GraphError> {
    let live = live_nodes(source);
    let constant = constants(source);
    let families = families(source, &live, &constant);
    if families.is_empty() {
        return Ok(source.clone());
    }
    let mut family_of: HashMap<NodeId, usize> = HashMap::new();
    for (i, family) in families.iter().enumerate() {
        for sibling in family {
            family_of.insert(sibling.node, i);
        }
    }
    let mut rewriter = Rewriter::new(source);
    let of_constants = |id: &NodeId| source[*id].outputs.iter().all(|v| constant[v.index()]);
    let (first, rest): (Vec<NodeId>, Vec<NodeId>) =
        source.nodes().map(|(id, _)| id).filter(|id| live[id.index()]).partition(of_constants);
    let mut done = vec![false; families.len()];
    for id in first.into_iter().chain(rest) {
        match family_of.get(&id) {
            Some(&i) if !std::mem::replace(&mut done[i], true) => {
                merge(&mut rewriter, &families[i])?;
            }
            Some(_) => {}
            None => rewriter.copy(id)?,
        }
    }
    rewriter.finish()
}

/// Which values depend on constants only.
fn constants(g: &Graph) -> Vec<bool> {
    let mut constant: Vec<bool> = g.values().map(|(id, _)| g.constant_of(id).is_some()).collect();
    for (_, node) in g.nodes() {
        let all = node.inputs.iter().all(|v| constant[v.index()])
            && node.op.dims().iter().all(|d| d.as_const().is_some())
            && node.outputs.iter().all(|v| g[*v].shape.iter().all(|d| d.as_const().is_some()));
        for output in &node.outputs {
            constant[output.index()] = all;
        }
    }
    constant
}

/// Groups of two siblings or more.
fn families(g: &Graph, live: &[bool], constant: &[bool]) -> Vec<Vec<Sibling>> {
    let uses = g.uses();
    let is_output: Vec<ValueId> = g.outputs.iter().map(|(_, v)| *v).collect();
    let mut families: Vec<((ValueId, bool), Vec<Sibling>)> = Vec::new();
    let mut index: HashMap<(ValueId, bool), usize> = HashMap::new();
    for (id, node) in g.nodes() {
        let (Op::MatMul, [left, weight], true) =
            (&node.op, node.inputs.as_slice(), live[id.index()])
        else {
            continue;
        };
        if constant[left.index()] || !constant[weight.index()] || g[*weight].shape.len() != 2 {
            continue;
        }
        let product = node.outputs[0];
        let readers: Vec<NodeId> =
            uses[product.index()].iter().copied().filter(|n| live[n.index()]).collect();
        let bias = match readers.as_slice() {
            [reader] if !is_output.contains(&product) => bias_of(g, *reader, product, constant),
            _ => None,
        };
        let sibling = match bias {
            Some((bias, sum, node)) => {
                Sibling { weight: *weight, bias: Some(bias), result: sum, node }
            }
            None => Sibling { weight: *weight, bias: None, result: product, node: id },
        };
        let key = (*left, sibling.bias.is_some());
        let at = *index.entry(key).or_insert_with(|| {
            families.push((key, Vec::new()));
            families.len() - 1
        });
        families[at].1.push(sibling);
    }
    families.into_iter().map(|(_, family)| family).filter(|f| f.len() > 1).collect()
}

/// The bias that a product's reader adds: the bias, the sum and the node.
fn bias_of(
    g: &Graph,
    reader: NodeId,
    product: ValueId,
    constant: &[bool],
) -> Option<(ValueId, ValueId, NodeId)> {
    let node = &g[reader];
    if node.op != Op::Binary(BinaryOp::Add) {
        return None;
    }
    let [a, b] = *node.inputs.as_slice() else { return None };
    let bias = if a == product { b } else { a };
    let width = g[product].shape.last()?;
    (constant[bias.index()] && g[bias].shape.as_slice() == [width.clone()]).then_some((
        bias,
        node.outputs[0],
        reader,
    ))
}

fn merge(rewriter: &mut Rewriter<'_>, family: &[Sibling]) -> Result<(), GraphError> {
    let source = rewriter.source;
    let Some(first) = family.first() else { return Ok(()) };
    let product = match first.bias {
        Some(_) => source[first.node].inputs.iter().copied().find_map(|v| {
            source
                .producer(v)
                .filter(|id| source[*id].op == Op::MatMul && source[*id].inputs[1] == first.weight)
        }),
        None => Some(first.node),
    };
    let Some(product) = product else { return Ok(()) };
    let left = rewriter.value(source[product].inputs[0])?;
    let name = source[product].name.clone();
    let mut weights = Vec::with_capacity(family.len());
    let mut biases = Vec::with_capacity(family.len());
    for sibling in family {
        weights.push(rewriter.value(sibling.weight)?);
        if let Some(bias) = sibling.bias {
            biases.push(rewriter.value(bias)?);
        }
    }
    let g = &mut rewriter.graph;
    let weight = g.add1(Op::Concat { axis: 1 }, &weights, format!("{name}/weights"))?;
    let mut merged = g.add1(Op::MatMul, &[left, weight], name.clone())?;
    if !biases.is_empty() {
        let bias = g.add1(Op::Concat { axis: 0 }, &biases, format!("{name}/biases"))?;
        merged = g.add1(Op::Binary(BinaryOp::Add), &[merged, bias], name)?;
    }
    let rank = g[merged].shape.len();
    let mut offset = Dim::ZERO;
    for sibling in family {
        let width = source[sibling.weight].shape[1].clone();
        let mut starts = vec![Dim::ZERO; rank];
        let mut sizes = rewriter.graph[merged].shape.clone();
        starts[rank - 1] = offset.clone();
        sizes[rank - 1] = width.clone();
        let op = Op::Slice { starts, sizes, steps: vec![1; rank] };
        let part = rewriter.graph.add1(op, &[merged], source[sibling.node].name.clone())?;
        rewriter.bind(sibling.result, part, true);
        offset = offset + width;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{count, equal, input, weights};
    use super::super::{Options, run};
    use super::*;
    use aot_ir::op::UnaryOp;

    #[test]
    fn projections_merge_with_their_biases() {
        let mut g = Graph::new("test");
        let x = input(&mut g, &[2, 3, 4]);
        let mut results = Vec::new();
        for n in [5, 6, 5] {
            let w = weights(&mut g, &[4, n]);
            let b = weights(&mut g, &[n]);
            let y = g.add1(Op::MatMul, &[x, w], format!("mm{n}")).unwrap();
            let y = g.add1(Op::Binary(BinaryOp::Add), &[b, y], format!("add{n}")).unwrap();
            results.push(g.add1(Op::Unary(UnaryOp::Relu), &[y], "relu").unwrap());
        }
        for (i, y) in results.into_iter().enumerate() {
            g.outputs.push((format!("y{i}"), y));
        }
        let after = run(&g, &Options::default()).unwrap();
        assert_eq!(count(&after, |op| *op == Op::MatMul), 1);
        assert_eq!(count(&after, |op| *op == Op::Binary(BinaryOp::Add)), 1);
        equal(&g, &after, &[]);
    }

    #[test]
    fn products_of_different_operands_stay() {
        let mut g = Graph::new("test");
        let (x, z) = (input(&mut g, &[3, 4]), input(&mut g, &[3, 4]));
        for (i, left) in [x, z].into_iter().enumerate() {
            let w = weights(&mut g, &[4, 2 + i]);
            let y = g.add1(Op::MatMul, &[left, w], "mm").unwrap();
            g.outputs.push((format!("y{i}"), y));
        }
        let after = run(&g, &Options::default()).unwrap();
        assert_eq!(count(&after, |op| *op == Op::MatMul), 2);
        equal(&g, &after, &[]);
    }
}
