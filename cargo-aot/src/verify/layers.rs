//! Errors of values within a model.

use std::collections::{BTreeMap, HashMap, HashSet};

use aot_ir::exec::Tensor;
use aot_ir::{DType, Graph, ValueId};

use super::kept::{Content, Kept};
use super::outputs::error;
use super::report::{LayerReport, RunReport, Subject};
use crate::lower::plan::Plan;

/// A value of the compiled graph that is further than this from the one of its name, in a graph
/// whose outputs are right, is another value: passes made it for a node of that name.
const OTHER: f64 = 1e-3;

/// The greatest errors by what computed a value of the imported graph.
#[derive(Debug, Default)]
pub(super) struct Layers(HashMap<(Subject, ValueId), Worst>);

/// An error, and where it was found.
#[derive(Clone, Debug)]
struct Worst {
    error: f64,
    case: usize,
    shape: Vec<usize>,
}

impl Layers {
    /// Compares a value with its reference.
    pub(super) fn add(
        &mut self,
        subject: Subject,
        value: ValueId,
        case: usize,
        content: &Content,
        reference: &Tensor,
    ) {
        let found = content.to_f64().unwrap_or_default();
        let error = error(reference, &found, &reference.to_f64());
        let now = Worst { error, case, shape: reference.shape().to_vec() };
        let worst = self.0.entry((subject, value)).or_insert_with(|| now.clone());
        if error > worst.error || error.is_nan() {
            *worst = now;
        }
    }

    /// The `count` greatest errors of every subject, the greatest ones first.
    pub(super) fn report(
        &self,
        count: usize,
        runs: &[RunReport],
        plan: &Plan<'_>,
        kept: &[Kept],
        imported: &Graph,
        cases: &[BTreeMap<String, i64>],
    ) -> Vec<LayerReport> {
        let passes_are_right = runs.iter().all(|run| run.subject != Subject::Graph || run.ok);
        let others: HashSet<ValueId> = self
            .0
            .iter()
            .filter(|((subject, _), worst)| {
                *subject == Subject::Graph && (worst.error.is_nan() || worst.error > OTHER)
            })
            .map(|((_, value), _)| *value)
            .collect();
        let mut found: Vec<LayerReport> = Vec::new();
        for ((subject, value), Worst { error, case, shape }) in &self.0 {
            // Of a right graph in binary64 there is nothing to tell.
            if passes_are_right && (*subject == Subject::Graph || others.contains(value)) {
                continue;
            }
            let Some(kept) = kept.iter().find(|kept| kept.source == *value) else { continue };
            let node = plan.graph.producer(kept.compiled).map(|node| &plan.graph[node]);
            let value = &imported[*value];
            found.push(LayerReport {
                subject: *subject,
                node: node.map(|node| node.name.clone()).unwrap_or_default(),
                op: node.map_or("input", |node| node.op.name()),
                value: value.name.clone(),
                stored: match subject {
                    Subject::Graph if value.dtype.is_float() => DType::F64,
                    Subject::Graph | Subject::Cpu => value.dtype,
                    Subject::Groups | Subject::Kernels => kept.stored,
                }
                .to_string(),
                sizes: cases.get(*case).cloned().unwrap_or_default(),
                shape: shape.clone(),
                error: *error,
            });
        }
        // What is no number is worst.
        let rank =
            |layer: &LayerReport| if layer.error.is_nan() { f64::INFINITY } else { layer.error };
        found.sort_by(|a, b| {
            (a.subject.cmp(&b.subject))
                .then(rank(b).total_cmp(&rank(a)))
                .then_with(|| a.value.cmp(&b.value))
        });
        let mut shown: BTreeMap<Subject, usize> = BTreeMap::new();
        found.retain(|layer| {
            let n = shown.entry(layer.subject).or_default();
            *n += 1;
            *n <= count
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use aot_ir::exec::Executor;
    use aot_ir::{Dim, Op, Scalar};
    use aot_kernels::group::Expr;

    use super::*;
    use crate::lower::{LowerOptions, Precision, lower};
    use crate::verify::{draw, kept, outputs, subjects};

    #[test]
    fn the_value_of_a_wrong_group_is_the_worst() {
        let mut graph = Graph::new("g");
        let x = graph.add_input("x", DType::F32, vec![Dim::from(6), Dim::from(9)]);
        let softmax = Op::Softmax { axis: 1, log: false };
        let epsilon = Scalar::Float(1e-5);
        let normalize = Op::Normalize { axes: vec![1], epsilon, centered: true };
        let a = graph.add1(softmax.clone(), &[x], "a").unwrap();
        let b = graph.add1(normalize, &[a], "b").unwrap();
        let c = graph.add1(softmax, &[b], "c").unwrap();
        graph.outputs.push(("y".into(), c));
        let options = LowerOptions { precision: Precision::F32, precision_for: Vec::new() };
        let mut plan = lower(&graph, &options).unwrap();
        let inputs = draw::inputs(&graph, &[], 1).unwrap();
        let reference = Executor::wide(&graph).unwrap();
        let compared = |plan: &Plan<'_>| {
            let kept = kept::kept(plan, &graph);
            let found = subjects::groups(plan, &[], &kept, &inputs);
            let mut layers = Layers::default();
            let expected = reference.run_observed(&inputs, &mut |value, tensor| {
                if let Some(content) = found.layers.get(&value) {
                    layers.add(Subject::Groups, value, 0, content, tensor);
                }
            });
            let expected = [("y", expected.unwrap().remove(0))];
            let run = outputs::compare(&graph, &found.outputs.unwrap(), &expected, 1e-5).unwrap();
            let layers = layers.report(5, &[], plan, &kept, &graph, &[BTreeMap::new()]);
            (run[0].ok, layers.into_iter().map(|l| (l.value, l.error)).collect::<Vec<_>>())
        };
        let (ok, layers) = compared(&plan);
        assert!(ok && layers.len() == 2 && layers[0].1 < 1e-6, "{layers:?}");
        for typed in &mut plan.steps[1].exprs {
            if typed.expr == Expr::Const(epsilon) {
                typed.expr = Expr::Const(Scalar::Float(1.0));
            }
        }
        let (ok, layers) = compared(&plan);
        assert!(!ok && layers[0].0 == "b" && layers[0].1 > 0.1, "{layers:?}");
        assert!(layers[1].0 == "a" && layers[1].1 < 1e-6, "{layers:?}");
    }
}
