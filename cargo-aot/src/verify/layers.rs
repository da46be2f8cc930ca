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
