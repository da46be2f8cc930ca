//! Which rule imports which operator since which version of its operator set.

use super::super::call::Rule;
use super::early;
use std::collections::BTreeMap;

/// The latest version of ONNX's own operator set that the rules know.
pub(in super::super) const LATEST_OPSET: i64 = 25;

/// The latest version of the domain of classical machine learning that the rules know.
pub(in super::super) const LATEST_CLASSICAL: i64 = 5;

/// A rule, and what it is for.
pub(super) struct Entry {
    /// `""` for ONNX's own operators.
    pub(super) domain: &'static str,
    pub(super) operator: &'static str,
    /// First version of the operator set that the rule is for.
    pub(super) since: i64,
    pub(super) rule: Rule,
}

/// An entry of ONNX's own domain for all versions.
pub(super) const fn onnx(operator: &'static str, rule: Rule) -> Entry {
    Entry { domain: "", operator, since: 1, rule }
}

/// An entry of ONNX's own domain from a version on.
pub(super) const fn since(since: i64, operator: &'static str, rule: Rule) -> Entry {
    Entry { domain: "", operator, since, rule }
}

/// An entry of onnxruntime's domain.
pub(super) const fn microsoft(operator: &'static str, rule: Rule) -> Entry {
    Entry { domain: "com.microsoft", operator, since: 1, rule }
}

/// An entry of ONNX's domain of classical machine learning.
pub(super) const fn classical(operator: &'static str, rule: Rule) -> Entry {
    Entry { domain: "ai.onnx.ml", operator, since: 1, rule }
}

const FAMILIES: &[&[Entry]] = &[
    super::activation::RULES,
    super::quantized::RULES,
    super::einsum::RULES,
    super::attention::RULES,
    super::losses::RULES,
    super::matmul::RULES,
    super::mel::RULES,
    super::classical::RULES,
    super::convolution::RULES,
    super::deformable::RULES,
    super::elementwise::RULES,
    super::generate::RULES,
    super::grid::RULES,
    super::image::RULES,
    super::indexing::RULES,
    super::microsoft::attention::RULES,
    super::microsoft::bnb4::RULES,
    super::microsoft::fused::RULES,
    super::microsoft::grouped::RULES,
    super::microsoft::linear::RULES,
    super::microsoft::nbits::RULES,
    super::microsoft::nhwc::RULES,
    super::microsoft::norm::RULES,
    super::microsoft::numeric::RULES,
    super::ngrams::RULES,
    super::norm::RULES,
    super::pooling::RULES,
    super::random::RULES,
    super::recurrent::RULES,
    super::reduction::RULES,
    super::regions::RULES,
    super::resize::RULES,
    super::selection::RULES,
    super::shape::RULES,
    super::signal::RULES,
    super::slicing::RULES,
    super::suppression::RULES,
    super::svm::RULES,
    super::trees::RULES,
];

/// Every operator that has a rule, with the first versions of the operator set that its rules are for.
pub(in super::super) fn listed() -> Vec<(&'static str, &'static str, Vec<i64>)> {
    let mut found: BTreeMap<(&str, &str), Vec<i64>> = BTreeMap::new();
    for entry in FAMILIES.iter().flat_map(|family| family.iter()) {
        found.entry((entry.domain, entry.operator)).or_default().push(entry.since);
    }
    for entry in early::RULES {
        // It is for versions before those of the main rule.
        if let Some(since) = found.get_mut(&(entry.domain, entry.operator))
            && !since.contains(&early::LATER)
        {
            since.push(early::LATER);
        }
    }
    let sorted = found.into_iter().map(|((domain, operator), mut since)| {
        since.sort_unstable();
        (domain, operator, since)
    });
    sorted.collect()
}

/// The rule for an operator in a version of its operator set.
pub(in super::super) fn find(domain: &str, operator: &str, version: i64) -> Option<Rule> {
    let domain = if domain == "ai.onnx" { "" } else { domain };
    if domain.is_empty()
        && version < early::LATER
        && let Some(rule) = find_in(early::RULES, domain, operator, version)
    {
        return Some(rule);
    }
    let rules = FAMILIES.iter().flat_map(|family| family.iter());
    latest(rules, domain, operator, version)
}

/// [`find`] in one family.
pub(super) fn find_in(
    family: &[Entry],
    domain: &str,
    operator: &str,
    version: i64,
) -> Option<Rule> {
    latest(family.iter(), domain, operator, version)
}

fn latest<'a>(
    rules: impl Iterator<Item = &'a Entry>,
    domain: &str,
    operator: &str,
    version: i64,
) -> Option<Rule> {
    rules
        .filter(|e| e.domain == domain && e.operator == operator && e.since <= version)
        .max_by_key(|e| e.since)
        .map(|e| e.rule)
}
