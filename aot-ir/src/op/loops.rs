//! Loops: what is repeated, and the rule of its results.

use super::infer::{Inferred, ShapeError};
use super::rule::{Rule, fail};
use crate::dim::Atom;
use crate::{DType, Dim, Graph, Op, SymId, Value};
use serde::{Deserialize, Serialize};

/// What [`Op::Loop`] repeats, and how often.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LoopAttrs {
    /// One iteration. Inputs: the carried values, then the captured ones. Outputs: with a condition, whether
    /// there is another iteration (`Bool`, rank 0); then the carried values for the next iteration; then what is
    /// collected. It has no constants, and its symbols are the first ones of the graph that it stands in.
    #[serde(deserialize_with = "crate::dim::nested_graph")]
    pub body: Graph,
    /// Counts iterations from 0 within the body.
    pub iteration: SymId,
    /// The number of iterations; with a condition, the greatest.
    pub count: Dim,
    /// How many values are carried.
    pub carried: usize,
    /// With a condition: the number of iterations that were made, and so the leading extent of what is collected. The
    /// graph binds it to the loop's first result.
    pub turns: Option<SymId>,
    /// For every collected result, whether the last iteration's comes first. Not with a condition.
    pub backward: Vec<bool>,
}

impl LoopAttrs {
    /// Whether the body says after each iteration if there is another one.
    pub fn is_conditional(&self) -> bool {
        self.turns.is_some()
    }

    /// Operands, results and results of the body before those for carried values: with a condition, one.
    pub fn lead(&self) -> usize {
        usize::from(self.is_conditional())
    }

    /// How many results of the body are collected.
    pub fn stacked(&self) -> usize {
        self.body.outputs.len().saturating_sub(self.lead() + self.carried)
    }

    /// The number of iterations that were made, known after the loop.
    pub fn made(&self) -> Dim {
        match self.turns {
            Some(turns) => Dim::atom(Atom::Sym(turns)),
            None => self.count.clone(),
        }
    }

    /// Symbols that have a size within the body only.
    pub fn inner_symbols(&self) -> Vec<SymId> {
        let mut out = vec![self.iteration];
        inner(&self.body, &mut out);
        out
    }
}

/// Symbols that the nodes of a body bind.
fn inner(body: &Graph, out: &mut Vec<SymId>) {
    out.extend(body.bindings.iter().map(|binding| binding.symbol));
    for (_, node) in body.nodes() {
        if let Op::Loop(attrs) = &node.op {
            out.extend(attrs.inner_symbols());
        }
    }
}

pub(super) fn rule(mut rule: Rule<'_>, attrs: &LoopAttrs) -> Result<Inferred, ShapeError> {
    let (lead, carried, body) = (attrs.lead(), attrs.carried, &attrs.body);
    let operands = rule.all_operands(lead)?;
    if operands.len() != lead + body.inputs.len() {
        return Err(rule.wrong_count(&(lead + body.inputs.len()).to_string()));
    }
    if carried > body.inputs.len() || body.outputs.len() < lead + carried {
        return fail(format!("the body does not carry {carried} values on"));
    }
    if attrs.backward.len() != attrs.stacked() {
        return fail("directions are not given for every collected result");
    }
    if attrs.is_conditional() && attrs.backward.contains(&true) {
        return fail("what is collected under a condition has no known end to begin at");
    }
    if body.constants().len() > 0 {
        return fail("constants must be operands, not stand in the body");
    }
    rule.extent(&attrs.count, "the number of iterations")?;
    let results: Vec<&Value> = body.outputs.iter().map(|(_, v)| &body[*v]).collect();
    if attrs.is_conditional() {
        for condition in [operands[0], results[0]] {
            if condition.dtype != DType::Bool || !condition.shape.is_empty() {
                return fail("the condition is no single truth value");
            }
        }
    }
    for (i, (&operand, input)) in operands[lead..].iter().zip(&body.inputs).enumerate() {
        let what = if i < carried { "a carried value" } else { "a captured value" };
        fits(&mut rule, operand, &body[*input], what)?;
    }
    for (&input, result) in body.inputs[..carried].iter().zip(&results[lead..]) {
        fits(&mut rule, result, &body[input], "a carried value after an iteration")?;
    }
    let inner = attrs.inner_symbols();
    let mut outputs = Vec::with_capacity(results.len());
    if attrs.is_conditional() {
        outputs.push((DType::I64, Vec::new()));
    }
    for (i, result) in results[lead..].iter().enumerate() {
        let mut shape = result.shape.clone();
        if let Some(input) = body.inputs[..carried].get(i) {
            shape.clone_from(&body[*input].shape);
        } else {
            shape.insert(0, attrs.made());
        }
        let varies = |a: &Atom| matches!(a, Atom::Sym(id) if inner.contains(id));
        if let Some(dim) = shape.iter().find(|dim| dim.any(varies)) {
            let dim = rule.show(dim);
            return fail(format!("a result's extent {dim} is another one at every iteration"));
        }
        outputs.push((result.dtype, shape));
    }
    rule.results(outputs)
}

fn fits(
    rule: &mut Rule<'_>,
    found: &Value,
    expected: &Value,
    what: &str,
) -> Result<(), ShapeError> {
    if found.dtype != expected.dtype {
        return fail(format!("{what} is {}, expected {}", found.dtype, expected.dtype));
    }
    rule.equal_shapes(&found.shape, &expected.shape, what).map(|_| ())
}
